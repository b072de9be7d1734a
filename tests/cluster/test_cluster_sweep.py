"""Sweeps: every task once, whatever is killed; what is in the table is not run again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks._cluster_data import nap
from benchmarks._raylets import Raylets
from podium.cluster import Cluster, SweepProgress, TaskResult, grid, sweep, tune
from podium.errors import ArgumentError, DataError, PodiumError
from podium.rankers import LinearRanker, Trial
from tests.rankers.made_up import made_up

TASKS = grid(k=[1, 2, 3], model=["linear", "trees"], rate=[0.1, 1])


def measured(k: int, model: str, rate: float, log: str | None = None) -> dict[str, Any]:
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{k}\n")
    return {"value": k * rate, "name": f"{model}-{k}"}


def fails_at_two(number: int) -> dict[str, Any]:
    return {"inverse": 1 / (number - 2)}


def test_results_are_in_order_and_in_one_table(tmp_path: Path) -> None:
    told: list[SweepProgress] = []
    found = sweep(measured, TASKS, results=tmp_path / "results.parquet", progress=told.append)
    assert [one.parameters for one in found] == TASKS
    assert [one.values["value"] for one in found] == [task["k"] * task["rate"] for task in TASKS]
    table = pq.read_table(tmp_path / "results.parquet")
    assert {"task", "k", "model", "rate", "value", "name", "seconds"} <= set(table.column_names)
    assert table["value"].to_pylist() == [one.values["value"] for one in found]
    assert [one.done for one in told] == list(range(len(TASKS) + 1))
    assert told[-1].seconds_left == 0
    assert isinstance(told[-1].last, TaskResult)


def test_a_second_run_does_only_what_is_missing(tmp_path: Path) -> None:
    log, results = str(tmp_path / "log"), tmp_path / "results.parquet"
    tasks = [{**task, "log": log} for task in TASKS]
    first = sweep(measured, tasks[:5], results=results)
    again = sweep(measured, tasks, results=results)
    assert again[:5] == first
    assert len(Path(log).read_text().split()) == len(tasks)


def test_failures_are_told_at_the_end_and_tried_again(tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    with pytest.raises(PodiumError, match="1 of 4 tasks failed, the first with ZeroDivision"):
        sweep(fails_at_two, grid(number=[1, 2, 3, 4]), results=results)
    errors = pq.read_table(results)["error"].to_pylist()
    assert sum(error is None for error in errors) == 3
    done = sweep(fails_at_two, grid(number=[1, 3, 4]), results=results)
    assert [one.values["inverse"] for one in done] == [-1.0, 1.0, 0.5]


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"

    def interrupt(progress: SweepProgress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(measured, TASKS, results=results, progress=interrupt)
    assert len(pq.read_table(results)) == 3


def test_what_is_no_plain_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="plain value"):
        sweep(measured, [{"k": object()}])
    pq.write_table(pq.read_table(_a_table(tmp_path)).select(["k"]), tmp_path / "other.parquet")
    with pytest.raises(DataError):
        sweep(measured, TASKS, results=tmp_path / "other.parquet")


def _a_table(folder: Path) -> Path:
    sweep(measured, TASKS[:1], results=folder / "one.parquet")
    return folder / "one.parquet"


@pytest.mark.slow
def test_processes_give_the_same(tmp_path: Path) -> None:
    found = sweep(measured, TASKS, processes=2)
    assert [one.values for one in found] == [one.values for one in sweep(measured, TASKS)]


SCRIPT = """
import sys
from podium.cluster import grid, sweep
from benchmarks._cluster_data import nap
tasks = grid(number=list(range(200)), seconds=[0.05])
sweep(nap, tasks, results=sys.argv[1])
"""


@pytest.mark.slow
def test_ctrl_c_and_kill_lose_at_most_a_second(tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    for number, least in ((signal.SIGINT, 10), (signal.SIGKILL, 30)):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(results)], stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not results.exists() or len(pq.read_table(results)) < least:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(process.pid, number)
        process.wait()
        assert least <= len(pq.read_table(results)) < 200
    found = sweep(nap, grid(number=list(range(200)), seconds=[0.05]), results=results)
    assert [one.values["square"] for one in found] == [number**2 for number in range(200)]


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_a_killed_raylet_loses_no_task(raylets: Raylets, three: Cluster, tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    tasks = grid(number=list(range(100)), seconds=[0.05])

    def kill_midway(progress: SweepProgress) -> None:
        if progress.done == 20:
            raylets.kill_one(random.Random(2))

    found = sweep(nap, tasks, results=results, progress=kill_midway, cluster=three)
    assert [one.values["square"] for one in found] == [number**2 for number in range(100)]
    keys = pq.read_table(results)["task"].to_pylist()
    assert len(keys) == len(set(keys)) == 100


@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
def test_tuning_on_a_cluster_is_that_of_one_process(three: Cluster, tmp_path: Path) -> None:
    train, held_out = made_up(20, 10), made_up(10, 10, seed=1)
    choices = {"penalty": [1e-4, 1e-1, 10.0], "loss": ["ListNet()", "PairHinge(k=3)"]}
    here = tune(LinearRanker(), choices, train, held_out)
    results = tmp_path / "tune.parquet"
    for trials in ([], list(here.trials)):  # the second time all are in the table
        told: list[Trial] = []
        there = tune(
            LinearRanker(),
            choices,
            train,
            held_out,
            progress=lambda _done, _all, trial, told=told: told.append(trial),
            results=results,
            cluster=three,
        )
        assert len(told) == len(here.trials) - len(trials)
        assert [one.parameters for one in there.trials] == [one.parameters for one in here.trials]
        np.testing.assert_allclose(
            [one.value for one in there.trials], [one.value for one in here.trials], atol=1e-9
        )
        np.testing.assert_allclose(there.ranker.coef_, here.ranker.coef_, rtol=1e-6, atol=1e-6)

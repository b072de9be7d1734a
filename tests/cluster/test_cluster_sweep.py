"""Sweeps: every task once, whatever is killed; what is in the table is not run again."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks._cluster_data import nap
from benchmarks._raylets import Raylets
from podium.cluster import Cluster, grid, sweep
from podium.cluster.results_table import TaskResult
from podium.cluster.sweeps import SweepProgress
from podium.cluster.tuning import tune
from podium.errors import ArgumentError, DataError, PodiumError
from podium.rankers import LinearRanker
from podium.rankers.tuning import Trial
from tests.cluster.tasks import TASKS, dies, measured
from tests.rankers.made_up import made_up


def fails_at_two(number: int) -> dict[str, Any]:
    return {"inverse": 1 / (number - 2)}


def test_results_are_in_order_and_in_one_table(tmp_path: Path) -> None:
    reports: list[SweepProgress] = []
    results = sweep(measured, TASKS, results=tmp_path / "results.parquet", progress=reports.append)
    assert [one.parameters for one in results] == TASKS
    assert [one.values["value"] for one in results] == [task["k"] * task["rate"] for task in TASKS]
    table = pq.read_table(tmp_path / "results.parquet")
    assert {"task", "k", "model", "rate", "value", "name", "seconds"} <= set(table.column_names)
    assert table["value"].to_pylist() == [one.values["value"] for one in results]
    assert [one.done for one in reports] == list(range(len(TASKS) + 1))
    assert reports[-1].seconds_left == 0
    assert isinstance(reports[-1].last, TaskResult)


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


def odd(number: int) -> dict[Any, Any]:
    if number == 3:
        raise ValueError("bytes that are not text: \udcff")
    return {0: {"large": 2**70}, 1: {1: "a", "b": 2}, 2: {"text": "\udcff"}}[number]


def test_odd_results_cost_no_others(tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    with pytest.raises(PodiumError, match="2 of 4 tasks failed"):
        sweep(odd, grid(number=[0, 1, 2, 3]), results=results)
    rows = pq.read_table(results).to_pylist()
    assert [row["error"] is None for row in rows] == [True, False, True, False]
    again = sweep(odd, grid(number=[0, 2]), results=results)
    assert again[0].values == {"large": 2**70}


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    rates = list(np.logspace(-2, 0, 3))
    sweep(measured, grid(k=[1], model=["linear"], rate=rates), results=tmp_path / "r.parquet")
    assert pq.read_table(tmp_path / "r.parquet")["rate"].to_pylist() == rates


def test_what_comes_while_progress_fails_is_kept(tmp_path: Path) -> None:
    def interrupt(progress: SweepProgress) -> None:
        if progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(measured, TASKS, results=tmp_path / "r.parquet", progress=interrupt)
    assert len(pq.read_table(tmp_path / "r.parquet")) == 1


def test_trials_of_others_are_not_taken_for_these(tmp_path: Path) -> None:
    train, held_out, other = made_up(10, 10), made_up(10, 10, seed=1), made_up(10, 10, seed=2)
    choices, table = {"alpha": [1e-4, 10.0]}, tmp_path / "tune.parquet"
    for number, (ranker, data, measure) in enumerate(
        [
            (LinearRanker("ListNet()"), train, "nDCG@10"),
            (LinearRanker("ListMLE()"), train, "nDCG@10"),
            (LinearRanker("ListNet()"), other, "nDCG@10"),
            (LinearRanker("ListNet()"), train, "RR"),
        ]
    ):
        there = tune(ranker, choices, data, held_out, measure=measure, results=table)
        here = tune(ranker, choices, data, held_out, measure=measure)
        assert [one.value for one in there.trials] == [one.value for one in here.trials]
        assert len(pq.read_table(table)) == 2 * (number + 1)


def _a_table(folder: Path) -> Path:
    sweep(measured, TASKS[:1], results=folder / "one.parquet")
    return folder / "one.parquet"


@pytest.mark.slow
def test_processes_give_the_same() -> None:
    results = sweep(measured, TASKS, processes=2)
    assert [one.values for one in results] == [one.values for one in sweep(measured, TASKS)]


@pytest.mark.slow
def test_a_task_that_ends_its_process_is_an_error_of_its_own(tmp_path: Path) -> None:
    table = tmp_path / "results.parquet"
    with pytest.raises(PodiumError, match="1 of 12 tasks failed, the first with its process died"):
        sweep(dies, grid(number=list(range(12))), processes=2, results=table)
    again = sweep(dies, grid(number=[0, *range(2, 12)]), results=table)
    assert [one.values["number"] for one in again] == [0, *range(2, 12)]


@pytest.mark.slow
def test_a_sweep_whose_processes_all_die_ends_soon() -> None:
    tasks = grid(number=[1], copy=list(range(100)))
    with pytest.raises(PodiumError, match="every process of the sweep dies"):
        sweep(dies, tasks, processes=2)


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in the background
from podium.cluster import grid, sweep
from benchmarks._cluster_data import nap
tasks = grid(number=list(range(200)), seconds=[0.05])
def show(progress):
    print(progress.done, flush=True)
sweep(nap, tasks, results=sys.argv[1], progress=show)
"""


@pytest.mark.slow
def test_ctrl_c_loses_nothing_and_kill_at_most_a_second(tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    a_second = 2 * 20  # tasks of 0.05 s, twice over
    for number, least, lost in ((signal.SIGINT, 15, 1), (signal.SIGKILL, 70, a_second)):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(results)],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        done = 0
        while done < least:
            done = int(process.stdout.readline())
        os.kill(process.pid, number)
        rest, _ = process.communicate(timeout=60)
        done = int([str(done), *rest.split()][-1])
        assert done - lost <= len(pq.read_table(results)) < 200
    completed = sweep(nap, grid(number=list(range(200)), seconds=[0.05]), results=results)
    assert [one.values["square"] for one in completed] == [number**2 for number in range(200)]


@pytest.mark.slow
@pytest.mark.long
def test_a_killed_raylet_loses_no_task(raylets: Raylets, three: Cluster, tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    tasks = grid(number=list(range(100)), seconds=[0.05])

    def kill_midway(progress: SweepProgress) -> None:
        if progress.done == 20:
            raylets.kill_one(random.Random(2))

    completed = sweep(nap, tasks, results=results, progress=kill_midway, cluster=three)
    assert [one.values["square"] for one in completed] == [number**2 for number in range(100)]
    keys = pq.read_table(results)["task"].to_pylist()
    assert len(keys) == len(set(keys)) == 100


@pytest.mark.slow
@pytest.mark.long
def test_tuning_on_a_cluster_is_that_of_one_process(three: Cluster, tmp_path: Path) -> None:
    train, held_out = made_up(20, 10), made_up(10, 10, seed=1)
    choices = {"alpha": [1e-4, 10.0], "loss": ["ListNet()", "PairHinge(k=3)"]}
    here = tune(LinearRanker(), choices, train, held_out)
    results = tmp_path / "tune.parquet"
    for trials in ([], list(here.trials)):  # the second time all are in the table
        reported: list[Trial] = []
        there = tune(
            LinearRanker(),
            choices,
            train,
            held_out,
            progress=lambda _done, _all, trial, reported=reported: reported.append(trial),
            results=results,
            cluster=three,
        )
        assert len(reported) == len(here.trials) - len(trials)
        assert [one.params for one in there.trials] == [one.params for one in here.trials]
        np.testing.assert_allclose(
            [one.value for one in there.trials], [one.value for one in here.trials], atol=1e-9
        )
        np.testing.assert_allclose(
            there.best_ranker.coef_, here.best_ranker.coef_, rtol=1e-6, atol=1e-6
        )


@pytest.mark.slow
@pytest.mark.long
def test_a_task_that_ends_its_process_fails_alone(three: Cluster, tmp_path: Path) -> None:
    results = tmp_path / "results.parquet"
    with pytest.raises(PodiumError, match=r"1 of 3 tasks failed.*its process died"):
        sweep(dies, grid(number=[0, 1, 2]), results=results, cluster=three)
    assert pq.read_table(results)["error"].null_count == 2


def test_equal_tasks_have_a_result_each() -> None:
    results = sweep(measured, [TASKS[0], TASKS[1], TASKS[0]])
    assert [one.values for one in results] == [
        one.values for one in sweep(measured, [TASKS[0], TASKS[1]]) + sweep(measured, [TASKS[0]])
    ]
    assert len(results) == 3


def test_trials_of_another_grid_are_not_repeated(tmp_path: Path) -> None:
    train, held_out = made_up(20), made_up(10, seed=1)
    table = tmp_path / "trials.parquet"
    first = tune(LinearRanker("ListNet()"), {"alpha": [1e-3]}, train, held_out, results=table)
    both = {"alpha": [1e-4, 1e-3]}
    second = tune(LinearRanker("ListNet()"), both, train, held_out, results=table)
    assert len(pq.read_table(table)) == 2
    values = {trial.params["alpha"]: trial.value for trial in second.trials}
    assert values[1e-3] == first.trials[0].value
    here = tune(LinearRanker("ListNet()"), both, train, held_out)
    assert values == {trial.params["alpha"]: trial.value for trial in here.trials}

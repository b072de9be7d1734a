"""Workers that lag behind: work is taken from them, or done a second time, and counted once."""

import itertools
import os
import signal
import threading
import uuid
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from podium.cluster import Cluster, evaluate_shards, shard_tasks
from podium.cluster.shard_actors import _PATIENCE, ShardActors
from podium.cluster.sources import ShardSource, open_source
from podium.losses.names import parse_loss
from tests.cluster.shards import MEASURES, assert_equal, cut, scored
from tests.rankers.made_up import made_up

pytestmark = [pytest.mark.slow, pytest.mark.long]


def with_clocks(three: Cluster, source: ShardSource, seconds: list[float]) -> ShardActors:
    """Workers of which each takes a set time for every answer, however fast the machine is."""
    ray, actors = three.connect(), ShardActors(source, three)
    ray.get(
        [
            actor.__ray_call__.remote(
                lambda holder, step: setattr(holder, "_clock", itertools.count(0.0, step).__next__),
                step,
            )
            for actor, step in zip(actors._actors.values(), seconds, strict=True)
        ]
    )
    return actors


def test_shards_move_away_from_a_slow_worker(three: Cluster, tmp_path: Path) -> None:
    source = open_source(cut(made_up(60, 10), tmp_path / "train", 12))
    actors = with_clocks(three, source, [20.0, 1.0, 1.0])
    slow, *others = actors._actors
    held = len(actors._shares[slow])
    loss, weights = parse_loss("ListMLE(k=5)"), np.ones(6)
    before = actors.gather("risk", loss, weights)
    for asked in range(2, 2 * _PATIENCE + 1):
        after = actors.gather("risk", loss, weights)
        for (value, slope), (again, same) in zip(before, after, strict=True):
            assert value == again
            np.testing.assert_array_equal(slope, same)
        assert actors.moved == asked // _PATIENCE
        assert len(actors._shares[slow]) == held - actors.moved
    assert sorted(shard for share in actors._shares.values() for shard in share) == list(
        range(len(source.shards))
    )
    actors.gather("risk", loss, weights)  # reads what was moved last
    ray = three.connect()
    for number in (slow, *others):  # what was moved is in the memory of its new worker alone
        holding = actors._actors[number].__ray_call__.remote(lambda holder: set(holder._loaded))
        assert ray.get(holding) == set(actors._shares[number])
    actors.close()


@pytest.mark.long
def test_workers_of_one_pace_keep_their_shards(three: Cluster, tmp_path: Path) -> None:
    source = open_source(cut(made_up(60, 10), tmp_path / "train", 12))
    actors = with_clocks(three, source, [1.4, 1.0, 1.0])  # below the bound of assignment.SLOW
    shares = {number: list(share) for number, share in actors._shares.items()}
    for _ in range(2 * _PATIENCE):
        actors.gather("risk", parse_loss("ListMLE(k=5)"), np.ones(6))
    assert actors.moved == 0
    assert actors._shares == shares
    actors.close()


def test_a_task_that_lags_is_done_by_another(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy of one task never ends: its second copy must be launched, and counts."""
    monkeypatch.setattr(shard_tasks, "_LEAST_SECONDS", 0.2)
    # Time passes once the others are done: on a busy machine, one of them could lag as well.
    now = [0.0]
    monkeypatch.setattr(shard_tasks, "time", SimpleNamespace(monotonic=lambda: now[0]))
    ray = three.connect()
    laggard = 3

    def work(number: int) -> int:
        first = not list(tmp_path.glob(f"{number}-*"))
        (tmp_path / f"{number}-{uuid.uuid4()}").touch()
        if first and number == laggard:
            threading.Event().wait()
        return number**2

    task = ray.remote(work).options(num_cpus=0)
    results = []
    for each in shard_tasks.run_tasks(ray, task.remote, range(6), at_once=2):
        results.append(each)
        now[0] = 1000.0 * (len(results) >= 5)
    assert sorted(one for one in results if one) == [(number, number**2) for number in range(6)]
    starts = Counter(int(path.name.partition("-")[0]) for path in tmp_path.iterdir())
    assert starts == {number: 1 + (number == laggard) for number in range(6)}


@pytest.mark.long  # which worker is stopped, and when, is up to the machine
def test_what_a_stopped_worker_keeps_is_done_by_another(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_tasks, "_LEAST_SECONDS", 1.0)
    data = scored(3000, most=60)
    source = cut(data, tmp_path / "scored", 60)
    stopped: list[int] = []
    woken = threading.Event()

    def wake() -> None:
        woken.set()
        os.kill(stopped[0], signal.SIGCONT)

    alarm = threading.Timer(600, wake)  # else, if nobody takes over, the test would wait for ever

    def stop_one(_done: int, _total: int | None) -> None:
        busy = busy_worker()
        if not stopped and busy is not None:
            stopped.append(busy)
            os.kill(busy, signal.SIGSTOP)
            alarm.start()

    evaluation = evaluate_shards(
        MEASURES, source, score=list(data.feature_names), progress=stop_one, cluster=three
    )
    assert not woken.is_set()
    alarm.cancel()
    wake()
    assert_equal(evaluation, data)


def busy_worker() -> int | None:
    """A process that evaluates a shard right now, if there is one."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"ray::evaluate_shard" in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except OSError:
            continue
    return None

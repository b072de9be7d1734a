"""Workers that lag behind: work is taken from them, or done a second time, and counted once."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from podium.cluster import Cluster, evaluate, open_source, shard_tasks
from podium.cluster.holders import Holders
from podium.losses import parse_loss
from tests.cluster.test_cluster_evaluate import MEASURES, assert_equal, cut, scored
from tests.rankers.made_up import made_up

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


@contextmanager
def slowed(process: int, part: float = 0.1) -> Iterator[None]:
    """A process that gets only a part of the time, as on a machine that others use."""
    over = threading.Event()

    def work() -> None:
        turn = 0.01
        while not over.wait(turn * part):
            os.kill(process, signal.SIGSTOP)
            over.wait(turn * (1 - part))
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_shards_move_away_from_a_slow_worker(three: Cluster, tmp_path: Path) -> None:
    data = made_up(600, 100)
    source = open_source(cut(data, tmp_path / "train", 12))
    holders = Holders(source, three)
    loss, weights = parse_loss("ListMLE(k=5)"), np.ones(6)
    before = holders.gather("risk", loss, weights)
    ray = three.connect()
    slow, actor = next(iter(holders._actors.items()))
    held = len(holders._shares[slow])
    process = ray.get(actor.__ray_call__.remote(lambda _self: os.getpid()))
    deadline = time.monotonic() + 30
    with slowed(process):
        while holders.moved < 2 and time.monotonic() < deadline:
            after = holders.gather("risk", loss, weights)
            for (value, slope), (again, same) in zip(before, after, strict=True):
                assert value == again
                np.testing.assert_array_equal(slope, same)
    assert len(holders._shares[slow]) < held
    assert sorted(place for share in holders._shares.values() for place in share) == list(
        range(len(source.shards))
    )
    holders.close()


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

    alarm = threading.Timer(60, wake)  # else, if nobody takes over, the test would wait for ever

    def stop_one(_done: int, _total: int | None) -> None:
        if not stopped:
            stopped.append(busy_worker())
            os.kill(stopped[0], signal.SIGSTOP)
            alarm.start()

    found = evaluate(
        MEASURES, source, score=list(data.feature_names), progress=stop_one, cluster=three
    )
    assert not woken.is_set()
    alarm.cancel()
    wake()
    assert_equal(found, data)


def busy_worker() -> int:
    """A process that evaluates a shard right now."""
    while True:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if b"ray::evaluate_shard" in (folder / "cmdline").read_bytes():
                    return int(folder.name)
            except OSError:
                continue

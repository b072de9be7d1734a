"""A raylet of three killed at a random moment of everything that a cluster does."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks._cluster_data import learning_shards, scored_shards, ten_milliseconds
from benchmarks._raylets import Raylets
from benchmarks._report import Report
from podium.cluster import Cluster, evaluate_shards, fit_shards, grid, sweep
from podium.data import ShardSet
from podium.rankers import LinearRanker, NeuralRanker, Ranker, TreeRanker

LOSS = "ListMLE(k=10)"


def faults(report: Report, quick: bool) -> None:
    """Kill a raylet again and again, and count the right results."""
    times = 1 if quick else 10
    raylets = Raylets(cpus=1 if quick else 2)
    try:
        with Cluster(raylets.address), TemporaryDirectory() as folder:
            cluster = Cluster(raylets.address, workers=3)
            for name, run in _cases(Path(folder), cluster, quick).items():
                _check(report, raylets, name, run, times)
    finally:
        raylets.shutdown()


def _check(
    report: Report, raylets: Raylets, name: str, run: Callable[[], bool], times: int
) -> None:
    assert run()  # what is compiled and imported on first use is there
    start = time.monotonic()
    assert run()
    usual = time.monotonic() - start
    right = hits = attempts = 0
    # A kill that comes when the work is over shows nothing: only those before count.
    while hits < times and attempts < 3 * times:
        raylets.replace_killed()
        draw = random.Random(attempts)
        attempts += 1
        killer = raylets.kill_after(draw.uniform(0.1, 0.9) * usual, draw)
        came_right = run()
        hit = not killer.is_alive()
        killer.join()
        hits += hit
        right += hit and came_right
    report.note(f"{name}: {usual:.1f} s undisturbed, {hits} of {attempts} kills before its end")
    report.check(f"{name}: right with a raylet killed before its end", right, times, unit="")


def _cases(folder: Path, cluster: Cluster, quick: bool) -> dict[str, Callable[[], bool]]:
    rows = 200_000 if quick else 5_000_000
    scored = scored_shards(folder / "scored", rows, rows // 40)
    expected = evaluate_shards("nDCG@10", scored).means["score"]

    def evaluation() -> bool:
        result = evaluate_shards("nDCG@10", scored, cluster=cluster)
        same = {m: abs(mean - expected[m]) <= 1e-9 for m, mean in result.means["score"].items()}
        return all(same.values()) and result.queries == scored.queries

    if quick:
        return {"evaluate": evaluation}
    tasks = grid(number=list(range(300)))

    def sweeping() -> bool:
        with TemporaryDirectory() as here:
            results = sweep(
                ten_milliseconds, tasks, results=f"{here}/results.parquet", cluster=cluster
            )
        return [result.values["square"] for result in results] == [
            number**2 for number in range(300)
        ]

    train = learning_shards(folder / "train", 120_000, 20, 12)
    return {
        "evaluate": evaluation,
        "a sweep of 300 tasks": sweeping,
        "fit, linear": _linear(train, cluster),
        "fit, LightGBM": _worth(train, cluster, lambda: _trees("lightgbm")),
        "fit, XGBoost": _worth(train, cluster, lambda: _trees("xgboost")),
        "fit, PyTorch": _worth(train, cluster, lambda: NeuralRanker(LOSS, epochs=10)),
    }


def _linear(train: ShardSet, cluster: Cluster) -> Callable[[], bool]:
    expected = LinearRanker(LOSS).fit(train).coef_

    def run() -> bool:
        coefficients = fit_shards(LinearRanker(LOSS), train, cluster=cluster).coef_
        return bool(np.abs(coefficients - expected).max() <= 1e-6)

    return run


def _trees(engine: str) -> Ranker:
    return TreeRanker(LOSS, engine=engine, n_estimators=50, early_stopping_rounds=None)  # type: ignore[arg-type]


def _worth(train: ShardSet, cluster: Cluster, make: Callable[[], Ranker]) -> Callable[[], bool]:
    """A model is right if it ranks as well as that of one process; trees with all their steps."""
    data = train.load()
    expected = make().fit(data).score(data)

    def run() -> bool:
        ranker = fit_shards(make(), train, checkpoint_seconds=2.0, cluster=cluster)
        complete = not isinstance(ranker, TreeRanker) or ranker.n_estimators_ == ranker.n_estimators
        return complete and abs(ranker.score(data) - expected) <= 0.02

    return run

"""What this machine does in a second, and what a billion rows or ten thousand people would take.

    python -m benchmarks.scale [--quick]

Slopes are measured at two sizes; what is beyond is calculated from the larger one, and said to be.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import serving
from benchmarks._click_logs import log_runs
from benchmarks._report import Report, cores, wants_quick
from benchmarks._serving_load import has_wrk, requests_per_second
from benchmarks._serving_processes import served
from benchmarks._studio_crowd import Crowd
from benchmarks._studio_server import Server, create_data, running
from benchmarks.evaluation import write_scores
from podium.data import Dataset
from podium.hybrid import Fusion
from podium.hybrid.fusion import fuse
from podium.judging.assessors.simulated import PAIR_SECONDS
from podium.measures import compare
from podium.rankers import LinearRanker, TreeRanker
from tests.ports import free_port
from tests.studio.postgres import Postgres

_FEATURES, _DOCUMENTS = 40, 20
_TREES = 50


def slope_rows(report: Report, quick: bool) -> None:
    """Time each job at two sizes, and calculate a billion of its units."""
    many, repeats = (1, 1) if quick else (50, 3)
    jobs: list[tuple[str, str, Callable[[int], float], int]] = [
        ("evaluate nDCG@10 from Parquet", "rows", _evaluate, 80_000 * many),
        ("import, check and model clicks", "shown documents", _clicks, 20_000 * many),
        ("fuse 3 lists", "documents", _fuse, 80_000 * many),
        (f"fit {_TREES} trees of 15 leaves", "rows", _trees, 8_000 * many),
        ("fit a linear ranker", "rows", _linear, 8_000 * many),
        ("score by 50 trees", "rows", _score, 8_000 * many),
        ("compare two rankers with tests", "queries", _compare, 800 * many),
    ]
    for name, unit, job, least in jobs:
        job(least // 4)  # compiles
        small, large = (
            statistics.median(job(size) for _ in range(repeats)) / size
            for size in (least, 4 * least)
        )
        report.note(
            f"{name}: {1 / large:,.0f} {unit}/s; a billion, calculated: {_time(1e9 * large)}"
        )
        report.check(f"{name}: time per unit, of that at a quarter", large / small, 1.3, False)


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def _timed(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def _evaluate(rows: int) -> float:
    from podium.measures import evaluate_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_scores(path, rows // _DOCUMENTS, _DOCUMENTS, with_ids=False)
        return _timed(partial(evaluate_table, "nDCG@10", str(path)))


def _clicks(rows: int) -> float:
    (imported, _), (checked, _), _ = log_runs(rows)
    return imported + checked


def _fuse(rows: int) -> float:
    votes = np.random.default_rng(0).random((rows, 3), np.float32)
    return _timed(partial(fuse, votes, np.arange(0, rows + 1, 200), Fusion(("a", "b", "c"))))


def _data(rows: int) -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.random((rows, _FEATURES), np.float32)
    y = np.round(3 * X[:, 0] + rng.random(rows))
    return Dataset.from_arrays(X, y, group=[_DOCUMENTS] * (rows // _DOCUMENTS))


def _trees(rows: int) -> float:
    return _timed(partial(TreeRanker("ListMLE(k=10)", n_estimators=_TREES).fit, _data(rows)))


def _linear(rows: int) -> float:
    return _timed(partial(LinearRanker("ListMLE(k=10)").fit, _data(rows)))


def _score(rows: int) -> float:
    data = _data(rows)
    ranker = TreeRanker(n_estimators=_TREES).fit(data.select(np.arange(100)))
    return _timed(partial(ranker.predict, data.features))


def _compare(queries: int) -> float:
    data = _data(queries * _DOCUMENTS)
    scores = {"a": data.features[:, 0], "b": data.features[:, 1]}
    return _timed(partial(compare, "nDCG@10", data, scores))


def people_rows(report: Report, quick: bool) -> None:
    """Measure judgments per second, and calculate ten thousand people who judge at once."""
    people, queries, seconds = (60, 60, 4) if quick else (1000, 1000, 15)
    with Postgres() as postgres:
        url = postgres.create("scale")
        project, tokens = create_data(url, people=people, queries=queries, items=_DOCUMENTS)
        server = Server(url, free_port(), workers=2, pool=4)
        with running([server]):
            crowd = Crowd(project, [server.port], tokens)
            crowd.judge_quickly(seconds)
            rate = statistics.median(crowd.judge_quickly(seconds) for _ in range(3))
    asked = 10_000 / PAIR_SECONDS
    report.note(
        f"judge: {rate:,.0f} judgments/s of {people:,} simulated people by two processes and "
        f"PostgreSQL on these {cores()} cores. Ten thousand people, {PAIR_SECONDS} s for a pair, "
        f"give {asked:,.0f}/s, calculated: {asked / rate * cores():.0f} such cores"
    )
    report.check("errors of people", sum(crowd.errors.values()), 0, False, "")


def search_rows(report: Report, quick: bool) -> None:
    """Measure reranked searches per second, and calculate ten thousand."""
    if not has_wrk():
        report.note("searches are not measured: wrk is not installed ('make system')")
        return
    data = serving.ranking_data()
    ranker = TreeRanker("LambdaMART", n_estimators=300, num_leaves=31).fit(data)
    body = serving.rank_body(np.ascontiguousarray(data.features[: serving.DOCUMENTS]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.podium"
        ranker.save(path)
        with served(path, "--workers", "2") as (port, _):
            url = f"http://127.0.0.1:{port}/rank"
            rate = statistics.median(
                requests_per_second(url, body, {}, seconds=1 if quick else 10) for _ in range(3)
            )
    report.note(
        f"rank: {rate:,.0f} requests/s of {serving.DOCUMENTS} documents, {serving.FEATURES} "
        f"features, 300 trees, by two processes beside their load on these {cores()} cores; ten "
        f"thousand, calculated: {10_000 / rate * cores():.0f} such cores"
    )
    report.check("requests are answered", rate, 1, True, "/s")


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    os.environ.setdefault("PODIUM_CLICKS_MEMORY", "2GB")
    report = Report("scale", quick, packages=["lightgbm", "duckdb"])
    slope_rows(report, quick)
    people_rows(report, quick)
    search_rows(report, quick)
    report.finish()


if __name__ == "__main__":
    main()

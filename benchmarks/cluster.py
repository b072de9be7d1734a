"""The cluster: what Ray costs, how work grows with rows and workers, and what a fault costs.

    python -m benchmarks.cluster [--quick]

Everything runs on one machine, so workers share its memory and its two cores; traffic stays on
the loopback interface. With --quick sizes are small and one raylet is killed; at full size 60
are killed, and rows grow to 100 million, which needs some 2 GB of disk and half an hour.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks._cluster_data import (
    learning_shards,
    read_columns,
    scored_shards,
    ten_milliseconds,
)
from benchmarks._cluster_faults import faults
from benchmarks._report import Report, median_seconds, wants_quick
from podium.cluster import Cluster, evaluate_shards, grid, sweep
from podium.cluster.fit_linear import ShardedRisk
from podium.cluster.shard_actors import ShardActors
from podium.cluster.sources import open_source
from podium.data import ShardSet
from podium.losses.names import parse_loss
from podium.measures import evaluate_table

COLUMNS = ["query_id", "label", "score"]
MEASURES = ["nDCG@10", "AP", "RR", "P@10", "ERR"]
LOSS = "ListNet()"
SHARD_ROWS = 500_000


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report("cluster", quick, packages=["ray", "numpy", "pyarrow", "torch", "lightgbm"])
    start = time.monotonic()
    with TemporaryDirectory() as folder, Cluster("local", workers=2) as cluster:
        ray = cluster.connect()
        begin = time.monotonic() - start
        report.note(f"a local cluster starts in {begin:.1f} s")
        evaluation_cost(report, Path(folder), cluster, ray, quick)
        iteration_cost(report, Path(folder), cluster, quick)
        sweep_cost(report, cluster, ray, quick)
        growth(report, Path(folder), cluster, ray, quick, begin)
    faults(report, quick)
    report.finish()


def evaluation_cost(report: Report, folder: Path, cluster: Cluster, ray: Any, quick: bool) -> None:
    """Evaluation over Ray beside tasks that only read, and beside one process."""
    rows = 4_000_000 if quick else 10_000_000
    shards = _scored(folder, rows)
    bare = ray.remote(read_columns).options(num_cpus=1)
    paths = [str(shards.folder / shard.file) for shard in shards.shards]
    functions: dict[str, Callable[[], object]] = {
        "Podium": lambda: evaluate_shards("nDCG@10", shards, cluster=cluster),
        "bare": lambda: ray.get([bare.remote(path, COLUMNS) for path in paths]),
        "one process": lambda: evaluate_table("nDCG@10", shards.folder),
    }
    for function in functions.values():
        function()
    seconds = median_seconds(functions, 9)
    report.note(
        f"evaluate, {rows:,} rows: " + ", ".join(f"{k} {v:.2f} s" for k, v in seconds.items())
    )
    ratio = seconds["Podium"] / seconds["bare"]
    report.check("evaluation over bare tasks that only read", ratio, 1.5, at_least=False)


def iteration_cost(report: Report, folder: Path, cluster: Cluster, quick: bool) -> None:
    """A linear fit's iteration beside NumPy's two products in one process."""
    rows, features = (500_000, 136) if quick else (2_000_000, 136)
    train = learning_shards(folder / "linear", rows, features, 8)
    actors = ShardActors(open_source(train), cluster)
    risk = ShardedRisk(parse_loss(LOSS), actors, train.queries, features)
    whole = [block.features for block in train.blocks()]
    weights = np.full(features, 0.1)
    single = weights.astype(np.float32)

    def products() -> None:
        for matrix in whole:
            scores = matrix @ single
            matrix.T @ scores

    risk(weights)
    # Not in turns: NumPy's threads keep a core busy for a while after their work.
    timings: dict[str, list[float]] = {"Podium": [], "NumPy": []}
    for _ in range(3):
        timings["Podium"].append(median_seconds({"it": lambda: risk(weights)}, 5)["it"])
        timings["NumPy"].append(median_seconds({"it": products}, 5)["it"])
        time.sleep(0.3)
    seconds = {name: statistics.median(values) for name, values in timings.items()}
    actors.close()
    report.note(
        f"an iteration on {rows:,} rows x {features}: "
        + ", ".join(f"{k} {v * 1e3:.0f} ms" for k, v in seconds.items())
    )
    ratio = seconds["Podium"] / seconds["NumPy"]
    report.check("linear iteration over NumPy's two products", ratio, 1.3, at_least=False)


def sweep_cost(report: Report, cluster: Cluster, ray: Any, quick: bool) -> None:
    """A sweep of short tasks beside bare tasks."""
    count = 200 if quick else 2_000
    tasks = grid(number=list(range(count)))
    bare = ray.remote(ten_milliseconds).options(num_cpus=1)
    with TemporaryDirectory() as folder:
        number = iter(range(100))
        functions: dict[str, Callable[[], object]] = {
            "sweep": lambda: sweep(
                ten_milliseconds,
                tasks,
                results=f"{folder}/{next(number)}.parquet",
                cluster=cluster,
            ),
            "bare": lambda: ray.get([bare.remote(**task) for task in tasks]),
        }
        sweep(ten_milliseconds, tasks[:20], cluster=cluster)  # workers start
        ray.get([bare.remote(**task) for task in tasks[:20]])
        seconds = median_seconds(functions, 1 if quick else 3)
    report.note(f"{count:,} tasks: " + ", ".join(f"{k} {v:.2f} s" for k, v in seconds.items()))
    ratio = seconds["sweep"] / seconds["bare"]
    report.check("sweep of 10-ms tasks over bare tasks", ratio, 1.2, at_least=False)


def growth(
    report: Report, folder: Path, cluster: Cluster, ray: Any, quick: bool, begin: float
) -> None:
    """Time per row and memory per worker as rows grow, two workers against one, and break-even."""
    sizes = [1_000_000, 4_000_000] if quick else [1_000_000, 10_000_000, 100_000_000]
    repeats = [15, 7] if quick else [15, 7, 3]
    a_row, peaks = [], []
    for rows, times in zip(sizes, repeats, strict=True):
        shards = _scored(folder, rows)
        ways = _ways(shards, cluster)
        ways["cluster"]()  # workers start, files are cached
        took = median_seconds(ways, times)
        seconds, alone = took["cluster"], took["one process"]
        peak = max(ray.get([ray.remote(_peak).remote() for _ in range(8)]))
        a_row.append(seconds / rows)
        peaks.append(peak)
        report.note(
            f"{rows:,} rows in {len(shards.shards)} shards, {len(MEASURES)} measures: "
            f"cluster {seconds:.3f} s, one process {alone:.3f} s, "
            f"a worker's memory {peak:.2f} GiB at most"
        )
    # Two machines halve the work, if nothing holds them up, but a cluster must be started first.
    report.note(
        f"two machines like this one would be sooner done from {2 * begin * rows / alone:,.0f} rows"
    )
    flat = max(a_row) / min(a_row)
    report.check("time per row, slowest size over fastest", flat, 1.3, at_least=False)
    report.check(
        "memory per worker, most over fewest rows", peaks[-1] / peaks[0], 2, at_least=False
    )
    one = Cluster(cluster.address, workers=1)
    at_once = {1: one, 2: cluster}
    by_workers = {
        workers: _seconds(lambda c=where: _paced(shards, c))  # type: ignore[misc]
        for workers, where in at_once.items()
    }
    report.note(
        f"{sizes[-1]:,} rows with at most 1 and 2 shards at a time: "
        f"{by_workers[1]:.2f} and {by_workers[2]:.2f} s, "
        f"speed-up {by_workers[1] / by_workers[2]:.2f}"
    )


def _scored(folder: Path, rows: int) -> ShardSet:
    """Scored rows, written the first time they are asked for."""
    path = folder / f"scored{rows}"
    return ShardSet.open(path) if path.exists() else scored_shards(path, rows, SHARD_ROWS)


def _ways(shards: ShardSet, cluster: Cluster) -> dict[str, Callable[[], object]]:
    return {
        "cluster": lambda: evaluate_shards(MEASURES, shards, cluster=cluster),
        "one process": lambda: evaluate_table(MEASURES, shards.folder),
    }


def _paced(shards: Any, cluster: Cluster) -> None:
    """An evaluation with as many shards in flight as there are workers."""
    evaluating: Any = import_module("podium.cluster.evaluating")

    before = evaluating.AHEAD
    evaluating.AHEAD = 1
    try:
        evaluate_shards(MEASURES, shards, cluster=cluster)
    finally:
        evaluating.AHEAD = before


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _peak() -> float:
    """The most memory that a worker process had, in GiB."""
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 2**20 if match else float("nan")


if __name__ == "__main__":
    main()

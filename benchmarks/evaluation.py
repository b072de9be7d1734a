"""Evaluating beside the tools people use: nDCG@10 end to end from a Parquet file.

    python -m benchmarks.evaluation [--quick]

Every tool starts from one Parquet file (query_id, document_id, label, score) in memory of the
operating system and ends with the mean. What a tool needs in between (dictionaries, groups, a
matrix) is part of its time, as it is of its users'; imports and compiling are not. Its value has to
be Podium's by the tool's conventions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._report import Report, median_seconds, run_measured, wants_quick
from podium.kernels import Doubles, Floats, Ints, kernel
from podium.measures import evaluate, evaluate_table
from podium.measures.presets import conventions_named
from podium.threads import for_each_query

_FOUR = ["nDCG@10", "ERR@20", "P@10", "AP"]
# How many times as fast Podium must be, by tool.
_TARGETS = {
    "xgboost": 2,
    "lightgbm": 4,
    "pytrec_eval": 20,
    "ir_measures": 20,
    "rax": 15,
    "ranx": 100,
}
_CONVENTIONS = {"pytrec_eval": "trec_eval", "ir_measures": "trec_eval", "rax": "podium"}
"""Where a preset has another name than the tool."""
_PACKAGES = ["numpy", "numba", "pyarrow", "xgboost-cpu", "lightgbm", "pytrec-eval-terrier"]


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    packages = [*_PACKAGES, "ir-measures", "rax", "ranx"]
    report = Report("evaluation", quick, packages=packages)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [(100_000, 20), (10_000, 100)] if quick else [(1_000_000, 20), (10_000, 100)]
        for queries, documents in sizes:
            path = Path(folder) / f"{queries}.parquet"
            write_scores(path, queries, documents)
            _against_peers(report, path, queries, documents, quick)
        _against_read(report, Path(folder) / f"{sizes[0][0]}.parquet", *sizes[0])
        _in_memory(report, quick)
        _start(report, Path(folder))
        _stream(report, Path(folder), quick)
    report.finish()


def write_scores(path: Path, queries: int, documents: int, *, with_ids: bool = True) -> None:
    """Write labels and scores of queries to Parquet."""
    random = np.random.default_rng(queries)
    writer = None
    for first in range(0, queries, 50_000):
        rows = min(50_000, queries - first) * documents
        number = np.repeat(np.arange(first, first + rows // documents), documents)
        columns = {
            "query_id": pa.array(number).cast(pa.string()),
            "label": random.integers(0, 5, rows).astype(np.float32),
            "score": random.random(rows, np.float32),
        }
        if with_ids:
            columns["document_id"] = pa.array(np.arange(rows)).cast(pa.string())
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _against_peers(report: Report, path: Path, queries: int, documents: int, quick: bool) -> None:
    shape = f"{queries:,} x {documents}"
    ways: dict[str, Callable[[], object]] = {
        "one": lambda: evaluate_table("nDCG@10", path),
        "four": lambda: evaluate_table(_FOUR, path),
    }
    for way in ways.values():
        way()  # compiles, unless that was done before
    seconds = median_seconds(ways, 5)
    report.note(f"{shape}: podium {seconds['one']:.3f} s, four measures {seconds['four']:.3f} s")
    small = path.with_suffix(".small.parquet")
    write_scores(small, 1000, documents)
    for name, tool in _PEERS.items():
        if name == "ranx" and quick:
            report.note("ranx compiles for a minute before its first figure: full size only")
            continue
        quick_one = name in ("xgboost", "lightgbm", "rax")
        # Imports and compiles; rax compiles for a shape.
        tool(path if quick_one else small, documents)
        values: list[float] = []
        peer = partial(_collect, values, tool, path, documents)
        times = (2 if name == "rax" and quick else 5) if quick_one else 1
        pair = median_seconds({"podium": ways["one"], "peer": peer}, times)
        # A few scores of a million queries are tied, too few to matter; ids are not read.
        conventions = replace(conventions_named(_CONVENTIONS.get(name, name)), ties="expected")
        own = evaluate_table("nDCG@10", path, conventions=conventions)
        report.check(
            f"{shape}: distance from {name}'s value",
            abs(values[-1] - own.means["nDCG@10"]),
            1e-5,
            unit="",
            at_least=False,
        )
        report.check(
            f"{shape}: nDCG@10 against {name} ({pair['peer']:.2f} s)",
            pair["peer"] / pair["podium"],
            _TARGETS[name],
        )
    report.check(
        f"{shape}: {', '.join(_FOUR)} against nDCG@10 alone",
        seconds["four"] / seconds["one"],
        3,
        at_least=False,
    )


def _collect(
    values: list[float], tool: Callable[[Path, int], float], path: Path, documents: int
) -> None:
    values.append(tool(path, documents))


def _against_read(report: Report, path: Path, queries: int, documents: int) -> None:
    """A file beside what PyArrow alone takes to read the columns that are needed."""
    columns = ["query_id", "label", "score"]
    ways: dict[str, Callable[[], object]] = {
        "podium": lambda: evaluate_table("nDCG@10", path),
        "read": lambda: pq.read_table(path, columns=columns),
    }
    seconds = median_seconds(ways, 5)
    report.check(
        f"{queries:,} x {documents}: nDCG@10 against PyArrow's read ({seconds['read']:.3f} s)",
        seconds["podium"] / seconds["read"],
        2,
        at_least=False,
    )


def _in_memory(report: Report, quick: bool) -> None:
    """Arrays that are there already, beside one pass over them by NumPy and a loop for nDCG@10."""
    queries, documents = 100_000 if quick else 1_000_000, 20
    random = np.random.default_rng(0)
    labels = random.integers(0, 5, queries * documents).astype(np.float32)
    scores = random.random(queries * documents, np.float32)
    group = np.full(queries, documents)
    offsets = np.arange(queries + 1) * documents
    gains = np.array([0.0, 1.0, 3.0, 7.0, 15.0])
    discounts = np.asarray(1 / np.log2(np.arange(2, 12)), np.float64)
    values = np.empty(queries)

    def loop(first: int, last: int) -> None:
        _ndcg_alone(labels, scores, offsets, first, last, gains, discounts, values)

    ways: dict[str, Callable[[], object]] = {
        "podium": lambda: evaluate("nDCG@10", labels, scores, group=group),
        "loop": lambda: for_each_query(loop, offsets),
        "pass": lambda: (labels * scores).sum(),
    }
    for way in ways.values():
        way()
    seconds = median_seconds(ways, 9)
    shape = f"{queries:,} x {documents} in memory"
    mean = evaluate("nDCG@10", labels, scores, group=group).means["nDCG@10"]
    report.check(
        f"{shape}: distance from that loop", abs(float(np.nanmean(values)) - mean), 1e-5,
        at_least=False, unit="",
    )  # fmt: skip
    report.check(
        f"{shape}, against one pass ({seconds['pass']:.3f} s)",
        seconds["podium"] / seconds["pass"],
        8,
        at_least=False,
    )
    report.check(
        f"{shape}, against a loop for nDCG@10 alone ({seconds['loop'] / seconds['pass']:.1f} "
        "passes)",
        seconds["podium"] / seconds["loop"],
        2.5,
        at_least=False,
    )


@kernel
def _ndcg_alone(
    labels: Floats,
    scores: Floats,
    offsets: Ints,
    first: int,
    last: int,
    gains: Doubles,
    discounts: Doubles,
    values: Doubles,
) -> None:
    """The least that any nDCG does: ranks by counting, gains of the first, gains of the best.

    It checks nothing, and knows neither ties nor labels other than 0 to 4.
    """
    counts = np.zeros(len(gains), np.int64)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        total = best = 0.0
        for row in range(begin, end):
            larger = np.uint32(0)
            for other in scores[begin:end]:
                larger = np.uint32(larger + np.uint32(other > scores[row]))
            grade = int(labels[row])
            counts[grade] += 1
            if larger < len(discounts):
                total += gains[grade] * discounts[larger]
        rank = 0
        for grade in range(len(gains) - 1, -1, -1):
            for _ in range(min(counts[grade], len(discounts) - rank)):
                best += gains[grade] * discounts[rank]
                rank += 1
            counts[grade] = 0
        values[query] = total / best if best > 0.0 else np.nan


def _columns(path: Path, *names: str) -> list[np.ndarray]:
    table = pq.read_table(path, columns=list(names))
    return [table[name].to_numpy() for name in names]


def _sizes(path: Path) -> np.ndarray:
    codes = pq.read_table(path, columns=["query_id"], read_dictionary=["query_id"])
    numbers = codes["query_id"].unify_dictionaries().combine_chunks().indices.to_numpy()
    starts = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
    return np.diff(np.append(starts, len(numbers)))


def _xgboost(path: Path, _documents: int) -> float:
    import xgboost

    labels, scores = _columns(path, "label", "score")
    rows = xgboost.DMatrix(np.zeros((len(labels), 1), np.float32), labels, nthread=2)
    rows.set_group(_sizes(path))
    rows.set_base_margin(scores)  # a model without trees predicts the margin
    booster = xgboost.Booster(
        {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "base_score": 0, "nthread": 2},
        cache=[rows],
    )
    return float(booster.eval(rows).rpartition(":")[2])


def _lightgbm(path: Path, _documents: int) -> float:
    import lightgbm

    labels, scores = _columns(path, "label", "score")
    settings = {"metric": "ndcg", "eval_at": [10], "verbosity": -1, "num_threads": 2}
    settings |= {"objective": "none", "feature_pre_filter": False}
    rows = lightgbm.Dataset(
        np.zeros((len(labels), 1), np.float32),
        labels,
        group=_sizes(path),
        init_score=scores,
        params=settings,
    )
    return float(lightgbm.Booster(settings, rows).eval_train()[0][2])


@cache
def _rax_metric() -> Callable[[np.ndarray, np.ndarray], float]:
    import jax
    import rax

    metric: Callable[[np.ndarray, np.ndarray], float] = jax.jit(
        lambda s, y: rax.ndcg_metric(s, y, topn=10)
    )
    return metric


def _rax(path: Path, documents: int) -> float:
    labels, scores = _columns(path, "label", "score")
    return float(_rax_metric()(scores.reshape(-1, documents), labels.reshape(-1, documents)))


def _dictionaries(path: Path) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    table = pq.read_table(path, columns=["query_id", "document_id", "label", "score"])
    documents, scores = table["document_id"].to_pylist(), table["score"].to_pylist()
    labels = table["label"].to_numpy().astype(np.int64).tolist()
    ends = np.cumsum(_sizes(path)).tolist()
    begins = [0, *ends[:-1]]
    queries = table["query_id"].take(begins).to_pylist()
    truth: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, begin, end in zip(queries, begins, ends, strict=True):
        names = documents[begin:end]
        truth[query] = dict(zip(names, labels[begin:end], strict=True))
        run[query] = dict(zip(names, scores[begin:end], strict=True))
    return truth, run


def _pytrec_eval(path: Path, _documents: int) -> float:
    import pytrec_eval

    truth, run = _dictionaries(path)
    results = pytrec_eval.RelevanceEvaluator(truth, {"ndcg_cut.10"}).evaluate(run)
    return float(np.mean([values["ndcg_cut_10"] for values in results.values()]))


def _ir_measures(path: Path, _documents: int) -> float:
    import ir_measures

    truth, run = _dictionaries(path)
    measure = ir_measures.nDCG @ 10
    return float(ir_measures.calc_aggregate([measure], truth, run)[measure])


def _ranx(path: Path, _documents: int) -> float:
    import ranx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth, run = _dictionaries(path)
        return float(ranx.evaluate(ranx.Qrels(truth), ranx.Run(run), "ndcg@10"))


_PEERS: dict[str, Callable[[Path, int], float]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "rax": _rax,
    "pytrec_eval": _pytrec_eval,
    "ir_measures": _ir_measures,
    "ranx": _ranx,
}


def _start(report: Report, folder: Path) -> None:
    """A fresh process that computes one measure on 1000 queries, cold and with cached kernels."""
    path = folder / "start.parquet"
    write_scores(path, 1000, 20)
    code = f"from podium.measures import evaluate_table; evaluate_table('nDCG@10', {str(path)!r})"
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installers write bytecode: so has a user

    def seconds_of(cache: str) -> float:
        start = time.perf_counter()
        settings = environment | {"NUMBA_CACHE_DIR": str(folder / cache)}
        subprocess.run([sys.executable, "-c", code], env=settings, check=True)
        return time.perf_counter() - start

    seconds_of("another cache")  # writes the bytecode
    seconds = [seconds_of("cache") for _ in range(4)]
    report.check("fresh process, nothing compiled", seconds[0], 5, at_least=False, unit="s")
    report.check(
        "fresh process, kernels cached", float(np.median(seconds[1:])), 2, at_least=False, unit="s"
    )


def _stream(report: Report, folder: Path, quick: bool) -> None:
    """Memory and time per row of a file far larger than memory should be asked to hold."""
    small, large = (10_000, 100_000) if quick else (100_000, 10_000_000)
    usage = {}
    for queries in (small, large):
        path = folder / "stream.parquet"
        write_scores(path, queries, 20, with_ids=False)
        times = 5 if queries == small else 1
        code = (
            "import time; from podium import kernels; kernels.SMALL = -1; "
            "from podium.measures import evaluate_table as e; "
            f"e('nDCG@10', {str(folder / 'start.parquet')!r}); t = time.perf_counter(); "
            f"[e('nDCG@10', {str(path)!r}) for _ in range({times})]; "
            f"print((time.perf_counter() - t) / {times})"
        )
        printed, memory = run_measured(code)
        usage[queries] = float(printed) / (queries * 20), memory
    rows = large * 20
    report.check(f"{rows:,} rows, most memory", usage[large][1], 1.5, at_least=False, unit="GiB")
    report.check(
        f"time per row, {rows:,} rows against {small * 20:,}",
        usage[large][0] / usage[small][0],
        1.3,
        at_least=False,
    )


if __name__ == "__main__":
    main()

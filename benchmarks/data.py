"""Reading LETOR text beside scikit-learn and XGBoost, and the memory of what streams.

    python -m benchmarks.data [--quick]

All three read one generated file, in one process, two threads each where they have threads. The
file holds 136 features of six decimals, 100 documents a query and a document id in each comment.

Commands that stream run on data of three sizes, each four times the one before; the most memory of
a process, without files that it maps, must not grow with them, or with ``--quick``, whose files are
smaller than a block, stay below a bound. Parquet files are as pandas writes them, in row groups of
a million rows; a log of ``podium serve`` has a ranking of another query on every line.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._report import Report, median_seconds, run_measured, wants_quick
from podium.data import Dataset, ShardSet, read_letor, write_letor

_FEATURES = 136
_QUERIES_A_BLOCK = 40
_DOCUMENTS = 100


def main() -> None:
    """Measure and report."""
    quick = wants_quick(__doc__)
    report = Report(
        "data", quick, packages=["numpy", "numba", "pyarrow", "scikit-learn", "xgboost-cpu"]
    )
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train.txt"
        write_letor(_blocks(16 if quick else 90), text)
        size = text.stat().st_size
        report.note(f"{size / 1e6:.0f} MB of LETOR text")
        _read(report, text, size)
        _convert(report, text)
        _streams(report, Path(folder), quick)
    report.finish()


def _blocks(count: int) -> Iterator[Dataset]:
    random = np.random.default_rng(0)
    rows = _QUERIES_A_BLOCK * _DOCUMENTS
    for block in range(count):
        features = random.random((rows, _FEATURES), np.float32).round(6)
        features[random.random(features.shape) < 0.2] = 0.0
        yield Dataset.from_arrays(
            features,
            labels=random.integers(0, 5, rows),
            group=[_DOCUMENTS] * _QUERIES_A_BLOCK,
            query_ids=[str(block * _QUERIES_A_BLOCK + query) for query in range(_QUERIES_A_BLOCK)],
            document_ids=[f"D{block:04d}-{row:06d}" for row in range(rows)],
        )


def _read(report: Report, text: Path, size: int) -> None:
    import xgboost
    from sklearn.datasets import load_svmlight_file

    xgboost.set_config(verbosity=0)

    def by_xgboost() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            xgboost.DMatrix(f"{text}?format=libsvm", nthread=2)

    read_letor(text)  # compiles, unless that was done before
    seconds = median_seconds({"podium": lambda: read_letor(text), "xgboost": by_xgboost}, 5)
    # Once is enough for scikit-learn, which takes minutes: its query ids cost quadratic time.
    seconds |= median_seconds({"sklearn": lambda: load_svmlight_file(text, query_id=True)}, 1)
    rates = {name: size / value for name, value in seconds.items()}
    report.note(
        f"MB/s: podium {rates['podium'] / 1e6:.0f}, xgboost {rates['xgboost'] / 1e6:.0f}, "
        f"scikit-learn {rates['sklearn'] / 1e6:.1f}"
    )
    report.check("reading, against scikit-learn", rates["podium"] / rates["sklearn"], 20)
    report.check("reading, against XGBoost", rates["podium"] / rates["xgboost"], 1.5)


def _convert(report: Report, text: Path) -> None:
    shards = text.with_name("shards")
    memory = _most_memory("convert", text, shards)
    shard_set = ShardSet.open(shards)
    shard_set.verify()
    report.note(f"podium convert: {shard_set}")
    report.check("podium convert, most memory", memory, 1, at_least=False, unit="GiB")


def _most_memory(*arguments: object) -> float:
    words = ["podium", *map(str, arguments)]
    code = f"import sys; from podium.cli import app; sys.argv = {words!r}\n"
    return run_measured(code + "app(standalone_mode=False)")[1]


def _streams(report: Report, folder: Path, quick: bool) -> None:
    """Hold the memory at 1, 4 and 16 GB (of logs, a quarter of it) against each other."""
    unit = 6_000_000 if quick else 1_000_000_000
    memory: dict[str, list[float]] = {}
    for size in (16 * unit, 4 * unit, unit):  # what compiles is none of the smaller ones
        table, shards, log = (folder / name for name in ("table.parquet", "stream", "log.jsonl"))
        _write_table(table, size)
        _write_log(log, size // 4)
        commands: dict[str, tuple[object, ...]] = {
            "convert a Parquet file": ("convert", table, shards),
            "evaluate a Parquet file": ("evaluate", table, "--score-column", "1"),
            "train from shards": (
                "train", shards, folder / "ranker", "-s", "linear", "--set", "max_iter=1",
            ),
            "features from-log": ("features", "from-log", log, folder / "log.parquet"),
        }  # fmt: skip
        for name, command in commands.items():
            memory.setdefault(name, []).append(_most_memory(*command))
        shutil.rmtree(shards)
    for name, used in memory.items():
        report.note(f"{name}, three sizes: {', '.join(f'{each:.2f}' for each in used)} GiB")
        if quick:  # what is smaller than a block needs less than one
            report.check(f"{name}: most memory", max(used), 1, at_least=False, unit="GiB")
        else:
            growth = max(used) / min(used)
            report.check(f"{name}: most memory at three sizes", growth, 1.2, at_least=False)


def _write_table(path: Path, size: int) -> None:
    random = np.random.default_rng(0)
    rows = max(size // (4 * _FEATURES) // _DOCUMENTS, 1) * _DOCUMENTS
    block = min(rows, 1 << 20) // _DOCUMENTS * _DOCUMENTS
    columns = {str(number): random.random(block, np.float32) for number in range(1, _FEATURES + 1)}
    columns["label"] = random.integers(0, 5, block).astype(np.float32)
    schema = pa.schema([("query_id", pa.string()), *((name, pa.float32()) for name in columns)])
    # Without compression: random numbers have none, and the size is that of the data.
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for first in range(0, rows, block):
            here = min(block, rows - first)
            queries = np.arange(first, first + here) // _DOCUMENTS
            ids = pa.array(queries).cast(pa.string())
            some = {name: values[:here] for name, values in columns.items()}
            writer.write_table(pa.table({"query_id": ids} | some), row_group_size=here)


def _write_log(path: Path, size: int) -> None:
    random = np.random.default_rng(0)
    features = {str(number): random.random(100).round(6).tolist() for number in range(46)}
    content = {"ids": list(range(100)), "scores": [0.5] * 100, "features": features}
    line = json.dumps(content).removeprefix("{")
    with path.open("w") as file:
        for number in range(max(size // len(line), 1)):
            file.write(f'{{"model": "m", "query": "q{number}", {line}\n')


if __name__ == "__main__":
    main()

"""Reading LETOR text beside scikit-learn and XGBoost, and the memory of converting it to shards.

    python -m benchmarks.data [--quick]

All three read one generated file, in one process, two threads each where they have threads. The
file holds 136 features of six decimals, 100 documents a query and a document id in each comment.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

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
    arguments = ["podium", "convert", str(text), str(shards)]
    code = f"import sys; from podium.cli import app; sys.argv = {arguments!r}\n"
    code += "app(standalone_mode=False)"
    _, memory = run_measured(code)
    shard_set = ShardSet.open(shards)
    shard_set.verify()
    report.note(f"podium convert: {shard_set}")
    report.check("podium convert, most memory", memory, 1, at_least=False, unit="GiB")


if __name__ == "__main__":
    main()

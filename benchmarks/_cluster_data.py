"""Data and tasks that the cluster's benchmark works on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from podium.data import Dataset, ShardSet, write_shards

QUERY_ROWS = 100


def scored_shards(folder: Path, rows: int, shard_rows: int) -> ShardSet:
    """Judged rows with a score, in shards of about so many rows; written block by block."""
    shard_rows = shard_rows // QUERY_ROWS * QUERY_ROWS

    def blocks() -> Iterator[Dataset]:
        for first in range(0, rows, shard_rows):
            count = min(shard_rows, rows - first)
            draw = np.random.default_rng(first)
            ids = [f"q{first // QUERY_ROWS + query}" for query in range(count // QUERY_ROWS)]
            yield Dataset.from_arrays(
                draw.random((count, 1), np.float32),
                draw.integers(0, 5, count),
                group=np.full(count // QUERY_ROWS, QUERY_ROWS),
                query_ids=ids,
                feature_names=["score"],
            )

    return write_shards(blocks(), folder, shard_bytes=4 * shard_rows)


def learning_shards(folder: Path, rows: int, features: int, shards: int) -> ShardSet:
    """Rows to learn from, with labels that follow a noisy weighted sum."""

    def blocks() -> Iterator[Dataset]:
        each = rows // shards // QUERY_ROWS * QUERY_ROWS
        for shard in range(shards):
            draw = np.random.default_rng(shard)
            matrix = draw.random((each, features), np.float32)
            truth = matrix[:, :3] @ np.array([2.0, -1.0, 0.5]) + 0.3 * draw.normal(size=each)
            ids = [f"s{shard}-{query}" for query in range(each // QUERY_ROWS)]
            yield Dataset.from_arrays(
                matrix,
                np.digitize(truth, np.quantile(truth, [0.6, 0.8, 0.95])),
                group=np.full(each // QUERY_ROWS, QUERY_ROWS),
                query_ids=ids,
            )

    each = rows // shards // QUERY_ROWS * QUERY_ROWS
    return write_shards(blocks(), folder, shard_bytes=4 * features * each)


def read_columns(path: str, columns: list[str]) -> int:
    """What a bare task does: read, and nothing else."""
    return len(pq.read_table(path, columns=columns, use_threads=False))


def ten_milliseconds(number: int) -> dict[str, Any]:
    """A task of a sweep."""
    return nap(number, 0.01)


def nap(number: int, seconds: float) -> dict[str, Any]:
    """A task that takes its time."""
    time.sleep(seconds)
    return {"square": number * number}

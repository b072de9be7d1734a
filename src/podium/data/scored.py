"""Judged rows with scores, streamed from Parquet files and shard sets in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.data.files import Reporter
from podium.data.formats.parquet_file import open_parquet
from podium.data.frames import to_arrow, to_numpy
from podium.data.grouping import Strings, as_strings
from podium.data.shards import ShardSet
from podium.data.stream import SeenQueries, check_not_repeated
from podium.errors import DataError
from podium.kernels import Ints
from podium.threads import ordered_map

Columns: TypeAlias = tuple[str, str, str]
"""Names of the columns with query ids, labels and scores."""

_ROWS = 1 << 19


@dataclass(frozen=True)
class ScoredRows:
    """Judged and scored rows of some queries.

    Attributes:
        query_ids: One id per query.
        starts: The first row of each query.
        labels: One label per row.
        scores: One score per row.
    """

    query_ids: Strings
    starts: Ints
    labels: NDArray[Any]
    scores: NDArray[Any]


def iter_scored(
    source: str | os.PathLike[str],
    columns: Columns = ("query_id", "label", "score"),
    *,
    progress: Reporter | None = None,
) -> Iterator[ScoredRows]:
    """Stream the labels and scores of a Parquet file or a shard set, in parts of whole queries.

    Args:
        source: A Parquet file, or the folder of a shard set.
        columns: Names of the columns with query ids, labels and scores; no others are read.
        progress: Called with bytes read and total bytes.

    Example:
        >>> import tempfile
        >>> import pyarrow.parquet as pq
        >>> table = pa.table({"query_id": ["a", "a"], "label": [1, 0], "score": [0.2, 0.9]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(table, f"{folder}/scored.parquet")
        ...     [rows.scores.tolist() for rows in iter_scored(f"{folder}/scored.parquet")]
        [[0.2, 0.9]]
    """
    seen = SeenQueries()
    any_row = False
    for rows in _whole_queries(_parts(Path(source), columns, progress)):
        check_not_repeated(seen.add(rows.query_ids), str(source))
        any_row = True
        yield rows
    if not any_row:
        raise DataError("has no rows", path=source, hint="Is it the right file?")


def _parts(path: Path, columns: Columns, progress: Reporter | None) -> Iterator[ScoredRows]:
    if path.is_dir():
        shards = ShardSet.open(path)
        files = [shards.folder / shard.file for shard in shards.shards]
    else:
        files = [path]
    total = sum(file.stat().st_size for file in files if file.exists())
    done = 0
    for file in files:
        groups = list(_row_groups(file, columns))
        # Batches are read in parallel; only a single batch reads its columns in parallel.
        reader = partial(_read, file, columns, alone=len(groups) == 1)
        for count, part in enumerate(ordered_map(reader, groups), start=1):
            if progress is not None:
                progress(done + file.stat().st_size * count // len(groups), total)
            if len(part.labels):
                yield part
        done += file.stat().st_size


def _row_groups(path: Path, columns: Columns) -> Iterator[list[int]]:
    """Row groups in batches of at least ``_ROWS`` rows."""
    with open_parquet(path) as file:
        schema = file.schema_arrow
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    for column in columns:
        if schema.names.count(column) != 1:
            raise DataError(
                f"does not have exactly one column {column!r}",
                path=path,
                hint=f"Its columns are {', '.join(schema.names[:12])}: name the right ones.",
            )
        if pa.types.is_nested(schema.field(column).type):
            raise DataError(
                f"column {column!r} has lists or structures", path=path, hint="Give single values."
            )
    batch: list[int] = []
    rows = 0
    for index, size in enumerate(sizes):
        batch.append(index)
        rows += size
        if rows >= _ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def _read(path: Path, columns: Columns, groups: list[int], *, alone: bool) -> ScoredRows:
    query, label, score = columns
    # With dictionary codes, runs of one id are found without comparing strings.
    with open_parquet(path, as_codes=[query]) as file:
        table = file.read_row_groups(groups, columns=list(columns), use_threads=alone)
    ids, starts = query_runs(table, query, path)
    numbers = [number_column(table, name, path) for name in (label, score)]
    return ScoredRows(ids, starts, *numbers)


def query_runs(table: pa.Table, query: str, path: object) -> tuple[Strings, Ints]:
    """Return the query id and the first row of each run of rows with one query id."""
    _refuse_missing(table, query, path)
    ids = table[query].unify_dictionaries().combine_chunks()
    codes = to_numpy(ids.indices if pa.types.is_dictionary(ids.type) else ids)
    starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))[: len(codes)]
    return as_strings(ids.take(to_arrow(starts)), "query ids"), starts.astype(np.int64)


def number_column(table: pa.Table, name: str, path: object) -> NDArray[Any]:
    """Return a column of labels or scores as an array."""
    _refuse_missing(table, name, path)
    values = to_numpy(table[name])
    if values.dtype.kind not in "fiub":
        raise DataError(f"column {name!r} is not numeric", path=path, hint="Convert it.")
    return values


def _refuse_missing(table: pa.Table, name: str, path: object) -> None:
    if table[name].null_count:
        raise DataError(f"column {name!r} has missing values", path=path, hint="Fill them.")


def _whole_queries(parts: Iterator[ScoredRows]) -> Iterator[ScoredRows]:
    """Move the last query of each part to the next part, where it may continue."""
    pending: ScoredRows | None = None
    for part in parts:
        if pending is not None:
            cut = int(pending.starts[-1])
            if cut:
                yield ScoredRows(
                    pending.query_ids[:-1],
                    pending.starts[:-1],
                    pending.labels[:cut],
                    pending.scores[:cut],
                )
            last = ScoredRows(
                pending.query_ids[-1:],
                pending.starts[-1:] - cut,
                pending.labels[cut:],
                pending.scores[cut:],
            )
            part = _append(last, part)
        pending = part
    if pending is not None:
        yield pending


def _append(pending: ScoredRows, part: ScoredRows) -> ScoredRows:
    same = pending.query_ids[0] == part.query_ids[0]
    starts = part.starts + len(pending.labels)
    return ScoredRows(
        part.query_ids if same else pa.concat_arrays([pending.query_ids, part.query_ids]),
        np.concatenate(([0], starts[1:] if same else starts)),
        np.concatenate((pending.labels, part.labels)),
        np.concatenate((pending.scores, part.scores)),
    )

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
from podium.data.grouping import Strings, as_strings
from podium.data.shards import ShardSet
from podium.data.stream import SeenQueries, refuse_twice
from podium.errors import DataError
from podium.kernels import Ints
from podium.threads import ordered_map

Columns: TypeAlias = tuple[str, str, str]
"""Of query ids, labels and scores."""

_ROWS = 1 << 19


@dataclass(frozen=True)
class ScoredRows:
    """Judged rows of some queries with a score each.

    Attributes:
        query_ids: Of the queries.
        starts: The first row of each query.
        labels: Of the rows.
        scores: Of the rows.
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
        columns: Those with each row's query id, label and score; no other is read.
        progress: Called with bytes read and bytes in all.

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
    for rows in _whole(_parts(Path(source), columns, progress)):
        refuse_twice(seen.add(rows.query_ids), str(source))
        any_row = True
        yield rows
    if not any_row:
        raise DataError("holds no row", path=source, hint="Is it the right file?")


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
        # Lots are read side by side; only a lone one has columns to read side by side.
        reader = partial(_read, file, columns, alone=len(groups) == 1)
        for place, part in enumerate(ordered_map(reader, groups), start=1):
            if progress is not None:
                progress(done + file.stat().st_size * place // len(groups), total)
            if len(part.labels):
                yield part
        done += file.stat().st_size


def _row_groups(path: Path, columns: Columns) -> Iterator[list[int]]:
    """Row groups in lots of some million rows."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    for column in columns:
        if names.count(column) != 1:
            raise DataError(
                f"has no single column {column!r}",
                path=path,
                hint=f"Its columns are {', '.join(names[:12])}: name the right ones.",
            )
    lot: list[int] = []
    rows = 0
    for place, size in enumerate(sizes):
        lot.append(place)
        rows += size
        if rows >= _ROWS:
            yield lot
            lot, rows = [], 0
    if lot:
        yield lot


def _read(path: Path, columns: Columns, groups: list[int], *, alone: bool) -> ScoredRows:
    query, label, score = columns
    # As codes of a dictionary, runs of one id are found without comparing strings.
    with open_parquet(path, as_codes=[query]) as file:
        table = file.read_row_groups(groups, columns=list(columns), use_threads=alone)
    ids, starts = query_runs(table, query, path)
    numbers = [number_column(table, name, path) for name in (label, score)]
    return ScoredRows(ids, starts, *numbers)


def query_runs(table: pa.Table, query: str, path: object) -> tuple[Strings, Ints]:
    """The id of each run of rows with one query id, and the first row of each run."""
    _refuse_missing(table, query, path)
    ids = table[query].unify_dictionaries().combine_chunks()
    if pa.types.is_dictionary(ids.type):
        codes = ids.indices.to_numpy(zero_copy_only=False)
    else:
        codes = ids.to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))[: len(codes)]
    return as_strings(ids.take(pa.array(starts)), "query ids"), starts.astype(np.int64)


def number_column(table: pa.Table, name: str, path: object) -> NDArray[Any]:
    """A column of labels or scores."""
    _refuse_missing(table, name, path)
    values: NDArray[Any] = table[name].to_numpy()
    if values.dtype.kind not in "fiub":
        raise DataError(f"column {name!r} is not numbers", path=path, hint="Convert it.")
    return values


def _refuse_missing(table: pa.Table, name: str, path: object) -> None:
    if table[name].null_count:
        raise DataError(f"column {name!r} has missing values", path=path, hint="Fill them.")


def _whole(parts: Iterator[ScoredRows]) -> Iterator[ScoredRows]:
    """Move the last query of each part but the last one to the next, where it may go on."""
    waiting: ScoredRows | None = None
    for part in parts:
        if waiting is not None:
            cut = int(waiting.starts[-1])
            if cut:
                yield ScoredRows(
                    waiting.query_ids[:-1],
                    waiting.starts[:-1],
                    waiting.labels[:cut],
                    waiting.scores[:cut],
                )
            last = ScoredRows(
                waiting.query_ids[-1:],
                waiting.starts[-1:] - cut,
                waiting.labels[cut:],
                waiting.scores[cut:],
            )
            part = _append(last, part)
        waiting = part
    if waiting is not None:
        yield waiting


def _append(held: ScoredRows, part: ScoredRows) -> ScoredRows:
    same = held.query_ids[0] == part.query_ids[0]
    starts = part.starts + len(held.labels)
    return ScoredRows(
        part.query_ids if same else pa.concat_arrays([held.query_ids, part.query_ids]),
        np.concatenate(([0], starts[1:] if same else starts)),
        np.concatenate((held.labels, part.labels)),
        np.concatenate((held.scores, part.scores)),
    )

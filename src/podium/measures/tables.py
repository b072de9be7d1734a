"""Evaluating Parquet files and shard sets as they stream by, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from podium.data import ShardSet
from podium.data.files import Reporter
from podium.data.grouping import Strings, as_strings
from podium.data.stream import SeenQueries, refuse_twice
from podium.errors import DataError
from podium.kernels import Ints
from podium.measures.conventions import Conventions
from podium.measures.evaluate import Measures, evaluate
from podium.measures.evaluation import Evaluation, concat
from podium.threads import ordered_map

_ROWS = 1 << 19


@dataclass(frozen=True)
class _Part:
    """Rows of some queries; the last may go on in the next part."""

    query_ids: Strings
    starts: Ints
    labels: NDArray[Any]
    scores: NDArray[Any]


def evaluate_table(
    measures: Measures,
    source: str | os.PathLike[str],
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    conventions: Conventions | str = "podium",
    progress: Reporter | None = None,
) -> Evaluation:
    """Evaluate a Parquet file or a shard set that has a score for each judged row.

    Rows of a query must be together. Only three columns are read, some million rows at a time,
    so the size of the file does not matter.

    Args:
        measures: One or several measures.
        source: A Parquet file, or the folder of a shard set.
        query: The column with each row's query id.
        label: The column with its label.
        score: The column with its score.
        conventions: What to do where tools disagree.
        progress: Called with bytes read and bytes in all.

    Example:
        >>> import tempfile
        >>> table = pa.table({"query_id": ["a", "a"], "label": [1, 0], "score": [0.2, 0.9]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(table, f"{folder}/scored.parquet")
        ...     evaluate_table("RR", f"{folder}/scored.parquet")
        Evaluation(1 queries, RR=0.5)
    """
    seen = SeenQueries()
    results: list[Evaluation] = []
    for part in _whole(_parts(Path(source), (query, label, score), progress)):
        refuse_twice(seen.add(part.query_ids), str(source))
        found = evaluate(
            measures,
            labels=part.labels,
            scores=part.scores,
            offsets=np.append(part.starts, len(part.labels)),
            query_ids=part.query_ids,
            conventions=conventions,
        )
        results.append(found)
    if not results:
        raise DataError("holds no row", path=source, hint="Is it the right file?")
    return concat(results)


def _parts(path: Path, columns: tuple[str, str, str], progress: Reporter | None) -> Iterator[_Part]:
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


def _row_groups(path: Path, columns: tuple[str, str, str]) -> Iterator[list[int]]:
    """Row groups in lots of some million rows."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    except FileNotFoundError as error:
        raise DataError("no such file", path=path, hint="Check the path.") from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet ({error})", path=path) from error
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


def _read(path: Path, columns: tuple[str, str, str], groups: list[int], *, alone: bool) -> _Part:
    query, label, score = columns
    try:
        # As codes of a dictionary, runs of one id are found without comparing strings.
        with pq.ParquetFile(path, read_dictionary=[query]) as file:
            table = file.read_row_groups(groups, columns=list(columns), use_threads=alone)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"is damaged ({str(error)[:200]})", path=path) from error
    for name in columns:
        if table[name].null_count:
            raise DataError(f"column {name!r} has missing values", path=path, hint="Fill them.")
    ids = table[query].unify_dictionaries().combine_chunks()
    if pa.types.is_dictionary(ids.type):
        codes = ids.indices.to_numpy(zero_copy_only=False)
    else:
        codes = ids.to_numpy(zero_copy_only=False)
    starts = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1))[: len(codes)]
    first = ids.take(pa.array(starts))
    numbers = [table[name].to_numpy() for name in (label, score)]
    for name, values in zip((label, score), numbers, strict=True):
        if values.dtype.kind not in "fiub":
            raise DataError(f"column {name!r} is not numbers", path=path, hint="Convert it.")
    return _Part(as_strings(first, "query ids"), starts.astype(np.int64), *numbers)


def _whole(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Move the last query of each part but the last one to the next, where it may go on."""
    waiting: _Part | None = None
    for part in parts:
        if waiting is not None:
            cut = int(waiting.starts[-1])
            if cut:
                yield _Part(
                    waiting.query_ids[:-1],
                    waiting.starts[:-1],
                    waiting.labels[:cut],
                    waiting.scores[:cut],
                )
            last = _Part(
                waiting.query_ids[-1:],
                waiting.starts[-1:] - cut,
                waiting.labels[cut:],
                waiting.scores[cut:],
            )
            part = _append(last, part)
        waiting = part
    if waiting is not None:
        yield waiting


def _append(held: _Part, part: _Part) -> _Part:
    same = held.query_ids[0] == part.query_ids[0]
    starts = part.starts + len(held.labels)
    return _Part(
        part.query_ids if same else pa.concat_arrays([held.query_ids, part.query_ids]),
        np.concatenate(([0], starts[1:] if same else starts)),
        np.concatenate((held.labels, part.labels)),
        np.concatenate((held.scores, part.scores)),
    )

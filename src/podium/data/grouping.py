"""Grouping rows in any order into contiguous queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from podium.data.frames import to_arrow, to_numpy
from podium.errors import ArgumentError, DataError
from podium.kernels import Ints

Strings: TypeAlias = pa.LargeStringArray
"""Ids are Arrow string arrays: compact at a billion rows, and written to Parquet without a copy."""


def as_strings(values: Any, what: str) -> Strings:
    """Convert a sequence of ids to an Arrow string array; numbers become decimal text.

    Example:
        >>> as_strings([10, 11], "query ids").to_pylist()
        ['10', '11']
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind == "i":
        return to_arrow(values).cast(pa.large_string())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, np.ndarray) and values.dtype.kind in "OUST":
        values = values.tolist()
    if isinstance(values, str | bytes):
        raise DataError(f"{what} are one string", hint="Give a list with one id for each row.")
    try:
        strings = values if isinstance(values, pa.Array) else pa.array(values)
        if pa.types.is_dictionary(strings.type):
            strings = strings.dictionary_decode()
        if pa.types.is_floating(strings.type):
            strings = strings.cast(pa.int64())  # refuses fractions
        strings = strings.cast(pa.large_string())
        strings.validate(full=True)  # a Parquet file may call any bytes UTF-8
    except (pa.ArrowException, TypeError, UnicodeError) as error:
        raise DataError(
            f"{what} are not all strings or all integers ({error})",
            hint="Give one id for each row, all of one type.",
        ) from error
    return strings


@dataclass(frozen=True)
class Grouping:
    """How rows are grouped by query; ``order`` sorts them so (None: they are contiguous)."""

    query_ids: Strings
    offsets: Ints
    order: Ints | None


def group_runs(run_ids: Strings, run_starts: Ints, rows: int) -> Grouping:
    """Group rows given as runs of one query id; a query may have several runs.

    Queries keep the order of their first rows, and rows their order within a query.

    Example:
        >>> grouping = group_runs(as_strings(["a", "b", "a"], ""), np.array([0, 2, 3]), 4)
        >>> grouping.query_ids.to_pylist(), grouping.offsets.tolist(), grouping.order.tolist()
        (['a', 'b'], [0, 3, 4], [0, 1, 3, 2])
    """
    encoded = pc.dictionary_encode(run_ids)
    codes = to_numpy(encoded.indices).astype(np.int64)
    lengths = np.diff(np.append(run_starts, rows))
    sizes = np.bincount(codes, weights=lengths, minlength=len(encoded.dictionary))
    offsets = np.concatenate(([0], np.cumsum(sizes.astype(np.int64))))
    contiguous = bool(np.all(np.diff(codes) >= 0))
    order = None if contiguous else np.argsort(np.repeat(codes, lengths), kind="stable")
    return Grouping(encoded.dictionary, offsets, order)


def ungrouped_rows(qid: object) -> ArgumentError:
    """Build the error for rows with neither or both of ``qid`` and ``group``."""
    if qid is None:
        return ArgumentError(
            "the rows are not grouped by query", hint="Give either qid= or group=."
        )
    return ArgumentError("qid= and group= are both given", hint="Give one of them.")


def group_rows(query_of_row: Any) -> Grouping:
    """Group rows by an array with each row's query id."""
    if not isinstance(query_of_row, pa.Array | pa.ChunkedArray):
        try:
            array: NDArray[Any] = np.asarray(query_of_row)
        except ValueError:  # lists of unequal lengths
            array = np.empty((0, 0))
        if array.ndim != 1:
            raise DataError("qid is not one-dimensional", hint="Give one query id for each row.")
        if array.dtype.kind in "iu":  # only one id per run has to become a string
            starts = _run_starts(array)
            return group_runs(as_strings(array[starts], "query ids"), starts, len(array))
    strings = as_strings(query_of_row, "query ids")
    if strings.null_count:
        raise DataError("qid has missing values", hint="Give every row a query id.")
    codes = pc.dictionary_encode(strings)
    starts = _run_starts(to_numpy(codes.indices))
    return group_runs(strings.take(to_arrow(starts)), starts, len(strings))


def group_sizes(group: ArrayLike, rows: int, query_ids: Sequence[str] | Strings | None) -> Grouping:
    """Group contiguous rows by the number of rows per query, as LightGBM does."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
        raise DataError("group is not a list of integers", hint="Give rows per query.")
    sizes = sizes.astype(np.int64)
    if sizes.size and sizes.min() < 1:
        query = int(np.argmin(sizes))
        raise DataError(
            f"group {query} has {sizes[query]} rows", hint="Leave out queries without documents."
        )
    # Single sizes are checked too because the sum of large ones can overflow.
    if sizes.sum() != rows or (sizes.size and sizes.max() > rows):
        raise DataError(
            f"group sizes sum to {sizes.sum()}, there are {rows} rows",
            hint="Check that sizes and rows come from the same file.",
        )
    ids = as_strings(np.arange(len(sizes)) if query_ids is None else query_ids, "query ids")
    repeated = query_ids is not None and len(pc.unique(ids)) != len(ids)
    if len(ids) != len(sizes) or repeated:
        raise DataError(
            f"{len(sizes)} groups do not have {len(sizes)} different query ids",
            hint="Give each group its own id, or leave query_ids out for 0, 1, 2, …",
        )
    return Grouping(ids, np.concatenate(([0], np.cumsum(sizes))), None)


def checked_offsets(offsets: ArrayLike, rows: int | None = None) -> Ints:
    """Convert offsets to int64, checked to start at 0, not to decrease and to end at ``rows``.

    Compiled loops rely on them.
    """
    array: NDArray[Any] = np.asarray(offsets)
    if array.ndim == 1 and array.size and array.dtype.kind in "iu":
        starts = array.astype(np.int64, copy=False)
        falls = bool(np.any(starts[1:] < starts[:-1]))
        if starts[0] == 0 and not falls and (rows is None or starts[-1] == rows):
            return starts
    row_count = "" if rows is None else f" {rows}"
    raise DataError(
        f"offsets do not divide{row_count} rows into queries",
        hint="They are integers that start at 0, increase, and end at the number of rows.",
    )


def _run_starts(values: NDArray[Any]) -> Ints:
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate(([0], changes))[: len(values)].astype(np.int64)

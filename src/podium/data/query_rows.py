"""Base class of all tables grouped by query: offsets, selection, comparison, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from podium.data.frames import to_arrow, to_numpy
from podium.data.grouping import Grouping, Strings, as_strings, checked_offsets
from podium.errors import DataError
from podium.kernels import Ints


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryRows:
    """Rows grouped by query: rows ``offsets[i]`` up to ``offsets[i + 1]`` belong to query ``i``.

    A subclass adds its columns, NumPy or Arrow arrays with one entry per row (or None), and
    lists their names in ``ROW_FIELDS``.

    Attributes:
        query_ids: One id per query.
        offsets: int64, where each query's rows begin, followed by the number of rows.
    """

    ROW_FIELDS: ClassVar[tuple[str, ...]] = ()

    query_ids: Strings
    offsets: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", checked_offsets(self.offsets))
        queries, rows = len(self.query_ids), self.rows
        if len(self.offsets) != queries + 1:
            raise DataError(
                f"{len(self.offsets)} offsets for {queries} queries",
                hint="Give where each query begins, followed by the number of rows.",
            )
        if queries and int(self.sizes.min()) < 1:
            raise DataError("a query has no rows", hint="Leave out queries without documents.")
        for name, column in self._columns().items():
            if len(column) != rows:
                raise DataError(
                    f"{name} has {len(column)} entries for {rows} rows",
                    hint="Give one for each row.",
                )

    def __len__(self) -> int:
        return len(self.query_ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} queries, {self.rows} rows)"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> Ints:
        """The number of rows of each query."""
        return np.diff(self.offsets)

    @cached_property
    def query_of_row(self) -> Ints:
        """The position of each row's query."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def query_id_of_row(self) -> Strings:
        """The id of each row's query."""
        return self.query_ids.take(to_arrow(self.query_of_row))

    def equals(self, other: Self) -> bool:
        """Whether two tables have the same values; NaN equals NaN."""
        columns, other_columns = self._columns(), other._columns()
        return (
            columns.keys() == other_columns.keys()
            and self.query_ids.equals(other.query_ids)
            and np.array_equal(self.offsets, other.offsets)
            and all(_same(columns[name], other_columns[name]) for name in columns)
        )

    def select(self, queries: ArrayLike | Sequence[str]) -> Self:
        """Select queries by position, mask or id, in the order of the argument.

        Example:
            >>> from podium.data import Dataset
            >>> data = Dataset.from_arrays([[1], [2], [3]], labels=[0, 1, 2], qid=[7, 8, 9])
            >>> data.select(["9", "7"]).labels.tolist()
            [2.0, 0.0]
        """
        chosen = self._positions(queries)
        begins, sizes = self.offsets[chosen], self.sizes[chosen]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        rows: slice | Ints
        if len(chosen) and np.all(np.diff(chosen) == 1):  # contiguous rows need no copy
            rows = slice(int(begins[0]), int(begins[0] + offsets[-1]))
        else:
            rows = np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])
        columns = {name: take_rows(column, rows) for name, column in self._columns().items()}
        ids = self.query_ids.take(to_arrow(chosen))
        return replace(self, query_ids=ids, offsets=offsets, **columns)

    def _columns(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in self.ROW_FIELDS}
        return {name: column for name, column in columns.items() if column is not None}

    def _positions(self, queries: Any) -> Ints:
        selection: NDArray[Any] = np.asarray(queries)
        if selection.dtype.kind in "OUT":
            ids = as_strings(queries, "query ids")
            matches = pc.index_in(ids, value_set=self.query_ids)
            if matches.null_count:
                missing = ids.filter(matches.is_null())[0].as_py()
                raise DataError(f"no query has id {missing!r}", hint="See query_ids.")
            chosen = to_numpy(matches).astype(np.int64)
        elif selection.dtype == bool:
            if selection.shape != (len(self),):
                raise DataError(
                    f"the mask does not have {len(self)} entries", hint="Give one per query."
                )
            chosen = np.flatnonzero(selection)
        else:
            if selection.size and selection.dtype.kind not in "iu":
                raise DataError(
                    f"positions cannot have type {selection.dtype}", hint="Give integers."
                )
            chosen = selection.astype(np.int64)
            if chosen.size and (chosen.min() < -len(self) or chosen.max() >= len(self)):
                raise DataError(
                    f"a position is out of range for {len(self)} queries", hint="Count from 0."
                )
            chosen = chosen % max(len(self), 1)
        if len(np.unique(chosen)) != len(chosen):
            raise DataError("a query is selected twice", hint="Select each at most once.")
        return chosen


def take_rows(column: Any, rows: slice | Ints) -> Any:
    """Take rows of a NumPy or Arrow column; a slice is not copied."""
    if isinstance(column, np.ndarray) or isinstance(rows, slice):
        return column[rows]
    return column.take(to_arrow(rows))


def ordered_columns(grouping: Grouping, columns: dict[str, Any]) -> dict[str, Any]:
    """Reorder columns so that the rows of each query are contiguous, if they are not yet."""
    for name, column in columns.items():
        if column is not None and len(column) != grouping.offsets[-1]:
            raise DataError(
                f"{len(column)} {name} for {grouping.offsets[-1]} rows",
                hint="Give one for each row.",
            )
    if grouping.order is None:
        return columns
    return {
        name: None if column is None else take_rows(column, grouping.order)
        for name, column in columns.items()
    }


def join_rows(tables: Sequence[QueryRows]) -> dict[str, Any]:
    """Concatenate the rows of tables; return the fields of the result as a dictionary."""
    fields: dict[str, Any] = {}
    for name in tables[0].ROW_FIELDS:
        columns = [getattr(table, name) for table in tables]
        if all(column is None for column in columns):
            fields[name] = None
        elif isinstance(columns[0], np.ndarray):
            fields[name] = np.concatenate(columns)
        else:
            fields[name] = pa.concat_arrays(
                [
                    pa.nulls(table.rows, pa.large_string()) if column is None else column
                    for column, table in zip(columns, tables, strict=True)
                ]
            )
    sizes = np.concatenate([table.sizes for table in tables])
    fields["query_ids"] = pa.concat_arrays([table.query_ids for table in tables])
    fields["offsets"] = np.concatenate(([0], np.cumsum(sizes)))
    return fields


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    return bool(left.equals(right))

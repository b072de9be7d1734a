"""Slices: the queries that share a value of a column, or a range of its numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from podium.data.frames import arrow_table, first_column, is_frame
from podium.errors import DataError
from podium.registry import unknown_name

QueryProperties: TypeAlias = "Mapping[str, Mapping[Any, Any]] | Any"
"""Columns of queries: ``{column: {query id: value}}``, or a table with a column of query ids."""

QUERY_COLUMNS = ("query_id", "qid", "topic", "query", "id")
"""Names that the column of query ids may have."""

_MOST_VALUES = 8
"""A column of numbers with more values than this is cut into ranges."""
_RANGES = 3
_MOST_SLICES = 1_000
_EXACT_INTEGERS = 2**53
_NAMED = 5
"""How many slices without queries are named."""


@dataclass(frozen=True)
class Slice:
    """Some of the queries of a comparison.

    Attributes:
        column: The column of the queries' properties.
        value: The value that they share, or the range of their values, in words.
        members: Which of the comparison's queries these are.
    """

    column: str
    value: str
    members: NDArray[np.bool_] = field(repr=False)

    @property
    def name(self) -> str:
        """Column and value in one."""
        return f"{self.column}={self.value}"

    def __len__(self) -> int:
        return int(self.members.sum())


def property_columns(properties: QueryProperties, query_ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return each column's values in the order of some queries.

    A query without a row is an error: a slice that lacks queries would be claimed to be safe
    without having been looked at. None is a value of its own: the query is in no slice.

    Example:
        >>> property_columns({"language": {"q1": "en", "q2": "de"}}, ["q2", "q1"])
        {'language': ['de', 'en']}
    """
    columns = _columns(properties)
    for name, column in columns.items():
        missing = next((query for query in query_ids if query not in column), None)
        if missing is not None:
            raise DataError(
                f"query {missing!r} has no value of {name!r}",
                hint="Give every compared query a row; leave the value empty if it has none.",
            )
    return {
        name: [_plain(column[query]) for query in query_ids] for name, column in columns.items()
    }


def left_out_of_slices(
    properties: QueryProperties, query_ids: Sequence[str], column: str
) -> list[str]:
    """Say what a claim about each slice of a column does not cover, one sentence each.

    Example:
        >>> language = {"q1": "de", "q2": None, "q3": "fr"}
        >>> for sentence in left_out_of_slices({"language": language}, ["q1", "q2"], "language"):
        ...     print(sentence)
        1 of 2 compared queries has no value of language, and is in no slice.
        No query of language=fr was compared.
    """
    values = _columns(properties)[column]
    compared = [_plain(values[query]) for query in query_ids]
    sentences = []
    empty = compared.count(None)
    if empty:
        verbs = "has no value of {}, and is" if empty == 1 else "have no value of {}, and are"
        sentences.append(
            f"{empty:,} of {len(compared):,} compared queries {verbs.format(column)} in no slice."
        )
    if not is_numeric(compared):
        known = {_label(value) for value in compared}
        absent = sorted({_label(_plain(value)) for value in values.values()} - known - {""})
        if absent:
            names = ", ".join(f"{column}={value}" for value in absent[:_NAMED])
            more = f" and {len(absent) - _NAMED:,} more" if len(absent) > _NAMED else ""
            sentences.append(f"No query of {names}{more} was compared.")
    return sentences


def slices_of(columns: Mapping[str, Sequence[Any]]) -> list[Slice]:
    """Return the slices of each column: its values, or for many numbers three ranges.

    A column of text that nearly every query has another value of has no slices.

    Example:
        >>> [(each.name, len(each)) for each in slices_of({"language": ["de", "en", "de", None]})]
        [('language=de', 2), ('language=en', 1)]
        >>> [each.value for each in slices_of({"words": list(range(1, 13))})]
        ['up to 4', 'above 4 up to 8', 'above 8']
    """
    slices: list[Slice] = []
    for name, values in columns.items():
        if is_numeric(values):
            slices += _ranges(name, values)
        else:
            labels = np.array([_label(value) for value in values], object)
            kinds = sorted({label for label in labels.tolist() if label})
            # The text of a query, or an id: its values are those of single queries.
            if len(kinds) > max(_MOST_VALUES, np.count_nonzero(labels) / 2):
                continue
            slices += [Slice(name, kind, labels == kind) for kind in kinds]
    if len(slices) > _MOST_SLICES:
        raise DataError(
            f"queries have {len(slices):,} slices",
            hint=f"Give columns with at most {_MOST_SLICES:,} values together.",
        )
    return slices


def column_slices(slices: Sequence[Slice], column: str, value: str = "") -> list[Slice]:
    """Return the slices of one column, or the one of a value."""
    known = list(dict.fromkeys(each.column for each in slices))
    if not known:
        raise DataError(
            "no column of the queries has values to slice by",
            hint="Give a column whose values are those of several queries.",
        )
    if column not in known:
        raise unknown_name("column of queries", column, known)
    chosen = [each for each in slices if each.column == column and value in ("", each.value)]
    if not chosen:
        raise unknown_name(
            f"value of {column}", value, [each.value for each in slices if each.column == column]
        )
    return chosen


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether a column has enough different numbers to be cut into ranges."""
    known = [value for value in values if value is not None]
    return (
        all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        and len(set(known)) > _MOST_VALUES
    )


def _label(value: Any) -> str:
    """A value of a column in one line, whatever a quoted cell has in it; empty for none."""
    return "" if value is None else " ".join(str(value).split())


def _plain(value: Any) -> Any:
    """A number of Python's, None for one that is not finite or a blank, or the value as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, str) and not value.strip():
        return None
    # An id, not an amount, and beyond what a range could distinguish.
    return str(value) if isinstance(value, int) and abs(value) > _EXACT_INTEGERS else value


def _ranges(name: str, values: Sequence[Any]) -> list[Slice]:
    numbers = np.array([np.nan if value is None else value for value in values], np.float64)
    ends = np.nanquantile(numbers, np.arange(1, _RANGES) / _RANGES, method="lower")
    ends = np.unique(ends)
    slices = []
    for low, high in zip((None, *ends.tolist()), (*ends.tolist(), None), strict=True):
        members = ~np.isnan(numbers)
        words = []
        if low is not None:
            members &= numbers > low
            words.append(f"above {low:g}")
        if high is not None:
            members &= numbers <= high
            words.append(f"up to {high:g}")
        if members.any():
            slices.append(Slice(name, " ".join(words), members))
    return slices


def _columns(properties: QueryProperties) -> dict[str, dict[str, Any]]:
    """Each column's values by the ids of queries."""
    if is_frame(properties):
        columns = _of_table(arrow_table(properties))
    elif isinstance(properties, Mapping) and all(
        isinstance(column, Mapping) for column in properties.values()
    ):
        columns = {
            str(name): {str(query): value for query, value in column.items()}
            for name, column in properties.items()
        }
    else:
        raise DataError(
            f"properties of queries are a {type(properties).__name__}",
            hint="Give {column: {query id: value}}, or a table with a column query_id.",
        )
    if not columns:
        raise DataError(
            "queries have no properties", hint="Give at least one column beside the query ids."
        )
    return columns


def _of_table(table: pa.Table) -> dict[str, dict[str, Any]]:
    ids = pc.cast(first_column(table, QUERY_COLUMNS, "query ids"), pa.string()).to_pylist()
    key = next(name for name in QUERY_COLUMNS if name in table.column_names)
    if None in ids:
        raise DataError("a query id is missing", hint="Give every row a query id.")
    repeated, count = Counter(ids).most_common(1)[0] if ids else ("", 0)
    if count > 1:
        raise DataError(f"query {repeated!r} has {count} rows", hint="Give each query one row.")
    return {
        name: dict(zip(ids, table.column(name).to_pylist(), strict=True))
        for name in table.column_names
        if name != key
    }

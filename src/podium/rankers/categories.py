"""Categorical columns of data frames, as codes that a fit and its predictions share.

A column is categorical if its type says so: pandas' ``category``, Polars' ``Categorical`` and
``Enum``, Arrow's dictionaries. A code is the index of a category among those of the fit in
alphabetical order, so it does not depend on the order of rows or of the type's categories.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from podium.data.frames import arrow_table, float_column, is_frame, numeric_columns
from podium.errors import DataError
from podium.kernels import Doubles

Categories: TypeAlias = "Mapping[str, Sequence[str]]"
"""The categories of each categorical column, in the order of their codes."""


def find_categories(X: Any) -> dict[str, list[str]]:
    """Return the categories that occur in each categorical column of a data frame.

    Example:
        >>> table = pa.table({"age": [3, 5], "brand": pa.array(["b", "a"]).dictionary_encode()})
        >>> find_categories(table)
        {'brand': ['a', 'b']}
    """
    if not is_frame(X):
        return {}
    with suppress(DataError):  # what cannot be read as a table is refused where it is read
        table = arrow_table(X)
        return {
            field.name: sorted(pc.drop_null(pc.unique(_strings(table, field.name))).to_pylist())
            for field in table.schema
            if pa.types.is_dictionary(field.type)
        }
    return {}


def category_codes(table: pa.Table, name: str, categories: Sequence[str]) -> Doubles:
    """Return the code of each row's category; NaN for missing and for unknown ones.

    A warning counts the unknown ones. Numbers are refused, as categories too if those of the fit
    are words: they are codes of somebody else's, or categories that lost their type.

    Example:
        >>> category_codes(pa.table({"brand": ["b", "a", None]}), "brand", ["a", "b"]).tolist()
        [1.0, 0.0, nan]
    """
    if _are_codes(table, name, categories):
        raise DataError(
            f"column {name!r} has numbers, and the ranker was fitted on its categories "
            f"({', '.join(categories[:3])}{', …' if len(categories) > 3 else ''})",
            hint=f"Give the categories, not their codes: X[{name!r}] of type category.",
        )
    known, column = pa.array(categories, pa.large_string()), _strings(table, name)
    codes = pc.index_in(column, value_set=known, skip_nulls=True)
    unknown = column.filter(pc.and_(pc.is_null(codes), pc.is_valid(column)))
    if len(unknown):
        warnings.warn(
            f"{len(unknown):,} of {len(column):,} rows have a category in column {name!r} that the "
            f"fit did not have, such as {unknown[0].as_py()!r}: they count as missing",
            stacklevel=2,
        )
    return np.asarray(codes.cast(pa.float64()).to_numpy(), np.float64)


def _are_codes(table: pa.Table, name: str, categories: Sequence[str]) -> bool:
    """Whether a column has numbers that cannot be the categories."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        return (
            pa.types.is_integer(column.type.value_type)
            and column.null_count < len(column)
            and not any(each.lstrip("-").isdigit() for each in categories)
        )
    return bool(
        numeric_columns(table.select([name]), ())
        and not np.isnan(np.asarray(float_column(column, name), np.float64)).all()
    )


def _strings(table: pa.Table, name: str) -> pa.ChunkedArray:
    column = table.column(name)
    try:
        if pa.types.is_dictionary(column.type):
            # Arrow cannot cast the dictionaries of Polars, whose values are string views.
            return pa.chunked_array(
                [_text(part.dictionary).take(part.indices) for part in column.chunks],
                pa.large_string(),
            )
        return column.cast(pa.large_string())
    except pa.ArrowException as error:
        raise DataError(
            f"the categories of column {name!r} are of type {column.type}",
            hint="Give strings or numbers.",
        ) from error


def _text(dictionary: pa.Array) -> pa.Array:
    return pa.array(dictionary.to_pylist()).cast(pa.large_string())

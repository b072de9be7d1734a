"""Names of features: those of a table's columns, or numbers where there are none."""

from __future__ import annotations

from podium.errors import DataError


def numbered_names(count: int) -> tuple[str, ...]:
    """The names of features that have none: their numbers from 1, as in LETOR files.

    Example:
        >>> numbered_names(3)
        ('1', '2', '3')
    """
    return tuple(str(column + 1) for column in range(count))


def are_numbers(names: tuple[str, ...]) -> bool:
    """Whether names say no more than the position of each column."""
    return names == numbered_names(len(names))


def column_names(table: object) -> tuple[str, ...] | None:
    """The column names of a pandas, Polars or Arrow table; None for arrays.

    As in scikit-learn, only strings are names: a table whose column labels are all of other types
    has none, and one with both is refused.

    Example:
        >>> import pyarrow as pa
        >>> column_names(pa.table({"bm25": [0.1], "clicks": [3]}))
        ('bm25', 'clicks')
        >>> column_names([[0.1, 3]]) is None
        True
    """
    labels = getattr(table, "column_names", None)  # Arrow, whose columns are the values
    if labels is None:
        labels = getattr(table, "columns", None)
    if labels is None:
        return None
    strings = [isinstance(label, str) for label in labels]
    if any(strings) and not all(strings):
        other = next(label for label in labels if not isinstance(label, str))
        raise DataError(
            f"some column names are strings, and {other!r} is not",
            hint="Name all columns by strings: X.columns = X.columns.astype(str).",
        )
    return tuple(map(str, labels)) if any(strings) else None

"""Feature names: the column names of a table, or numbers for arrays."""

from __future__ import annotations

from collections import Counter

from podium.errors import DataError


def numbered_names(count: int) -> tuple[str, ...]:
    """Default feature names: 1, 2, 3, …, as in LETOR files.

    Example:
        >>> numbered_names(3)
        ('1', '2', '3')
    """
    return tuple(str(column + 1) for column in range(count))


def are_numbers(names: tuple[str, ...]) -> bool:
    """Whether the names are the default ones, 1, 2, 3, …."""
    return names == numbered_names(len(names))


def column_names(table: object) -> tuple[str, ...] | None:
    """Return the column names of a pandas, Polars or Arrow table, or None for arrays.

    As in scikit-learn, only strings are names: a table whose column labels are all of other types
    has none. A mix of both, duplicate names and multi-level labels are errors.

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
    labels = list(labels)
    if any(isinstance(label, tuple) for label in labels):
        raise DataError(
            "column names have several levels",
            hint="Name all columns by strings: X.columns = ['_'.join(name) for name in X.columns].",
        )
    strings = [isinstance(label, str) for label in labels]
    if any(strings) and not all(strings):
        other = next(label for label in labels if not isinstance(label, str))
        raise DataError(
            f"some column names are strings, and {other!r} is not",
            hint="Name all columns by strings: X.columns = X.columns.astype(str).",
        )
    if not any(strings):
        return None
    names = tuple(map(str, labels))
    refuse_duplicates(names)
    return names


def refuse_duplicates(names: tuple[str, ...]) -> None:
    """Raise a DataError if a name occurs twice."""
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"two features are named {twice!r}", hint="Give each column a unique name.")

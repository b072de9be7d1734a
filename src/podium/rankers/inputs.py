"""New rows in the form of the fit: columns by name, categories as codes, queries of data frames.

Columns are matched by name, in any order, if both sides have names. Features without names (arrays,
LETOR files) have numbers from 1, which are only positions of columns.

scikit-learn splits the columns of ``X`` together, and passes on other arrays with metadata routing
only. So the query ids may be a column of ``X``, as in XGBoost's ranker.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa

from podium.data import Dataset, ShardSet
from podium.data.columns import are_numbers, column_names
from podium.data.definitions_hash import checked_hash, require_same_definitions
from podium.data.frames import arrow_table, feature_matrix, is_frame
from podium.data.numbers import as_numbers, infinite_feature
from podium.errors import ArgumentError, DataError
from podium.kernels import Floats
from podium.rankers.categories import Categories, category_codes
from podium.rankers.sparse_rows import is_sparse, sparse_matrix

QUERY_COLUMN = "qid"

_MAX_LISTED = 10
"""The number of names listed in a message."""


@dataclass(frozen=True)
class FittedFeatures:
    """The features that a ranker was fitted on.

    Attributes:
        names: Their names, or their numbers from 1.
        named: Whether those are names.
        categories: The categories of each categorical feature, in the order of their codes.
        definitions_hash: The hash of the definitions that they follow, or None.
    """

    names: tuple[str, ...]
    named: bool
    categories: dict[str, list[str]] = field(default_factory=dict)
    definitions_hash: str | None = None

    def data_set(self, data: Dataset) -> Dataset:
        """Return data with the columns of the fit; a DataError if they are defined otherwise."""
        require_same_definitions(
            self.definitions_hash, data.definitions_hash, "the ranker", "the data"
        )
        return aligned_dataset(data, self.names)

    def sparse(self, X: Any) -> Any:
        """Return a sparse matrix, checked, in rows."""
        matrix = sparse_matrix(X)
        _require_same_count(matrix.shape[1], len(self.names))
        return matrix

    def matrix(self, X: Any) -> Floats:
        """Return the rows of an array or data frame with columns in the order of the fit."""
        if QUERY_COLUMN not in self.names:
            X = arrow_table(X).drop_columns([QUERY_COLUMN]) if _has_query_column(X) else X
        matrix = feature_rows(X, self.categories)
        if np.isinf(matrix).any():
            raise infinite_feature()
        return aligned_matrix(X, matrix, self.names, self.named)

    def one_query(self, X: Any, query: str | None) -> Dataset:
        """Return the rows of one query, with features in the order of the fit."""
        if isinstance(X, ShardSet):
            raise ArgumentError("explain needs a data set in memory", hint="Give X.load().")
        if not isinstance(X, Dataset):
            _, qid = with_query_column(X, None, None)
            sparse = is_sparse(X)
            matrix = self.sparse(X).toarray().astype(np.float32) if sparse else self.matrix(X)
            groups: dict[str, Any] = {"qid": qid}
            if qid is None:
                groups = {"group": [len(matrix)], "query_ids": ["" if query is None else query]}
            X = Dataset.from_arrays(
                matrix, np.zeros(len(matrix)), feature_names=self.names, **groups
            )
        if query is not None:
            X = X.select([query])
        elif len(X) != 1:
            raise ArgumentError(
                f"there are {len(X)} queries", hint="Name the one to explain: query=."
            )
        return aligned_dataset(X, self.names)

    def metadata(self) -> dict[str, Any]:
        """Return them as the JSON of a saved ranker."""
        content: dict[str, Any] = {
            "feature_names": list(self.names),
            "has_feature_names": self.named,
        }
        if self.categories:
            content["categories"] = self.categories
        if self.definitions_hash is not None:
            content["definitions_hash"] = self.definitions_hash
        return content

    @classmethod
    def from_metadata(cls, content: dict[str, Any]) -> Self:
        """Return those that ``metadata`` described; any error of Python's for another content."""
        names = tuple(map(str, content["feature_names"]))
        categories = content.get("categories", {})
        if not isinstance(categories, dict) or not set(categories) <= set(names):
            raise ValueError("the categories are of other features")
        for values in categories.values():
            if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
                raise ValueError("the categories are not strings")
        definitions = checked_hash(content.get("definitions_hash"))
        return cls(names, bool(content["has_feature_names"]), categories, definitions)


def with_query_column(X: Any, qid: Any, group: Any) -> tuple[Any, Any]:
    """Return the features and the query of each row, which may be a column of a data frame.

    Example:
        >>> X, qid = with_query_column(pa.table({"bm25": [0.3], "qid": ["q"]}), None, None)
        >>> X.column_names, qid.to_pylist()
        (['bm25'], ['q'])
    """
    if not _has_query_column(X):
        return X, qid
    if qid is not None or group is not None:
        raise ArgumentError(
            f"X has a column {QUERY_COLUMN!r} as well as qid= or group=",
            hint="Leave one of them out.",
        )
    table = arrow_table(X)
    return table.drop_columns([QUERY_COLUMN]), table.column(QUERY_COLUMN)


def _has_query_column(X: Any) -> bool:
    return is_frame(X) and QUERY_COLUMN in (column_names(X) or ())


def feature_rows(X: Any, categories: Categories) -> Floats:
    """Return rows as a matrix in single precision, with categories as their codes."""
    if is_frame(X):
        column_names(X)  # refuses names that Arrow would refuse less clearly
        table = None
        with suppress(DataError):  # NumPy reads pandas' sparse columns, which Arrow does not have
            table = arrow_table(X)
        if table is not None:
            for name in set(categories) & set(table.column_names):
                codes = pa.array(category_codes(table, name, categories[name]))
                table = table.set_column(table.column_names.index(name), name, codes)
            return feature_matrix(table, table.column_names)
    # Row-major as in a data set: data frames are column-major, and sums in another order are
    # rounded differently.
    return np.ascontiguousarray(as_numbers(X, np.float32, "features", dimensions=2))


def aligned_dataset(data: Dataset, fitted_names: tuple[str, ...]) -> Dataset:
    """Return a data set with its features in the order in which a ranker was fitted on them."""
    if data.feature_names == fitted_names:
        return data
    _require_same_columns(data.feature_names, fitted_names)
    if set(data.feature_names) != set(fitted_names):
        sides = ("the data", "the ranker")
        named, numbered = sides[::-1] if are_numbers(data.feature_names) else sides
        raise DataError(
            f"features have names in {named} and only numbers in {numbered}",
            hint="Give both the same names: Dataset.from_arrays(..., feature_names=...).",
        )
    return data.select_features(fitted_names)


def aligned_matrix(X: object, matrix: Floats, fitted_names: tuple[str, ...], named: bool) -> Floats:
    """Return the rows of an array or a data frame with columns in the order of the fit.

    Where only one side has names, columns are taken by position with a warning, as in scikit-learn.
    If a ranker was fitted without names but a data frame has some of its numbers as column names,
    the numbers are treated as names: a data set does not tell the two apart.

    Args:
        X: The array or data frame as the caller passed it.
        matrix: Its values.
        fitted_names: The names or numbers of the features that the ranker was fitted on.
        named: Whether those are names.
    """
    names = column_names(X)
    if names is not None and (named or set(names) & set(fitted_names)):
        if names == fitted_names:
            return matrix
        _require_same_names(names, fitted_names)
        column_of = {name: column for column, name in enumerate(names)}
        return np.ascontiguousarray(matrix[:, [column_of[name] for name in fitted_names]])
    _require_same_count(matrix.shape[1], len(fitted_names))
    if named or names is not None:
        warnings.warn(
            "X does not have feature names, but the ranker was fitted with feature names"
            if named
            else "X has feature names, but the ranker was fitted without feature names",
            UserWarning,
            stacklevel=4,
        )
    return matrix


def _require_same_columns(names: tuple[str, ...], fitted_names: tuple[str, ...]) -> None:
    if are_numbers(names) or are_numbers(fitted_names):
        _require_same_count(len(names), len(fitted_names))
    else:
        _require_same_names(names, fitted_names)


def _require_same_count(count: int, fitted_count: int) -> None:
    """Raise a DataError for another number of columns than that of the fit."""
    if count != fitted_count:
        raise DataError(
            f"{count} features, but the ranker was fitted on {fitted_count}",
            hint="Give the same columns in the same order.",
        )


def _require_same_names(names: tuple[str, ...], fitted_names: tuple[str, ...]) -> None:
    missing = sorted(set(fitted_names) - set(names), key=fitted_names.index)
    extra = sorted(set(names) - set(fitted_names), key=names.index)
    problems = []
    if missing:
        problems.append(f"features that the ranker was fitted on are missing: {_listed(missing)}")
    if extra:
        problems.append(f"the ranker was not fitted on: {_listed(extra)}")
    if problems:
        raise DataError(
            "; ".join(problems),
            hint="Give all of the ranker's feature_names_, in any order, and no others.",
        )


def _listed(names: list[str]) -> str:
    listed = ", ".join(names[:_MAX_LISTED])
    return f"{listed} and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else listed

"""Match the columns of new data with the features that a ranker was fitted on.

Columns are matched by name, in any order, if both sides have names. Features without names (arrays,
LETOR files) have numbers from 1, which only stand for the position of a column.
"""

from __future__ import annotations

import warnings

import numpy as np

from podium.data import Dataset
from podium.data.columns import are_numbers, column_names
from podium.errors import DataError
from podium.kernels import Floats

_MAX_LISTED = 10
"""The number of names listed in a message."""


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
    require_same_count(matrix.shape[1], len(fitted_names))
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
        require_same_count(len(names), len(fitted_names))
    else:
        _require_same_names(names, fitted_names)


def require_same_count(count: int, fitted_count: int) -> None:
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

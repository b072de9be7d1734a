"""Which of the given columns are the features that a ranker was fitted on.

Names decide where both sides have them, whatever the order. Features without names (arrays, LETOR
files) have numbers from 1, which say no more than the position of a column.
"""

from __future__ import annotations

import warnings

import numpy as np

from podium.data import Dataset
from podium.data.columns import are_numbers, column_names
from podium.errors import DataError
from podium.kernels import Floats

_SHOWN = 10
"""So many names are listed in a message."""


def aligned_dataset(data: Dataset, fitted: tuple[str, ...]) -> Dataset:
    """A data set with its features in the order in which a ranker was fitted on them."""
    if data.feature_names == fitted:
        return data
    _refuse_others(data.feature_names, fitted)
    if set(data.feature_names) != set(fitted):
        sides = ("the data", "the ranker")
        named, numbered = sides[::-1] if are_numbers(data.feature_names) else sides
        raise DataError(
            f"features have names in {named} and only numbers in {numbered}",
            hint="Give both the same names: Dataset.from_arrays(..., feature_names=...).",
        )
    return data.select_features(fitted)


def aligned_matrix(X: object, matrix: Floats, fitted: tuple[str, ...], named: bool) -> Floats:
    """The rows of an array or a data frame, with columns in the order of the fitted features.

    Where only one side has names, columns are taken by position with a warning, as in scikit-learn.
    The numbers of a ranker that was fitted without names are names for a data frame that has some
    of them: a data set does not tell the two apart.
    """
    names = column_names(X)
    if names is not None and (named or set(names) & set(fitted)):
        if names == fitted:
            return matrix
        _refuse_other_names(names, fitted)
        column_of = {name: column for column, name in enumerate(names)}
        return np.ascontiguousarray(matrix[:, [column_of[name] for name in fitted]])
    _refuse_other_number(matrix.shape[1], len(fitted))
    if named or names is not None:
        warnings.warn(
            "X does not have feature names, but the ranker was fitted with feature names"
            if named
            else "X has feature names, but the ranker was fitted without feature names",
            UserWarning,
            stacklevel=3,
        )
    return matrix


def _refuse_others(given: tuple[str, ...], fitted: tuple[str, ...]) -> None:
    """Refuse columns that cannot be the features, by name or by number."""
    if are_numbers(given) or are_numbers(fitted):
        _refuse_other_number(len(given), len(fitted))
    else:
        _refuse_other_names(given, fitted)


def _refuse_other_number(given: int, fitted: int) -> None:
    if given != fitted:
        raise DataError(
            f"{given} features, the ranker was fitted on {fitted}",
            hint="Give the same columns in the same order.",
        )


def _refuse_other_names(given: tuple[str, ...], fitted: tuple[str, ...]) -> None:
    missing = sorted(set(fitted) - set(given), key=fitted.index)
    extra = sorted(set(given) - set(fitted), key=given.index)
    problems = []
    if missing:
        problems.append(f"features that the ranker was fitted on are missing: {_listed(missing)}")
    if extra:
        problems.append(f"it was not fitted on: {_listed(extra)}")
    if problems:
        raise DataError(
            "; ".join(problems),
            hint="Give all of the ranker's feature_names_, in any order, and no others.",
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown

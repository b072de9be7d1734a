"""The two products of a linear scorer, in double precision over single-precision features.

BLAS would need features and weights of one type: either the features are copied to twice their
size, or sums are kept in single precision, which stops solvers short of their tolerance. These
kernels read the features once, as they are, and are bound by memory as BLAS is.
"""

from __future__ import annotations

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints, fast_kernel
from podium.threads import over_queries


def missing_feature() -> DataError:
    """The error of a feature that is missing, which has no product with a weight."""
    return DataError(
        "a feature is missing, which a linear ranker has no weight for",
        hint="Fill missing values first, or train trees.",
    )


def linear_scores(features: Floats, weights: Doubles, offsets: Ints) -> Doubles:
    """``features @ weights``.

    Example:
        >>> linear_scores(np.float32([[1, 2], [3, 4]]), np.array([1.0, 10.0]), np.array([0, 2]))
        array([21., 43.])
    """
    scores = np.empty(len(features))
    over_queries(
        lambda first, last: score_rows(features, weights, scores, offsets[first], offsets[last]),
        offsets,
    )
    return scores


@fast_kernel
def score_rows(features: Floats, weights: Doubles, scores: Doubles, first: int, last: int) -> None:
    """Scores of some rows."""
    for row in range(first, last):
        total = 0.0
        for column in range(features.shape[1]):
            total += features[row, column] * weights[column]
        scores[row] = total


@fast_kernel
def add_rows(features: Floats, row_weights: Doubles, total: Doubles, first: int, last: int) -> None:
    """Add ``features.T @ row_weights`` of some rows to a total."""
    for row in range(first, last):
        weight = row_weights[row]
        if weight != 0.0:
            for column in range(features.shape[1]):
                total[column] += features[row, column] * weight

"""The two products of a linear scorer, in double precision over single-precision features.

BLAS would need features and weights of one type: either the features are copied to twice their
size, or sums are kept in single precision, which stops solvers short of their tolerance. These
kernels read the features once, as they are, and are bound by memory as BLAS is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints, fast_kernel
from podium.kernels.intrinsics import prefetch
from podium.threads import over_queries

_LINE = 16
"""Features that come from memory together."""


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
        lambda first, last: score_rows(
            features[offsets[first] : offsets[last]],
            weights,
            scores[offsets[first] : offsets[last]],
        ),
        offsets,
    )
    return scores


def weighted_features(features: Floats, row_weights: Doubles, offsets: Ints) -> Doubles:
    """``features.T @ row_weights``.

    Example:
        >>> weighted_features(np.float32([[1, 2], [3, 4]]), np.array([1.0, 10.0]), np.array([0, 2]))
        array([31., 42.])
    """

    def part(first: int, last: int) -> Doubles:
        total = np.zeros(features.shape[1])
        rows = slice(offsets[first], offsets[last])
        add_rows(features[rows], row_weights[rows], total)
        return total

    return np.asarray(np.sum(over_queries(part, offsets), axis=0))


@fast_kernel
def score_rows(features: Floats, weights: Doubles, scores: Doubles) -> None:
    """Write the scores of rows."""
    for row in range(len(features)):
        total = 0.0
        for column in range(features.shape[1]):
            total += features[row, column] * weights[column]
        scores[row] = total


@fast_kernel
def _score_and_fetch(features: Floats, weights: Doubles, scores: Doubles, begin: int) -> None:
    """Score the rows of a query, and meanwhile fetch as many after them from memory."""
    columns, size = features.shape[1], len(scores)
    for place in range(size):
        row = begin + place
        if row + size < len(features):
            for entry in range((row + size) * columns, (row + size + 1) * columns, _LINE):
                prefetch(features, entry)
        total = 0.0
        for column in range(columns):
            total += features[row, column] * weights[column]
        scores[place] = total


@fast_kernel
def add_rows(features: Floats, row_weights: Doubles, total: Doubles) -> None:
    """Add ``features.T @ row_weights`` to a total."""
    rows, columns = features.shape
    # Four at a time: the totals are read and written as often as there are rows to add, else.
    for row in range(0, rows - 3, 4):
        one, two = row_weights[row], row_weights[row + 1]
        three, four = row_weights[row + 2], row_weights[row + 3]
        if one != 0.0 or two != 0.0 or three != 0.0 or four != 0.0:
            for column in range(columns):
                total[column] += (
                    features[row, column] * one
                    + features[row + 1, column] * two
                    + features[row + 2, column] * three
                    + features[row + 3, column] * four
                )
    for row in range(rows - rows % 4, rows):
        weight = row_weights[row]
        for column in range(columns):
            total[column] += features[row, column] * weight


def risk_of_queries(
    features: Floats,
    weights: Doubles,
    labels: Doubles,
    offsets: Ints,
    first: int,
    last: int,
    slope: Doubles,
    memory: Doubles,
    arguments: tuple[Any, ...],
) -> float:
    """The loss of some queries, whose gradient by the weights is added to ``slope``.

    A frame to compile a loss in. A query's features are in the processor's cache when they are
    needed for the second time: from memory, which is what takes the time, they come once.
    """
    value = 0.0
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        size = end - begin
        if size:
            # Rows first, so that the compiler knows that what remains is contiguous.
            scores, gradient, curvature = memory[0][:size], memory[1][:size], memory[2][:size]
            gradient[:] = 0.0
            curvature[:] = 0.0
            _score_and_fetch(features, weights, scores, begin)
            value += query_loss(  # type: ignore[name-defined]  # noqa: F821
                scores, labels[begin:end], gradient, curvature, *arguments
            )
            add_rows(features[begin:end], gradient, slope)
    return value

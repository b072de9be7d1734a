"""The matrix products of a linear scorer: single-precision features, double-precision sums.

BLAS needs features and weights of one type: either the features are copied to twice their size, or
sums are in single precision, and solvers do not reach their tolerance. These kernels read the
features once, without a copy, and are limited by memory bandwidth as BLAS is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints, fast_kernel
from podium.kernels.intrinsics import prefetch
from podium.threads import for_each_query, over_queries

_CACHE_LINE = 16
"""Single-precision features per cache line."""


def missing_feature() -> DataError:
    """Return the error for a missing feature in a linear ranker."""
    return DataError(
        "a feature is missing (NaN), and a linear ranker cannot score missing values",
        hint="Fill them in first: sklearn.pipeline.make_pipeline(SimpleImputer(), LinearRanker()); "
        "or use TreeRanker.",
    )


def linear_scores(features: Floats, weights: Doubles, offsets: Ints) -> Doubles:
    """Compute ``features @ weights``.

    Example:
        >>> linear_scores(np.float32([[1, 2], [3, 4]]), np.array([1.0, 10.0]), np.array([0, 2]))
        array([21., 43.])
    """
    scores = np.empty(len(features))
    for_each_query(
        lambda first, last: score_rows(
            features[offsets[first] : offsets[last]],
            weights,
            scores[offsets[first] : offsets[last]],
        ),
        offsets,
    )
    return scores


def weighted_features(features: Floats, row_weights: Doubles, offsets: Ints) -> Doubles:
    """Compute ``features.T @ row_weights``.

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
    """Write the scores of rows to ``scores``."""
    for row in range(len(features)):
        total = 0.0
        for column in range(features.shape[1]):
            total += features[row, column] * weights[column]
        scores[row] = total


@fast_kernel
def _score_and_prefetch(features: Floats, weights: Doubles, scores: Doubles, begin: int) -> None:
    """Score the rows of a query, and prefetch as many rows after them."""
    columns, size = features.shape[1], len(scores)
    for index in range(size):
        row = begin + index
        if row + size < len(features):
            for entry in range((row + size) * columns, (row + size + 1) * columns, _CACHE_LINE):
                prefetch(features, entry)
        total = 0.0
        for column in range(columns):
            total += features[row, column] * weights[column]
        scores[index] = total


@fast_kernel
def add_rows(features: Floats, row_weights: Doubles, total: Doubles) -> None:
    """Add ``features.T @ row_weights`` to ``total``."""
    rows, columns = features.shape
    # Four rows at a time, so that the totals are read and written a quarter as often.
    for row in range(0, rows - 3, 4):
        weight0, weight1 = row_weights[row], row_weights[row + 1]
        weight2, weight3 = row_weights[row + 2], row_weights[row + 3]
        if weight0 != 0.0 or weight1 != 0.0 or weight2 != 0.0 or weight3 != 0.0:
            for column in range(columns):
                total[column] += (
                    features[row, column] * weight0
                    + features[row + 1, column] * weight1
                    + features[row + 2, column] * weight2
                    + features[row + 3, column] * weight3
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
    weight_gradient: Doubles,
    memory: Doubles,
    arguments: tuple[Any, ...],
) -> float:
    """Return the loss of some queries, and add its gradient to ``weight_gradient``.

    A template that a loss is compiled into. A query's features are still in the processor's cache
    when they are used for the second time, so they are read from memory, which takes most of the
    time, only once.
    """
    value = 0.0
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        size = end - begin
        if size:
            # Index rows first, so that the compiler knows that the slices are contiguous.
            scores, gradient, curvature = memory[0][:size], memory[1][:size], memory[2][:size]
            gradient[:] = 0.0
            curvature[:] = 0.0
            _score_and_prefetch(features, weights, scores, begin)
            value += query_loss(  # type: ignore[name-defined]  # noqa: F821
                scores, labels[begin:end], gradient, curvature, *arguments
            )
            add_rows(features[begin:end], gradient, weight_gradient)
    return value

"""Regression on the labels, within each query."""

from __future__ import annotations

from dataclasses import dataclass

from podium.kernels import Doubles, Ints, kernel
from podium.losses.base import Batch
from podium.losses.compiled import TopLoss
from podium.losses.orders import top_targets


def _squared_error(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    best: Ints,
    memory: Doubles,
) -> float:
    size = len(scores)
    if not top_targets(labels, k, best, memory):
        return 0.0
    mean = 0.0
    for row in range(size):
        mean += (scores[row] - memory[row]) / size
    value = 0.0
    for row in range(size):
        error = (scores[row] - memory[row]) - mean
        value += 0.5 * error * error
        gradient[row] = error
        curvature[row] = 1.0 - 1.0 / size
    return value


@kernel
def _weighted_squared_errors(
    scores: Doubles,
    labels: Doubles,
    offsets: Ints,
    values: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    weights: Doubles,
    first: int,
    last: int,
    k: int,
    best: Ints,
    memory: Doubles,
) -> None:
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        values[query] = 0.0
        gradient[begin:end] = 0.0
        curvature[begin:end] = 0.0
        total = 0.0
        for row in range(begin, end):
            total += weights[row]
        if total == 0.0 or not top_targets(labels[begin:end], k, best, memory):
            continue
        mean = 0.0
        for row in range(begin, end):
            mean += weights[row] * (scores[row] - memory[row - begin]) / total
        for row in range(begin, end):
            error = (scores[row] - memory[row - begin]) - mean
            values[query] += 0.5 * weights[row] * error * error
            gradient[row] = weights[row] * error
            curvature[row] = weights[row] * (1.0 - weights[row] / total)


@dataclass(frozen=True)
class SquaredError(TopLoss):
    """Half the squared differences of scores and labels, both taken from their means in the query.

    Pointwise regression with an intercept for each query, since only the differences within a
    query matter for its order. Documents below the top k count as equal, as in ``RankCosine``.
    The weight of a row multiplies its squared difference; means are weighted, too.

    Smooth and convex. O(n log k) for n documents.

    Attributes:
        k: How many documents are the top, or None for labels as they are.

    Example:
        >>> SquaredError().evaluate([7.0, 6.0, 5.0], [3, 2, 0], [0, 3]).gradient.round(3).tolist()
        [-0.333, -0.333, 0.667]
    """

    row_weighting = "loss"
    smooth = True
    convex = True
    query = staticmethod(_squared_error)

    def evaluate_weighted_range(
        self, batch: Batch, row_weights: Doubles, first: int, last: int
    ) -> None:
        """Write the results of the queries from ``first`` up to ``last``, with a weight per row."""
        arguments = self.arguments(batch.largest(first, last))
        _weighted_squared_errors(*batch, row_weights, first, last, *arguments)

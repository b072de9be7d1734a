"""Regression on the labels, within each query."""

from __future__ import annotations

from dataclasses import dataclass

from podium.kernels import Doubles, Ints
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


@dataclass(frozen=True)
class SquaredError(TopLoss):
    """Half the squared differences of scores and labels, both taken from their means in the query.

    Pointwise regression with an intercept for each query, since only the differences within a
    query matter for its order. Documents below the top k count as equal, as in ``RankCosine``.

    Smooth and convex. O(n log k) for n documents.

    Attributes:
        k: How many documents are the top, or None for labels as they are.

    Example:
        >>> SquaredError().evaluate([7.0, 6.0, 5.0], [3, 2, 0], [0, 3]).gradient.round(3).tolist()
        [-0.333, -0.333, 0.667]
    """

    smooth = True
    convex = True
    query = staticmethod(_squared_error)

"""RankCosine: the cosine distance between scores and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from podium.kernels import Doubles, Ints, inner
from podium.losses.compiled import TopLoss
from podium.losses.orders import top_targets

NOTHING = 1e-100
"""Scores shorter than this count as all 0: the inverse of their square would overflow."""


@inner
def _length(values: Doubles) -> float:
    """Return the Euclidean norm without overflow or underflow."""
    largest = 0.0
    for value in values:
        largest = max(largest, abs(value))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for value in values:
        total += (value / largest) ** 2
    return largest * math.sqrt(total)


def _rank_cosine(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    best: Ints,
    memory: Doubles,
) -> float:
    targets = memory[: len(scores)]
    if not top_targets(labels, k, best, memory):
        return 0.0
    target_length, length = _length(targets), _length(scores)
    if length < NOTHING:
        length = 1.0
    cosine = 0.0
    for row in range(len(scores)):
        cosine += targets[row] / target_length * (scores[row] / length)
    for row in range(len(scores)):
        direction = targets[row] / target_length - cosine * (scores[row] / length)
        gradient[row] = -0.5 * direction / length
        curvature[row] = 0.5 / length / length
    return 0.5 * (1.0 - cosine)


@dataclass(frozen=True)
class RankCosine(TopLoss):
    """Half of one minus the cosine between scores and labels, between 0 and 1.

    The labels count from that of the best document below the top k (the worst document, without
    ``k``), and every document there counts as 0 (Xia et al. 2009, 4.3.2). The scale of the scores
    does not matter, so no query weighs more than another; a shift of the scores does.

    Smooth except where all scores are 0, and not convex. There the value is 1/2, and the gradient
    that of scores of length 1, so that a fit can start from there. The curvature is a substitute,
    since the exact one can be negative: ``1 / (2 |s|^2)``, its bound at the best scores.
    O(n log k) for n documents.

    Attributes:
        k: How many documents are the top, or None for labels as they are.

    Example:
        >>> value = RankCosine().evaluate([4.0, 2.0, 0.0], [3, 2, 1], [0, 3]).total
        >>> abs(value) < 1e-15
        True
    """

    smooth = True
    convex = False
    query = staticmethod(_rank_cosine)

"""The exponential loss of pairs, RankBoost's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from podium.kernels import Doubles, Ints, inner
from podium.losses.compiled import PairLoss, index_memory, spread, top, work
from podium.losses.orders import top_rows

STEEPEST = 50.0
"""Beyond this difference the exponential goes on as its tangent: e^50 still fits a float32."""


def _pair_exponential(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    across: bool,
    best: Ints,
    powers: Doubles,
) -> float:
    count = top_rows(labels, k, best)
    if count == 0:
        return 0.0
    low, high = spread(scores)
    if high - low > STEEPEST:
        return _pair_by_pair(scores, labels, gradient, curvature, across, best[:count])
    middle = low + (high - low) / 2
    for row in range(len(scores)):
        powers[row] = math.exp(scores[row] - middle)
    return _factored(labels, gradient, curvature, across, best[:count], powers)


@inner
def _factored(
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    across: bool,
    best: Ints,
    powers: Doubles,
) -> float:
    """Sums of products are products of sums: exp(s_j - s_i) = exp(s_j) exp(-s_i)."""
    count = len(best)
    edge = labels[best[count - 1]]
    below = 0.0
    for row in range(len(labels)):
        if labels[row] < edge:
            below += powers[row]
    value = 0.0
    start = count
    while start > 0:  # one group of equal labels at a time, the worst group first
        end, label = start, labels[best[start - 1]]
        while start > 0 and labels[best[start - 1]] == label:
            start -= 1
            lost = below / powers[best[start]]
            value += lost
            gradient[best[start]] -= lost
            curvature[best[start]] += lost
        if not across:
            for index in range(start, end):
                below += powers[best[index]]
    above = 0.0
    while start < count:  # and down again
        end, label = start, labels[best[start]]
        while end < count and labels[best[end]] == label:
            if not across:
                won = above * powers[best[end]]
                gradient[best[end]] += won
                curvature[best[end]] += won
            end += 1
        for index in range(start, end):
            above += 1.0 / powers[best[index]]
        start = end
    for row in range(len(labels)):
        if labels[row] < edge:
            gradient[row] += above * powers[row]
            curvature[row] += above * powers[row]
    return value


@inner
def _pair_by_pair(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    across: bool,
    best: Ints,
) -> float:
    edge = labels[best[len(best) - 1]]
    value = 0.0
    for better in best:
        below = edge if across else labels[better]
        total = 0.0
        for worse in range(len(scores)):
            if labels[worse] < below:
                lag = scores[worse] - scores[better]
                steep = math.exp(min(lag, STEEPEST))
                value += steep * (1.0 + max(lag - STEEPEST, 0.0))
                total += steep
                gradient[worse] += steep
                curvature[worse] += steep
        gradient[better] -= total
        curvature[better] += total
    return value


@dataclass(frozen=True)
class PairExponential(PairLoss):
    """RankBoost's loss: ``exp(-(s_i - s_j))`` for each document i preferred to j.

    Smooth and convex; the curvature is exact. A pair wrong by more than 50 goes on as the tangent
    there (its curvature stays that at 50), so that it overflows only where scores differ by more
    than about 1e280. O(n log k) for n documents, though there are n k pairs, for these factor;
    O(n k) for a query whose scores spread over more than 50.

    Attributes:
        k: Pairs of the k best documents only, or None for every pair.
        pairs: ``"all"`` of them, or only those ``"across"`` the edge of the top k.

    Example:
        >>> PairExponential(k=1).evaluate([0.0, 0.0, 0.0], [2, 1, 0], [0, 3]).total
        2.0
    """

    smooth = True
    convex = True
    query = staticmethod(_pair_exponential)

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, whether only pairs across count, and work memory."""
        across = self.pairs == "across"
        return top(self.k), across, index_memory(1, largest)[0], work(1, largest)[0]

"""The logistic loss of pairs, RankNet's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from podium.kernels import Doubles, Ints
from podium.losses.compiled import PairLoss, index_memory, softplus, spread, top, work
from podium.losses.orders import top_edge

NARROW = 200.0
"""Up to this spread of scores, exponentials of differences are products that cannot overflow."""


def _pair_logistic(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    across: bool,
    best: Ints,
    powers: Doubles,
) -> float:
    edge = top_edge(labels, k, best)
    if edge == math.inf:
        return 0.0
    low, high = spread(scores)
    narrow = high - low <= NARROW
    middle = low + (high - low) / 2
    if narrow:
        for row in range(len(scores)):
            powers[row] = math.exp(scores[row] - middle)
    value = 0.0
    for better in range(len(scores)):
        if labels[better] < edge:
            continue
        below = edge if across else labels[better]
        slope = bend = 0.0
        if narrow:
            # exp(s_worse - s_better) is a product, and one logarithm serves many pairs.
            inverse = math.exp(middle - scores[better])
            product = 1.0
            for worse in range(len(scores)):
                if labels[worse] < below:
                    odds = powers[worse] * inverse
                    wrong = odds / (1.0 + odds)
                    product *= 1.0 + odds
                    if product > 1e200:
                        value += math.log(product)
                        product = 1.0
                    slope += wrong
                    gradient[worse] += wrong
                    bend += wrong * (1.0 - wrong)
                    curvature[worse] += wrong * (1.0 - wrong)
            value += math.log(product)
        else:
            for worse in range(len(scores)):
                if labels[worse] < below:
                    lead = scores[better] - scores[worse]
                    wrong = math.exp(-softplus(lead))
                    value += softplus(-lead)
                    slope += wrong
                    gradient[worse] += wrong
                    bend += wrong * (1.0 - wrong)
                    curvature[worse] += wrong * (1.0 - wrong)
        gradient[better] -= slope
        curvature[better] += bend
    return value


@dataclass(frozen=True)
class PairLogistic(PairLoss):
    """RankNet's loss: ``log(1 + exp(-(s_i - s_j)))`` for each document i preferred to j.

    Smooth and convex; the curvature is exact. O(n k) for n documents: n exponentials, then a
    division per pair (an exponential per pair where the scores of a query spread over more than
    200).

    Attributes:
        k: Pairs of the k best documents only, or None for every pair.
        pairs: ``"all"`` of them, or only those ``"across"`` the edge of the top k.

    Example:
        >>> import math
        >>> value = PairLogistic(k=1).evaluate([0.0, 0.0, 0.0], [2, 1, 0], [0, 3]).total
        >>> math.isclose(value, 2 * math.log(2))
        True
    """

    smooth = True
    convex = True
    query = staticmethod(_pair_logistic)

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, whether only pairs across count, and work memory."""
        across = self.pairs == "across"
        return top(self.k), across, index_memory(1, largest)[0], work(1, largest)[0]

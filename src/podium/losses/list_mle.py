"""ListMLE: the negative log-likelihood of the judged order under Plackett-Luce."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from podium.kernels import Doubles, Ints, inner
from podium.losses.compiled import TopLoss, add_logs, index_memory, softplus, top, work
from podium.losses.orders import top_rows


def _list_mle(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    best: Ints,
    memory: Doubles,
) -> float:
    count = top_rows(labels, k, best)
    if count == 0:
        return 0.0
    edge = labels[best[count - 1]]
    under, drawn = memory[0], memory[1]
    peak = -math.inf
    for row in range(len(scores)):
        if labels[row] < edge:
            peak = max(peak, scores[row])
    total = 0.0
    for row in range(len(scores)):
        if labels[row] < edge:
            gradient[row] = math.exp(scores[row] - peak)
            total += gradient[row]
    everything, value = _upwards(scores, labels, best[:count], peak + math.log(total), under, drawn)
    once, twice = _downwards(
        scores, labels, gradient, curvature, best[:count], everything, under, drawn
    )
    for row in range(len(scores)):
        if labels[row] < edge:
            share = gradient[row] / total
            gradient[row] = share * once
            curvature[row] = max(share * once - share * share * twice, 0.0)
    return value


@inner
def _upwards(
    scores: Doubles,
    labels: Doubles,
    best: Ints,
    below: float,
    under: Doubles,
    drawn: Doubles,
) -> tuple[float, float]:
    """From the worst of the top to the best: logarithms of the sums each was drawn from.

    Returns:
        The logarithm of the sum over all documents, and the loss.
    """
    value = 0.0
    running = below
    for index in range(len(best) - 1, -1, -1):
        row = best[index]
        if index == len(best) - 1 or labels[row] != labels[best[index + 1]]:
            below = running
        under[index] = below
        drawn[index] = add_logs(scores[row], below)
        value += softplus(below - scores[row])
        running = drawn[index] if running == below else add_logs(running, scores[row])
    return running, value


@inner
def _downwards(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    best: Ints,
    everything: float,
    under: Doubles,
    drawn: Doubles,
) -> tuple[float, float]:
    """From the best down: add up the probabilities of having been drawn too early.

    Returns:
        For a document below the top whose share of the sum over those is p, the sums ``p once``
        and ``p^2 twice`` of its probabilities, and their squares, in all draws.
    """
    once = twice = 0.0
    level, begin = everything, 0
    while begin < len(best):
        end, label = begin, labels[best[begin]]
        below = under[begin]
        fade = math.exp(below - level)
        next_once, next_twice = once * fade, twice * fade * fade
        while end < len(best) and labels[best[end]] == label:
            row = best[end]
            share = math.exp(scores[row] - level)
            drawn_share = math.exp(scores[row] - drawn[end])
            rest = math.exp(below - drawn[end])
            gradient[row] = share * once - rest
            curvature[row] = max(share * once - share * share * twice, 0.0) + drawn_share * rest
            next_once += rest
            next_twice += rest * rest
            end += 1
        once, twice, level, begin = next_once, next_twice, below, end
    return once, twice


@dataclass(frozen=True)
class ListMLE(TopLoss):
    """Minus the log-likelihood of the judged order under Plackett and Luce's model.

    The best document is drawn from all with probability in proportion to ``exp(s)``, the next from
    those left, and so on; with ``k`` only the first k draws count (Xia et al. 2009), and the rest
    are equal. Documents with equal labels do not compete: each is drawn from itself and those with
    smaller labels, so the loss asks for no order that the labels do not ask for, and stays convex.
    Without ties this is ListMLE as published.

    Smooth and convex; the curvature is exact. O(n log k) for n documents, and near O(n)
    while k is small: an exponential for each document, and a few more for the top.

    Attributes:
        k: How many draws count, or None for the full order.

    Example:
        >>> import math
        >>> value = ListMLE(k=2).evaluate([0.0, 0.0, 0.0, 0.0], [3, 2, 1, 0], [0, 4]).total
        >>> math.isclose(value, math.log(4) + math.log(3))
        True
    """

    smooth = True
    convex = True
    query = staticmethod(_list_mle)

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """K and work memory."""
        return top(self.k), index_memory(1, largest)[0], work(2, largest)

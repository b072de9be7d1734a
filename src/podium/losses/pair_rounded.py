"""The hinge loss of pairs with its kink rounded, so that smooth solvers take it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints
from podium.losses.compiled import PairLoss, index_memory, top
from podium.losses.orders import top_edge


def _pair_rounded(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    across: bool,
    width: float,
    plane: bool,
    best: Ints,
) -> float:
    edge = top_edge(labels, k, best)
    if edge == math.inf:
        return 0.0
    value = 0.0
    for better in range(len(scores)):
        if labels[better] < edge:
            continue
        below = edge if across else labels[better]
        margin = scores[better] - 1.0
        slope = bend = 0.0
        for worse in range(len(scores)):
            short = scores[worse] - margin
            if labels[worse] < below and short > 0.0:
                # From 0 to 1 across the rounded part, then 1.
                wrong = min(short / width, 1.0)
                # A plane below the hinge goes up from 0 as steeply as the rounded part does here.
                above = 0.0 if plane else 0.5 * width * wrong
                value += wrong * (short - above)
                slope += wrong
                gradient[worse] += wrong
                bend += wrong / short
                curvature[worse] += wrong / short
        gradient[better] -= slope
        curvature[better] += bend
    return value


@dataclass(frozen=True)
class PairRounded(PairLoss):
    """``PairHinge`` with its kink rounded over a width, as Huber rounds the absolute value.

    With ``d = 1 - (s_i - s_j)``: 0 below 0, ``d^2 / (2 width)`` up to the width, ``d - width / 2``
    above. Smooth and convex. The curvature is that of the parabola that bounds it from above and
    touches it here, ``1 / max(d, width)`` for a violated pair, since its own is 0 above the width.
    O(n k).

    Attributes:
        k: Pairs of the k best documents only, or None for every pair.
        pairs: ``"all"`` of them, or only those ``"across"`` the edge of the top k.
        width: Over which the kink is rounded.
        plane: Give as value that of the plane with this slope that touches the *hinge* from below:
            ``d`` times the slope. It bounds the hinge everywhere, and closely: the two differ for
            pairs in the rounded part only.

    Example:
        >>> PairRounded(width=0.5).evaluate([0.0, 0.0], [1, 0], [0, 2]).total
        0.75
    """

    width: float = 0.1
    plane: bool = False

    smooth = True
    convex = True
    query = staticmethod(_pair_rounded)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.width < math.inf:
            raise ArgumentError(f"width is {self.width!r}. Give a number above 0.")

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, whether only pairs across count, the width, what value to give, and work memory."""
        memory = index_memory(1, largest)[0]
        return top(self.k), self.pairs == "across", float(self.width), self.plane, memory

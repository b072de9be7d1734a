"""Plain descent for losses whose slopes are not the slopes of their value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.kernels import Doubles
from podium.rankers.bundle import Risk


def descend(
    risk: Risk,
    start: Doubles,
    *,
    penalty: float,
    steps: int,
    rate: float = 0.1,
    watch: Callable[[int, Doubles, float], None] | None = None,
) -> tuple[Doubles, float]:
    """Adam on the whole data, its rate falling to 0 along half a cosine.

    LambdaLoss follows the slopes of a loss whose pair weights change with the ranking, so no line
    search can rely on its value; a fixed schedule needs none.

    Returns the last point and the objective there.

    Example:
        >>> def square(w):
        ...     return float((w - 3) @ (w - 3)), 2 * (w - 3)
        >>> point, value = descend(square, np.zeros(1), penalty=0.0, steps=300)
        >>> round(float(point[0]), 2)
        3.0
    """
    point = start.copy()
    mean, square = np.zeros_like(point), np.zeros_like(point)
    value = np.nan
    for step in range(1, steps + 1):
        height, slope = risk(point)
        value = height + 0.5 * penalty * float(point @ point)
        slope = slope + penalty * point
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        fall = 0.5 * rate * (1 + np.cos(np.pi * step / steps)) / (1 - 0.9**step)
        point = point - fall * mean / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        if watch is not None:
            watch(step, point, value)
    return point, value

"""Gradient descent for losses whose gradient is not that of their value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.kernels import Doubles
from podium.rankers.bundle_method import Risk


def adam_descent(
    risk: Risk,
    start: Doubles,
    *,
    alpha: float,
    steps: int,
    learning_rate: float = 0.1,
    monitor: Callable[[int, Doubles, float], None] | None = None,
) -> tuple[Doubles, float]:
    """Minimize ``alpha / 2 |w|^2 + R(w)`` by full-batch Adam with a cosine learning-rate schedule.

    The pair weights of LambdaLoss change with the ranking, so its gradient is not the gradient of
    its value and a line search cannot rely on that value. A fixed schedule needs no line search.

    Returns the last point and its objective.

    Example:
        >>> def square(w):
        ...     return float((w - 3) @ (w - 3)), 2 * (w - 3)
        >>> point, value = adam_descent(square, np.zeros(1), alpha=0.0, steps=300)
        >>> round(float(point[0]), 2)
        3.0
    """
    point = start.copy()
    first_moment, second_moment = np.zeros_like(point), np.zeros_like(point)
    objective = np.nan
    for step in range(1, steps + 1):
        value, gradient = risk(point)
        objective = value + 0.5 * alpha * float(point @ point)
        gradient = gradient + alpha * point
        first_moment = 0.9 * first_moment + 0.1 * gradient
        second_moment = 0.999 * second_moment + 0.001 * gradient**2
        rate = 0.5 * learning_rate * (1 + np.cos(np.pi * step / steps)) / (1 - 0.9**step)
        point = point - rate * first_moment / (np.sqrt(second_moment / (1 - 0.999**step)) + 1e-8)
        if monitor is not None:
            monitor(step, point, objective)
    return point, objective

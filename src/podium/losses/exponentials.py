"""Exponentials and logarithms that do not overflow, in compiled losses."""

from __future__ import annotations

import math

from podium.kernels import Doubles, inner


@inner
def softplus(x: float) -> float:
    """``log(1 + exp(x))``."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inner
def add_logs(one: float, other: float) -> float:
    """``log(exp(one) + exp(other))``."""
    return max(one, other) + math.log1p(math.exp(-abs(one - other)))


@inner
def spread(values: Doubles) -> tuple[float, float]:
    """Return the smallest and the largest value."""
    low = high = values[0]
    for value in values:
        low = min(low, value)
        high = max(high, value)
    return low, high

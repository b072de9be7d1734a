"""Gains of labels and discounts of ranks, defined once for the whole package.

Measures, losses, rankers, learned utilities and judging all use these, for arrays
(``exponential_gains``) and for single numbers in kernels (``exponential_gain``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles, inner

GainsName: TypeAlias = Literal["exponential", "linear"]
DiscountsName: TypeAlias = Literal["log2", "letor", "reciprocal"]


@inner
def exponential_gain(label: float, highest: float) -> float:
    """``exponential_gains`` of a single label, for kernels.

    With Python's functions, which are also Numba's: NumPy's may differ in the last bit.
    """
    step = label - highest
    return (math.inf if step >= 1024.0 else math.exp2(step)) - math.exp2(-highest)


@inner
def log2_discount(rank: float) -> float:
    """``log2_discounts`` of a single rank, for kernels."""
    return 1.0 / math.log2(1.0 + rank)


def exponential_gains(labels: Doubles, highest: Doubles | float = 0.0) -> Doubles:
    """``2^label - 1``, in units of ``2^highest``.

    An order of more than 1023 documents has gains beyond any double. Most uses need only
    ratios of gains, and relative to the highest label no gain is too large.

    Example:
        >>> exponential_gains(np.array([0.0, 1.0, 2.0])).tolist()
        [0.0, 1.0, 3.0]
        >>> exponential_gains(np.array([1999.0, 2000.0]), highest=2000.0).tolist()
        [0.5, 1.0]
    """
    return np.asarray(np.exp2(labels - highest) - np.exp2(-highest))


def log2_discounts(ranks: NDArray[Any]) -> Doubles:
    """``1 / log2(1 + rank)``, ranks being 1, 2, ….

    Example:
        >>> log2_discounts(np.array([1, 3])).tolist()
        [1.0, 0.5]
    """
    return np.asarray(1.0 / np.log2(1.0 + ranks))


@inner
def relative_gains(labels: Doubles, gains: Doubles) -> None:
    """Compute exponential gains relative to the highest label of a query (for kernels).

    Labels below 0 count as 0.
    """
    highest = 0.0
    for label in labels:
        highest = max(highest, label)
    for row in range(len(labels)):
        gains[row] = exponential_gain(max(labels[row], 0.0), highest)


GAINS: dict[GainsName, Callable[[Doubles], Doubles]] = {
    "exponential": exponential_gains,
    "linear": lambda labels: labels,
}
"""Gains of labels, by name."""

DISCOUNTS: dict[DiscountsName, Callable[[Doubles], Doubles]] = {
    "log2": log2_discounts,
    "letor": lambda ranks: log2_discounts(np.maximum(ranks - 1.0, 1.0)),
    "reciprocal": lambda ranks: 1.0 / ranks,
}
"""Discounts of ranks, by name."""

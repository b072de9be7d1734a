"""The selection algorithms by name, as sessions and the command line know them."""

from __future__ import annotations

from typing import Any

from podium.judging.algorithms.knockout import adaptive, tournament
from podium.judging.algorithms.min_heap import heap
from podium.judging.algorithms.selection import Algorithm
from podium.judging.algorithms.sorted_list import galloping, insertion
from podium.registry import Registry

__all__ = ["ALGORITHMS"]

ALGORITHMS: Registry[Algorithm[Any]] = Registry(
    "algorithm",
    {
        "adaptive": adaptive,
        "galloping": galloping,
        "heap": heap,
        "insertion": insertion,
        "tournament": tournament,
    },
)
"""Every selection algorithm; the default is first."""

CAREFUL = "careful"
"""A strategy that is not a selection algorithm: see `podium.judging.active_sampling`."""


def get_algorithm(name: str) -> Algorithm[Any]:
    """The algorithm of a name.

    Example:
        >>> get_algorithm("heap").__name__
        'heap'
    """
    return ALGORITHMS.named(name, also=[CAREFUL])

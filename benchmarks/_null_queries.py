"""Values of two systems that do not differ, query by query, as measures make them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Doubles]
"""Draws values: a row for each query, a column for each system, all systems alike."""


def normal(random: np.random.Generator, queries: int, systems: int) -> Doubles:
    """What textbooks assume."""
    return random.normal(size=(queries, systems))


def ndcg(random: np.random.Generator, queries: int, systems: int) -> Doubles:
    """Like nDCG@10: easy and hard queries, skewed, between 0 and 1, some queries the same."""
    level = random.beta(1.2, 1.8, (queries, 1))
    spread = random.exponential(0.12, (queries, 1))
    values = np.clip(level + spread * random.normal(size=(queries, systems)), 0.0, 1.0)
    return np.where(random.random((queries, 1)) < 0.1, level, values)


def reciprocal_rank(random: np.random.Generator, queries: int, systems: int) -> Doubles:
    """Like RR@10: eleven values, and many queries on which systems do not differ."""
    success_rates = random.beta(1.0, 1.5, (queries, 1))
    first = np.broadcast_to(random.geometric(np.maximum(success_rates, 1e-3)), (queries, systems))
    again = random.geometric(np.broadcast_to(np.maximum(success_rates, 1e-3), (queries, systems)))
    ranks = np.where(random.random((queries, systems)) < 0.5, first, again)
    return np.where(ranks <= 10, 1.0 / ranks, 0.0)


def success(random: np.random.Generator, queries: int, systems: int) -> Doubles:
    """Like Success@5: 0 or 1, and most queries the same."""
    chance = random.beta(0.4, 0.4, (queries, 1))
    return (random.random((queries, systems)) < chance).astype(np.float64)


def skewed(random: np.random.Generator, queries: int, systems: int) -> Doubles:
    """Means that do not differ, by differences that are not symmetric: rare large losses.

    A change that helps most queries a little and ruins a few: no permutation of systems gives the
    same, so only the t-test's assumption holds, and that only for many queries.
    """
    values = np.zeros((queries, systems))
    values[:, 1:] = 1.0 - random.exponential(1.0, (queries, systems - 1))
    return values


SYMMETRIC: dict[str, Draw] = {
    "normal": normal,
    "like nDCG": ndcg,
    "like RR": reciprocal_rank,
    "like Success": success,
}
"""By name; systems can be exchanged, which is what all paired tests assume."""

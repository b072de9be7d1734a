"""Votes for tests, and the formulas that aggregations are held against."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
from hypothesis import strategies as st

from podium.aggregation.votes import Unranked
from podium.kernels import Doubles


@st.composite
def votes(
    draw: st.DrawFn, *, most: int = 6, partial: bool = True, rankers: int = 5, distinct: int = 6
) -> Doubles:
    """One query's votes, many of them tied or missing."""
    shape = draw(st.integers(1, most)), draw(st.integers(1, rankers))
    cell = st.integers(0, distinct - 1).map(float)
    if partial:
        cell = cell | st.just(float("nan"))
    count = shape[0] * shape[1]
    return np.array(draw(st.lists(cell, min_size=count, max_size=count))).reshape(shape)


@st.composite
def weighted_votes(draw: st.DrawFn, most: int = 6) -> tuple[Doubles, Doubles]:
    """Votes with weights that have no exact binary form."""
    table = draw(votes(most=most))
    weights = draw(
        st.lists(st.integers(0, 9), min_size=table.shape[1], max_size=table.shape[1]).filter(any)
    )
    return table, np.array(weights) / 10


def prefers(column: Doubles, one: int, other: int, unranked: Unranked) -> bool:
    """Whether a ranker puts one document above another."""
    if unranked == "below" and np.isnan(column[other]):
        return not np.isnan(column[one])
    return bool(column[one] > column[other])


def distance(order: tuple[int, ...], table: Doubles, weights: Doubles, unranked: Unranked) -> float:
    """The weighted Kendall distance of an order of rows, best first."""
    return sum(
        weights[ranker]
        for above, below in combinations(order, 2)
        for ranker in range(table.shape[1])
        if prefers(table[:, ranker], below, above, unranked)
    )


def least_distance(table: Doubles, weights: Doubles, unranked: Unranked) -> float:
    """The least distance of all orders."""
    return min(
        distance(order, table, weights, unranked) for order in permutations(range(len(table)))
    )


def order_of(scores: Doubles) -> tuple[int, ...]:
    """Rows, best first."""
    return tuple(int(row) for row in np.argsort(-scores, kind="stable"))


def noisy(size: int, rankers: int, noise: float, seed: int) -> Doubles:
    """Rankings that agree as much as their noise lets them."""
    random = np.random.default_rng(seed)
    return np.arange(size)[:, None] / size + noise * random.normal(size=(size, rankers))

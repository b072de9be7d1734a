"""Threshold weak rankers, and the best of a feature in one pass over its sorted values.

A threshold splits each list in two: the documents above it before the others, in no order among
themselves. What such a split is worth to pairs is a sum over the documents above; what it is worth
to a list is the expectation of its measure over the orders of ties, a formula in how many documents
and how much gain lie above. Both follow a document that crosses the threshold in O(1).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.data.gains import log2_discounts
from podium.kernels import Doubles, Floats, Ints, kernel
from podium.threads import ordered_map

NDCG, AVERAGE_PRECISION = 0, 1


class Lists(NamedTuple):
    """What the lists' measure needs to know of each row and query.

    Attributes:
        kind: ``NDCG`` or ``AVERAGE_PRECISION``.
        cut: The measure's cut-off.
        sums: For each number of places, the sum of their discounts (nDCG) or of ``1 / place`` (AP).
        query_of_row: The query of each row, or -1 for a row that is in no list.
        gain_of_row: nDCG's gain divided by the ideal DCG; for AP 1 or 0, relevant or not.
        sizes: The number of rows of each list.
        gains: The gain of all rows of each list.
        weights: How much each list counts.
    """

    kind: int
    cut: int
    sums: Doubles
    query_of_row: Ints
    gain_of_row: Doubles
    sizes: Ints
    gains: Doubles
    weights: Doubles


@dataclass(frozen=True)
class Stump:
    """A weak ranker: 1 for documents whose feature is above a threshold, else 0.

    ``worth`` is what it reached; ``sign`` is -1 if it is better the other way round.
    """

    feature: int
    threshold: float
    worth: float
    sign: float


class SortedFeatures:
    """The columns of a feature matrix, each with the order of its values, highest first.

    Sorted once for a whole fit: eight bytes a value besides the features themselves.
    """

    def __init__(self, features: Floats) -> None:
        self.columns = np.ascontiguousarray(features.T)
        self.orders = np.empty(self.columns.shape, np.int32)
        for column, order in zip(self.columns, self.orders, strict=True):
            order[:] = np.argsort(-column, kind="stable")  # NaN, which is above nothing, is last

    def best(
        self, potential: Doubles, lists: Lists, beta: float, barred: Collection[int]
    ) -> Stump | None:
        """The threshold that is worth most, of any feature that is not barred.

        Args:
            potential: What each row adds to the worth of a threshold below it, by its pairs.
            lists: What the lists are worth; not looked at if ``beta`` is 0.
            beta: How much the lists count, from 0 to 1; the pairs count the rest.
            barred: Features to leave out.
        """

        def search(feature: int) -> Stump:
            threshold, worth, sign = _search(
                self.columns[feature], self.orders[feature], potential, *lists, beta
            )
            return Stump(feature, threshold, worth, sign)

        # The first of equals, whatever thread was first: a fit must not depend on threads.
        free = (feature for feature in range(len(self.columns)) if feature not in barred)
        return max(ordered_map(search, free), key=lambda stump: stump.worth, default=None)


@kernel
def _both_ways(
    kind: int,
    cut: int,
    sums: Doubles,
    shares: Doubles,
    first: int,
    gain: float,
    size: int,
    whole: float,
) -> tuple[float, float]:
    """The measure of a list with some documents tied before the rest, which are tied too.

    And the measure with the rest before them. ``gain`` is of those documents, ``shares[n]`` 1 / n.
    """
    rest, others = size - first, whole - gain
    if kind == NDCG:
        each, other = gain * shares[first], others * shares[rest]
        total = sums[min(size, cut)]
        above, below = sums[min(first, cut)], sums[min(rest, cut)]
        return (
            each * above + other * (total - above),
            other * below + each * (total - below),
        )
    return (
        _average_precision(sums, first, gain, size, whole),
        _average_precision(sums, rest, others, size, whole),
    )


@kernel
def _average_precision(sums: Doubles, first: int, gain: float, size: int, whole: float) -> float:
    """At the place of a relevant document: itself, and the expected others before it."""
    rest, others = size - first, whole - gain
    value = 0.0
    if gain > 0.0:
        near = (gain - 1.0) / (first - 1.0) if first > 1 else 0.0
        value += gain / first * (sums[first] + near * (first - sums[first]))
    if others > 0.0:
        tail = sums[size] - sums[first]
        near = (others - 1.0) / (rest - 1.0) if rest > 1 else 0.0
        value += others / rest * ((gain + 1.0) * tail + near * (rest - (first + 1.0) * tail))
    return value / whole


@kernel
def _search(
    column: Floats,
    order: NDArray[np.int32],
    potential: Doubles,
    kind: int,
    cut: int,
    sums: Doubles,
    query_of_row: Ints,
    gain_of_row: Doubles,
    sizes: Ints,
    gains: Doubles,
    weights: Doubles,
    beta: float,
) -> tuple[float, float, float]:
    """The best threshold of a feature, what it is worth, and its sign."""
    queries = len(sizes) if beta > 0.0 else 0
    crossed = np.zeros(queries, np.int64)
    gained = np.zeros(queries)
    # What each list is worth with the documents above the threshold first, and with them last.
    ups, downs = np.zeros(queries), np.zeros(queries)
    upward = pairs = 0.0
    shares = np.zeros(len(sums))
    for size in range(1, len(sums)):
        shares[size] = 1.0 / size
    for query in range(queries):
        if weights[query] > 0.0:
            value, _ = _both_ways(kind, cut, sums, shares, 0, 0.0, sizes[query], gains[query])
            ups[query] = downs[query] = weights[query] * value
            upward += ups[query]
    downward = upward
    best, sign, threshold = -np.inf, 1.0, np.inf
    rows = len(order)
    for place in range(rows):
        row = order[place]
        value = column[row]
        if value != value:
            break
        pairs += potential[row]
        if beta > 0.0:
            query = query_of_row[row]
            if query >= 0 and weights[query] > 0.0:
                weight, size, whole = weights[query], sizes[query], gains[query]
                crossed[query] += 1
                gained[query] += gain_of_row[row]
                first, gain = crossed[query], gained[query]
                up, down = _both_ways(kind, cut, sums, shares, first, gain, size, whole)
                up, down = weight * up, weight * down
                upward += up - ups[query]
                downward += down - downs[query]
                ups[query], downs[query] = up, down
        if place + 1 == rows:
            break  # everything is above: no split
        below = column[order[place + 1]]
        if below == value:
            continue
        for direction in (1.0, -1.0):
            lists = upward if direction > 0.0 else downward
            worth = beta * lists + (1.0 - beta) * direction * pairs
            if worth > best + 1e-12:
                best, sign = worth, direction
                # Between the two values, where rounding cannot put a document on the wrong side.
                threshold = below + (value - below) / 2.0 if below == below else -np.inf
                if not threshold < value:
                    threshold = below
    return threshold, best, sign


@kernel
def stump_scores(
    features: Floats, chosen: Ints, thresholds: Doubles, weights: Doubles, result: Doubles
) -> None:
    """Add to each row's score the weight of every threshold that it is above."""
    for row in range(len(result)):
        total = 0.0
        for place in range(len(chosen)):
            if features[row, chosen[place]] > thresholds[place]:
                total += weights[place]
        result[row] += total


def discount_sums(kind: int, longest: int) -> Doubles:
    """For each number of places up to the longest list, the sum that its measure needs."""
    places = np.arange(1, longest + 1)
    terms = log2_discounts(places) if kind == NDCG else 1 / places
    return np.concatenate(([0.0], np.cumsum(terms)))

"""Threshold weak rankers: find the best of a feature in one pass over its sorted values.

A threshold splits each list in two: the documents above it come before the others, and both groups
are tied. The edge of the pairs is a sum over the documents above. The edge of a list is the
expected measure over the orders of ties, a formula in the number and gain of the documents above.
Both are updated in O(1) when a document crosses the threshold.
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


class ListObjective(NamedTuple):
    """The lists that thresholds are evaluated on, and the constants of their measure.

    Attributes:
        kind: ``NDCG`` or ``AVERAGE_PRECISION``.
        cut: The measure's cut-off.
        sums: For each n, the sum over ranks 1 to n of discounts (nDCG) or of ``1 / rank`` (AP).
        query_of_row: The query of each row, or -1 for a row outside of all lists.
        gain_of_row: nDCG's gain divided by the ideal DCG; for AP, 1 if relevant, else 0.
        sizes: The number of rows of each list.
        gains: The total gain of each list.
        weights: The weight of each list.
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

    ``sign`` is -1 if documents below the threshold should come first.
    """

    feature: int
    threshold: float
    edge: float
    sign: float


class SortedFeatures:
    """The columns of a feature matrix, each with the order of its values, highest first.

    Sorted once per fit; takes eight bytes per value in addition to the features themselves.
    """

    def __init__(self, features: Floats) -> None:
        self.columns = np.ascontiguousarray(features.T)
        self.orders = np.empty(self.columns.shape, np.int32)
        for column, order in zip(self.columns, self.orders, strict=True):
            order[:] = np.argsort(
                -column, kind="stable"
            )  # NaN, which is above no threshold, is last

    def best(
        self, potential: Doubles, lists: ListObjective, beta: float, excluded: Collection[int]
    ) -> Stump | None:
        """Return the threshold with the largest edge, over all features that are not excluded.

        Args:
            potential: What each row adds to the pairs' edge of a threshold below it.
            lists: The lists; not used if ``beta`` is 0.
            beta: The weight of the lists, from 0 to 1; the weight of the pairs is ``1 - beta``.
            excluded: Features to leave out.
        """

        def search(feature: int) -> Stump:
            threshold, edge, sign = _best_threshold(
                self.columns[feature], self.orders[feature], potential, *lists, beta
            )
            return Stump(feature, threshold, edge, sign)

        # The first of equals in the order of features: a fit must not depend on threads.
        free = (feature for feature in range(len(self.columns)) if feature not in excluded)
        return max(ordered_map(search, free), key=lambda stump: stump.edge, default=None)


@kernel
def _list_values(
    kind: int,
    cut: int,
    sums: Doubles,
    shares: Doubles,
    first: int,
    gain: float,
    size: int,
    total_gain: float,
) -> tuple[float, float]:
    """Return the measure of a list with some tied documents before the rest, and after it.

    ``first`` and ``gain`` are the number and gain of those documents; ``shares[n]`` is 1 / n.
    """
    rest, others = size - first, total_gain - gain
    if kind == NDCG:
        each, other = gain * shares[first], others * shares[rest]
        total = sums[min(size, cut)]
        above, below = sums[min(first, cut)], sums[min(rest, cut)]
        return (
            each * above + other * (total - above),
            other * below + each * (total - below),
        )
    return (
        _average_precision(sums, first, gain, size, total_gain),
        _average_precision(sums, rest, others, size, total_gain),
    )


@kernel
def _average_precision(
    sums: Doubles, first: int, gain: float, size: int, total_gain: float
) -> float:
    """Return the expected AP of ``first`` tied documents before the rest, which are tied too."""
    rest, others = size - first, total_gain - gain
    value = 0.0
    if gain > 0.0:
        near = (gain - 1.0) / (first - 1.0) if first > 1 else 0.0
        value += gain / first * (sums[first] + near * (first - sums[first]))
    if others > 0.0:
        tail = sums[size] - sums[first]
        near = (others - 1.0) / (rest - 1.0) if rest > 1 else 0.0
        value += others / rest * ((gain + 1.0) * tail + near * (rest - (first + 1.0) * tail))
    return value / total_gain


@kernel
def _best_threshold(
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
    """Return the best threshold of a feature, its edge and its sign."""
    queries = len(sizes) if beta > 0.0 else 0
    above = np.zeros(queries, np.int64)
    gain_above = np.zeros(queries)
    # The weighted measure of each list with the documents above the threshold first, and last.
    values_first, values_last = np.zeros(queries), np.zeros(queries)
    sum_first = pairs = 0.0
    shares = np.zeros(len(sums))
    for size in range(1, len(sums)):
        shares[size] = 1.0 / size
    for query in range(queries):
        if weights[query] > 0.0:
            value, _ = _list_values(kind, cut, sums, shares, 0, 0.0, sizes[query], gains[query])
            values_first[query] = values_last[query] = weights[query] * value
            sum_first += values_first[query]
    sum_last = sum_first
    best, sign, threshold = -np.inf, 1.0, np.inf
    rows = len(order)
    for index in range(rows):
        row = order[index]
        value = column[row]
        if value != value:
            break
        pairs += potential[row]
        if beta > 0.0:
            query = query_of_row[row]
            if query >= 0 and weights[query] > 0.0:
                weight, size, total_gain = weights[query], sizes[query], gains[query]
                above[query] += 1
                gain_above[query] += gain_of_row[row]
                first, gain = above[query], gain_above[query]
                up, down = _list_values(kind, cut, sums, shares, first, gain, size, total_gain)
                up, down = weight * up, weight * down
                sum_first += up - values_first[query]
                sum_last += down - values_last[query]
                values_first[query], values_last[query] = up, down
        if index + 1 == rows:
            break  # all documents are above: no split
        below = column[order[index + 1]]
        if below == value:
            continue
        for direction in (1.0, -1.0):
            lists = sum_first if direction > 0.0 else sum_last
            edge = beta * lists + (1.0 - beta) * direction * pairs
            if edge > best + 1e-12:
                best, sign = edge, direction
                # Halfway, so that rounding cannot put a document on the wrong side.
                threshold = below + (value - below) / 2.0 if below == below else -np.inf
                if not threshold < value:
                    threshold = below
    return threshold, best, sign


@kernel
def stump_scores(
    features: Floats, chosen: Ints, thresholds: Doubles, weights: Doubles, result: Doubles
) -> None:
    """Add the weight of every threshold that a row is above to its score."""
    for row in range(len(result)):
        total = 0.0
        for index in range(len(chosen)):
            if features[row, chosen[index]] > thresholds[index]:
                total += weights[index]
        result[row] += total


def discount_sums(kind: int, longest: int) -> Doubles:
    """Return the ``sums`` of a list objective, up to the longest list."""
    ranks = np.arange(1, longest + 1)
    terms = log2_discounts(ranks) if kind == NDCG else 1 / ranks
    return np.concatenate(([0.0], np.cumsum(terms)))

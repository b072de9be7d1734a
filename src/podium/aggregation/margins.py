"""The majority table of a query, searches for an order near it, and the Kendall distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from podium.aggregation.votes import Unranked, checked_votes, row_scores
from podium.kernels import Doubles, Ints, kernel
from podium.threads import over_queries


def kendall_distance(
    scores: ArrayLike,
    votes: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    ranker_weights: ArrayLike | None = None,
    unranked: Unranked = "below",
    top: int | None = None,
) -> Doubles:
    """Compute the weighted Kendall distance of an order to the votes, for each query.

    A ranker of weight w adds w for each pair of documents that it orders the opposite way, and
    w / 2 for each pair that it orders but the scores tie. Kemeny's order minimizes it. Takes
    O(r n²) time and O(n) memory beyond the input.

    Args:
        scores: The order: a score for each row, larger is better.
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        unranked: How documents that a ranker did not rank are treated.
        top: Count only this many documents of each ranker, its best, as ranked.

    Returns:
        A distance for each query.

    Example:
        >>> kendall_distance([3, 2, 1], [[3, 1], [2, 2], [1, 3]], ranker_weights=[1, 0.5]).tolist()
        [1.5]
    """
    checked = checked_votes(votes, offsets, ranker_weights, unranked, top)
    order = row_scores(scores, len(checked.values), "scores")
    distances = np.zeros(len(checked.offsets) - 1)
    over_queries(
        lambda first, last: _distances(
            order, checked.values, checked.offsets, checked.weights, distances, first, last
        ),
        checked.offsets,
    )
    return distances


@kernel
def margins(
    values: Doubles, weights: Doubles, begin: int, end: int, tolerance: float
) -> tuple[Doubles, float]:
    """Return the weight of rankers that prefer each document to each other, less the reverse.

    Also returns the distance that no order avoids: the weight of the minority of each pair.
    """
    size = end - begin
    table = np.zeros((size, size))
    unavoidable = 0.0
    for one in range(size):
        for other in range(one):
            above = 0.0
            below = 0.0
            for ranker in range(len(weights)):
                mine, theirs = values[begin + one, ranker], values[begin + other, ranker]
                if mine > theirs:
                    above += weights[ranker]
                elif mine < theirs:
                    below += weights[ranker]
            unavoidable += min(above, below)
            # Sums of the same weights in another order may differ in the last bits.
            if abs(above - below) > tolerance:
                table[one, other] = above - below
                table[other, one] = below - above
    return table, unavoidable


@kernel
def against(table: Doubles, order: Ints) -> float:
    """Return the total weight of the majorities that an order contradicts."""
    total = 0.0
    for rank in range(len(order)):
        for later in range(rank + 1, len(order)):
            total += max(0.0, table[order[later], order[rank]])
    return total


@kernel
def _distances(
    scores: Doubles,
    values: Doubles,
    offsets: Ints,
    weights: Doubles,
    distances: Doubles,
    first: int,
    last: int,
) -> None:
    for query in range(first, last):
        total = 0.0
        for one in range(offsets[query], offsets[query + 1]):
            for other in range(offsets[query], one):
                for ranker in range(len(weights)):
                    mine, theirs = values[one, ranker], values[other, ranker]
                    if mine > theirs:
                        sign = 1.0
                    elif mine < theirs:
                        sign = -1.0
                    else:
                        continue
                    if scores[one] == scores[other]:
                        total += weights[ranker] / 2
                    elif (scores[one] - scores[other]) * sign < 0:
                        total += weights[ranker]
        distances[query] = total


@kernel
def best_first(scores: Doubles) -> Ints:
    """Return rows by descending score; ties keep their order."""
    return np.argsort(-scores, kind="mergesort").astype(np.int64)


@kernel
def insert_all(table: Doubles, order: Ints) -> None:
    """Insertion sort: each document moves up while a majority prefers it to the one above."""
    for position in range(1, len(order)):
        document = order[position]
        target = position
        while target > 0 and table[document, order[target - 1]] > 0:
            order[target] = order[target - 1]
            target -= 1
        order[target] = document


@kernel
def move_all(table: Doubles, order: Ints, tolerance: float) -> None:
    """Move single documents to their best positions until no move lowers the distance."""
    size = len(order)
    moved = True
    while moved:
        moved = False
        for document in range(size):
            position = 0
            while order[position] != document:
                position += 1
            best, target = tolerance * size, position  # below that, gains are rounding errors
            gain = 0.0
            for above in range(position - 1, -1, -1):
                gain += table[document, order[above]]
                if gain > best:
                    best, target = gain, above
            gain = 0.0
            for below in range(position + 1, size):
                gain -= table[document, order[below]]
                if gain > best:
                    best, target = gain, below
            if target != position:
                moved = True
                step = 1 if target > position else -1
                while position != target:
                    order[position] = order[position + step]
                    position += step
                order[target] = document


@kernel
def write_order(order: Ints, begin: int, scores: Doubles) -> None:
    """Score the rows of a query n, n - 1, …, 1 from first to last."""
    for position in range(len(order)):
        scores[begin + order[position]] = len(order) - position

"""The majority table of a query, and the weighted Kendall distance that it stands for."""

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
    """The weighted Kendall distance of an order to the votes, of each query.

    A ranker of weight w adds w for each pair of documents that it puts the other way round, and
    w / 2 for each pair that it orders and the scores tie. Kemeny's order has the least. Takes
    O(r n²) time and O(n) memory beyond the input.

    Args:
        scores: The order: a score for each row, larger is better.
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        unranked: What a ranker says of documents that it did not rank.
        top: Count only the so many best documents of each ranker as ranked.

    Returns:
        A distance for each query.

    Example:
        >>> kendall_distance([3, 2, 1], [[3, 1], [2, 2], [1, 3]], ranker_weights=[1, 0.5]).tolist()
        [1.5]
    """
    taken = checked_votes(votes, offsets, ranker_weights, unranked, top)
    order = row_scores(scores, len(taken.values), "scores")
    distances = np.zeros(len(taken.offsets) - 1)
    over_queries(
        lambda first, last: _distances(
            order, taken.values, taken.offsets, taken.weights, distances, first, last
        ),
        taken.offsets,
    )
    return distances


@kernel
def margins(
    values: Doubles, weights: Doubles, begin: int, end: int, tolerance: float
) -> tuple[Doubles, float]:
    """By how much weight rankers prefer each document of a query to each other, less the reverse.

    Also returns the distance that no order avoids: of each pair, the weight of the minority.
    """
    size = end - begin
    table = np.zeros((size, size))
    sure = 0.0
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
            sure += min(above, below)
            # Sums of the same weights in another order may differ in the last bits.
            if abs(above - below) > tolerance:
                table[one, other] = above - below
                table[other, one] = below - above
    return table, sure


@kernel
def against(table: Doubles, order: Ints) -> float:
    """The weight of majorities that an order goes against."""
    total = 0.0
    for place in range(len(order)):
        for later in range(place + 1, len(order)):
            total += max(0.0, table[order[later], order[place]])
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
                        up = 1.0
                    elif mine < theirs:
                        up = -1.0
                    else:
                        continue
                    if scores[one] == scores[other]:
                        total += weights[ranker] / 2
                    elif (scores[one] - scores[other]) * up < 0:
                        total += weights[ranker]
        distances[query] = total

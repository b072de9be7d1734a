"""Aggregation by positions: Borda's count and reciprocal rank fusion."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from podium.aggregation.votes import Unranked, Votes, checked_votes
from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints, kernel
from podium.threads import over_queries


def borda(
    votes: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    ranker_weights: ArrayLike | None = None,
    unranked: Unranked = "below",
) -> Doubles:
    """Borda count: a document gets one point for each document that a ranker puts below it.

    Documents that a ranker ties get half a point for each other. With ``unranked="below"`` those
    it left out are tied below all others, so that they share the remaining points (Aslam and
    Montague, SIGIR 2001); with ``"ignore"`` only ranked documents get, and give, points.
    Takes O(r n log n) for r rankers of n documents.

    Args:
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        unranked: How documents that a ranker did not rank are treated.

    Returns:
        A score for each row, larger is better.

    Example:
        >>> nan = float("nan")
        >>> borda([[3, 1], [2, 2], [1, nan]]).tolist()
        [3.0, 3.0, 0.0]
        >>> borda([[3, 1], [2, 2], [1, nan]], unranked="ignore", ranker_weights=[1, 2]).tolist()
        [2.0, 3.0, 0.0]
    """
    return _summed(checked_votes(votes, offsets, ranker_weights, unranked), -1.0)


def reciprocal_rank(
    votes: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    ranker_weights: ArrayLike | None = None,
    rank_constant: float = 60.0,
) -> Doubles:
    """Reciprocal rank fusion: ``1 / (rank_constant + position)`` from each ranker of a document.

    Cormack, Clarke and Büttcher, SIGIR 2009. Unranked documents get nothing; tied ones get
    their mean position. Takes O(r n log n) for r rankers of n documents.

    Args:
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        rank_constant: The larger, the more slowly the weight of positions falls.

    Returns:
        A score for each row, larger is better.

    Example:
        >>> reciprocal_rank([[3, 2], [2, 1]]).tolist() == [2 / 61, 2 / 62]
        True
    """
    if not rank_constant >= 0:
        raise ArgumentError(
            f"rank_constant is {rank_constant}", hint="Give a number of at least 0, usually 60."
        )
    return _summed(checked_votes(votes, offsets, ranker_weights), float(rank_constant))


def _summed(votes: Votes, k: float) -> Doubles:
    scores = np.zeros(len(votes.values))
    over_queries(
        lambda first, last: _sum_points(
            votes.values, votes.offsets, votes.weights, k, scores, first, last
        ),
        votes.offsets,
    )
    return scores


@kernel
def _sum_points(
    values: Doubles,
    offsets: Ints,
    weights: Doubles,
    k: float,
    scores: Doubles,
    first: int,
    last: int,
) -> None:
    """Add up the points of all rankers: Borda's if k is negative, else reciprocal ranks."""
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        for ranker in range(len(weights)):
            rows = np.empty(end - begin, np.int64)
            count = 0
            for row in range(begin, end):
                if not np.isnan(values[row, ranker]):
                    rows[count] = row
                    count += 1
            order = np.argsort(values[rows[:count], ranker])  # worst first
            begin_tie = 0
            while begin_tie < count:
                value = values[rows[order[begin_tie]], ranker]
                end_tie = begin_tie + 1
                while end_tie < count and values[rows[order[end_tie]], ranker] == value:
                    end_tie += 1
                below = begin_tie + (end_tie - begin_tie - 1) / 2
                points = below if k < 0 else 1.0 / (k + (count - below))
                for position in range(begin_tie, end_tie):
                    scores[rows[order[position]]] += weights[ranker] * points
                begin_tie = end_tie

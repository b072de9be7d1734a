"""Supervised Kemeny: sort by weighted majorities, starting from a good order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from podium.aggregation.margins import best_first, insert_all, margins, move_all, write_order
from podium.aggregation.positional import borda
from podium.aggregation.votes import Unranked, checked_votes, row_scores
from podium.kernels import Doubles, Ints, kernel
from podium.threads import over_queries


def supervised_kemeny(
    votes: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    ranker_weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    top: int | ArrayLike | None = None,
    unranked: Unranked = "below",
    refine: bool = False,
) -> Doubles:
    """Sort each query's documents by the weighted majority of the rankers.

    Algorithm 2 of Cheng et al. (2014), made deterministic: their quick sort depends on its
    pivots, because majorities can be cyclic. Here documents are taken in the order of
    ``start``, and each moves up while a majority prefers it to the document above. No two
    neighbors of the result contradict a majority, so that a group of documents that wins
    against all others comes first (the extended Condorcet criterion), and a tie stays as in
    ``start``. Takes O(r n²) time and n² numbers of memory for r rankers of n documents, one
    query at a time in each thread.

    Args:
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker, such as ``proportional_weights``; equal if not
            given.
        start: The base order: a score for each row; Borda's count of the votes if not given.
        top: Count only this many documents of each ranker, its best, as ranked; one number, or
            one for each query.
        unranked: How documents that a ranker did not rank are treated. ``"ignore"`` with ``top``
            is the published algorithm.
        refine: Whether to then move single documents until no move lowers the distance to the
            votes. Each round takes O(n²).

    Returns:
        A score for each row: n for the first document of a query of n, 1 for the last.

    Example:
        >>> supervised_kemeny([[3, 1, 2], [2, 3, 3], [1, 2, 1]]).tolist()
        [2.0, 3.0, 1.0]
        >>> supervised_kemeny([[3, 1, 2], [2, 3, 3], [1, 2, 1]], ranker_weights=[3, 1, 1]).tolist()
        [3.0, 2.0, 1.0]
    """
    checked = checked_votes(votes, offsets, ranker_weights, unranked, top)
    if start is None:
        start_scores = borda_start(checked.values, checked.offsets, checked.weights, unranked)
    else:
        start_scores = row_scores(start, len(checked.values), "start")
    scores = np.empty(len(checked.values))
    over_queries(
        lambda first, last: _sort(
            checked.values,
            checked.offsets,
            checked.weights,
            checked.tolerance,
            start_scores,
            refine,
            scores,
            first,
            last,
        ),
        checked.offsets,
    )
    return scores


def borda_start(values: Doubles, offsets: Ints, weights: Doubles, unranked: Unranked) -> Doubles:
    """Borda's count of checked votes, rounded so that sums of the same points are equal."""
    missing = np.where(np.isinf(values), np.nan, values)
    counted = borda(missing, offsets, ranker_weights=weights, unranked=unranked)
    return np.round(counted / max(float(weights.sum()), 1e-300), 9)


@kernel
def _sort(
    values: Doubles,
    offsets: Ints,
    weights: Doubles,
    tolerance: float,
    start_scores: Doubles,
    refine: bool,
    scores: Doubles,
    first: int,
    last: int,
) -> None:
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        table, _ = margins(values, weights, begin, end, tolerance)
        order = best_first(start_scores[begin:end])
        insert_all(table, order)
        if refine:
            move_all(table, order, tolerance)
        write_order(order, begin, scores)

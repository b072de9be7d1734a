"""Exact Kemeny: the order nearest to the votes, with a proof of how near."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.aggregation.components import grouped_order
from podium.aggregation.kemeny import borda_start
from podium.aggregation.margins import against, margins
from podium.aggregation.moves import best_first, insert_all, move_all, write_order
from podium.aggregation.programme import Solved, solve_programme
from podium.aggregation.subsets import LARGEST, order_subsets
from podium.aggregation.votes import Unranked, checked_votes, row_scores
from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints
from podium.threads import ordered_map


@dataclass(frozen=True, eq=False, repr=False)
class KemenyOrders:
    """Orders near to votes, and how near any order could be.

    Attributes:
        scores: A score for each row: n for the first document of a query of n, 1 for the last.
        distances: The weighted Kendall distance of each query's order to the votes.
        bounds: What the distance of no order is below.
    """

    scores: Doubles
    distances: Doubles
    bounds: Doubles

    @property
    def gaps(self) -> Doubles:
        """By which part of its distance each query's order may be above the optimum."""
        return (self.distances - self.bounds) / np.where(self.distances > 0, self.distances, 1.0)

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """Which queries' orders are known to be nearest."""
        return self.gaps <= 1e-6

    def __repr__(self) -> str:
        return f"KemenyOrders({len(self.bounds)} queries, {int(self.optimal.sum())} optimal)"


def exact_kemeny(
    votes: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    ranker_weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    top: int | None = None,
    unranked: Unranked = "below",
    time_limit: float = 60.0,
) -> KemenyOrders:
    """The order of each query's documents with the least weighted Kendall distance to the votes.

    Documents whose majorities go in circles are grouped (O(n²)), and each group is ordered by
    itself: by dynamic programming up to 14 documents, by an integer programme (HiGHS) above. The
    problem is NP-hard, but votes that agree a little leave small groups, or programmes whose
    linear relaxation is an order. Where time runs out, the best order found is given, and the
    gap that is left. Memory is n² numbers for a query, and for a group of g documents g² and the
    constraints that were needed.

    Args:
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        start: Which groups come first where majorities leave it open: a score for each row;
            Borda's count of the votes if not given.
        top: Count only the so many best documents of each ranker as ranked.
        unranked: What a ranker says of documents that it did not rank.
        time_limit: Seconds for the integer programmes of one query.

    Example:
        >>> found = exact_kemeny([[3, 1, 2], [2, 3, 1], [1, 2, 3]], ranker_weights=[4, 3, 2])
        >>> found, found.scores.tolist(), found.distances.tolist(), found.gaps.tolist()
        (KemenyOrders(1 queries, 1 optimal), [3.0, 2.0, 1.0], [10.0], [0.0])
    """
    if not time_limit > 0:
        raise ArgumentError(f"time_limit is {time_limit}", hint="Give seconds above 0.")
    taken = checked_votes(votes, offsets, ranker_weights, unranked, top)
    if start is None:
        base = borda_start(taken.values, taken.offsets, taken.weights, unranked)
    else:
        base = row_scores(start, len(taken.values), "start")
    scores = np.empty(len(taken.values))

    def work(query: int) -> tuple[float, float]:
        begin, end = int(taken.offsets[query]), int(taken.offsets[query + 1])
        table, sure = margins(taken.values, taken.weights, begin, end, taken.tolerance)
        solved = order_exactly(table, best_first(base[begin:end]), taken.tolerance, time_limit)
        write_order(solved.order, begin, scores)
        return sure + solved.cost, sure + solved.bound

    found = np.array(list(ordered_map(work, range(len(taken.offsets) - 1), ahead=4)))
    distances, bounds = found.reshape(-1, 2).T
    return KemenyOrders(scores, distances.copy(), bounds.copy())


def order_exactly(table: Doubles, order: Ints, tolerance: float, seconds: float) -> Solved:
    """Order the documents of a majority table, group by group."""
    order, starts = grouped_order(table, order)
    cost = bound = 0.0
    # Programmes share the time by the documents that they order.
    hard = float(np.sum(np.diff(starts)[np.diff(starts) > LARGEST]))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin < 3:  # no circle is shorter
            continue
        group = order[begin:end]
        own = np.ascontiguousarray(table[np.ix_(group, group)])
        if len(group) <= LARGEST:
            best = order_subsets(own)
            solved = Solved(best, against(own, best), against(own, best))
        else:
            heuristic = np.arange(len(group))
            insert_all(own, heuristic)
            move_all(own, heuristic, tolerance)
            solved = solve_programme(own, heuristic, tolerance, seconds * len(group) / hard)
        order[begin:end] = group[solved.order]
        cost += solved.cost
        bound += solved.bound
    return Solved(order, cost, bound)

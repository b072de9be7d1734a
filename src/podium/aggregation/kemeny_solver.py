"""Exact Kemeny: the order closest to the votes, with a bound on the optimality gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.aggregation.integer_programme import Solved, solve_programme
from podium.aggregation.kemeny import borda_start
from podium.aggregation.margins import (
    against,
    best_first,
    insert_all,
    margins,
    move_all,
    write_order,
)
from podium.aggregation.votes import Unranked, checked_votes, row_scores
from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints, kernel
from podium.threads import ordered_map

LARGEST = 14
"""14 documents have 16,384 subsets: a millisecond, far faster than an integer program."""

_HALF = LARGEST // 2


@dataclass(frozen=True, eq=False, repr=False)
class KemenyOrders:
    """Orders close to the votes, and a lower bound on the distance of any order.

    Attributes:
        scores: A score for each row: n for the first document of a query of n, 1 for the last.
        distances: The weighted Kendall distance of each query's order to the votes.
        bounds: A lower bound on the distance of any order, for each query.
    """

    scores: Doubles
    distances: Doubles
    bounds: Doubles

    @property
    def gaps(self) -> Doubles:
        """The relative optimality gap of each query's order."""
        return (self.distances - self.bounds) / np.where(self.distances > 0, self.distances, 1.0)

    @property
    def optimal(self) -> NDArray[np.bool_]:
        """Which queries' orders are proven optimal."""
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
    """Order each query's documents with the least weighted Kendall distance to the votes.

    Documents with cyclic majorities are grouped (O(n²)), and each group is ordered separately: by
    dynamic programming up to 14 documents, by an integer program (HiGHS) above. The problem is
    NP-hard, but votes that agree even a little leave small groups, or programs whose linear
    relaxation is an order. If time runs out, the best order so far is returned with its gap.
    Memory is n² numbers for a query, and g² plus the constraints needed for a group of g.

    Args:
        votes: A row for each document, a column for each ranker: larger is better (negate ranks),
            NaN means not ranked.
        offsets: Where each query's rows begin, with the number of rows last; one query if not
            given.
        ranker_weights: A weight for each ranker; equal if not given.
        start: A score for each row that decides which group comes first where majorities do
            not; by default the Borda count of the votes.
        top: Count only this many documents of each ranker, its best, as ranked.
        unranked: How documents that a ranker did not rank are treated.
        time_limit: Seconds for the integer programs of one query.

    Example:
        >>> result = exact_kemeny([[3, 1, 2], [2, 3, 1], [1, 2, 3]], ranker_weights=[4, 3, 2])
        >>> result, result.scores.tolist(), result.distances.tolist(), result.gaps.tolist()
        (KemenyOrders(1 queries, 1 optimal), [3.0, 2.0, 1.0], [10.0], [0.0])
    """
    if not time_limit > 0:
        raise ArgumentError(f"time_limit is {time_limit}", hint="Give seconds above 0.")
    checked = checked_votes(votes, offsets, ranker_weights, unranked, top)
    if start is None:
        start_scores = borda_start(checked.values, checked.offsets, checked.weights, unranked)
    else:
        start_scores = row_scores(start, len(checked.values), "start")
    scores = np.empty(len(checked.values))

    def solve_query(query: int) -> tuple[float, float]:
        begin, end = int(checked.offsets[query]), int(checked.offsets[query + 1])
        table, unavoidable = margins(checked.values, checked.weights, begin, end, checked.tolerance)
        solved = order_exactly(
            table, best_first(start_scores[begin:end]), checked.tolerance, time_limit
        )
        write_order(solved.order, begin, scores)
        return unavoidable + solved.cost, unavoidable + solved.bound

    costs = np.array(list(ordered_map(solve_query, range(len(checked.offsets) - 1), ahead=4)))
    distances, bounds = costs.reshape(-1, 2).T
    return KemenyOrders(scores, distances.copy(), bounds.copy())


def order_exactly(table: Doubles, order: Ints, tolerance: float, seconds: float) -> Solved:
    """Order the documents of a majority table, group by group."""
    order, starts = grouped_order(table, order)
    cost = bound = 0.0
    # The time is split among the programs by the number of their documents.
    hard = float(np.sum(np.diff(starts)[np.diff(starts) > LARGEST]))
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin < 3:  # no cycle is shorter
            continue
        group = order[begin:end]
        group_table = np.ascontiguousarray(table[np.ix_(group, group)])
        if len(group) <= LARGEST:
            best = order_subsets(group_table)
            solved = Solved(best, against(group_table, best), against(group_table, best))
        else:
            heuristic = np.arange(len(group))
            insert_all(group_table, heuristic)
            move_all(group_table, heuristic, tolerance)
            solved = solve_programme(group_table, heuristic, tolerance, seconds * len(group) / hard)
        order[begin:end] = group[solved.order]
        cost += solved.cost
        bound += solved.bound
    return Solved(order, cost, bound)


@kernel
def order_subsets(table: Doubles) -> Ints:
    """Order at most ``LARGEST`` documents so that the least majority weight is contradicted.

    The best order of a set ends with one of its documents, after the best order of the others:
    O(2ⁿ n). The cost of placing a document after others is looked up in two halves.
    """
    size = len(table)
    mask = (1 << _HALF) - 1
    low = np.zeros((size, 1 << _HALF))
    high = np.zeros((size, 1 << _HALF))
    for document in range(size):
        for others in range(1, 1 << _HALF):
            bit = 0
            while not others >> bit & 1:
                bit += 1
            rest = others & (others - 1)
            low[document, others] = low[document, rest]
            if bit < size:
                low[document, others] += max(0.0, table[document, bit])
            high[document, others] = high[document, rest]
            if bit + _HALF < size:
                high[document, others] += max(0.0, table[document, bit + _HALF])
    least = np.full(1 << size, np.inf)
    final = np.zeros(1 << size, np.int8)
    least[0] = 0.0
    for subset in range(1, 1 << size):
        for document in range(size):
            if subset >> document & 1:
                others = subset & ~(1 << document)
                cost = (
                    least[others] + low[document, others & mask] + high[document, others >> _HALF]
                )
                if cost < least[subset]:
                    least[subset] = cost
                    final[subset] = document
    order = np.empty(size, np.int64)
    subset = (1 << size) - 1
    for position in range(size - 1, -1, -1):
        order[position] = final[subset]
        subset &= ~(1 << order[position])
    return order


@kernel
def grouped_order(table: Doubles, order: Ints) -> tuple[Ints, Ints]:
    """Return the documents by groups with cyclic majorities, and the index at which each begins.

    The groups are strongly connected components. An order that keeps them in sequence contradicts
    no majority between two of them, so that each can be ordered separately (the extended Condorcet
    criterion).

    Where majorities do not decide which of two groups is first, the one with the earlier document
    in the given order is; within a group the given order is kept. Takes O(n²).
    """
    size = len(order)
    group = _groups(table, order)
    groups = 0
    for document in range(size):
        groups = max(groups, group[document] + 1)
    blocked = np.zeros(groups, np.int64)  # majorities won by documents of groups not yet placed
    sizes = np.zeros(groups, np.int64)
    earliest = np.full(groups, size, np.int64)
    for position in range(size):
        document = order[position]
        sizes[group[document]] += 1
        earliest[group[document]] = min(earliest[group[document]], position)
        for other in range(size):
            if table[other, document] > 0 and group[other] != group[document]:
                blocked[group[document]] += 1
    result = np.empty(size, np.int64)
    starts = np.zeros(groups + 1, np.int64)
    for turn in range(groups):
        chosen = -1
        for each in range(groups):
            if blocked[each] == 0 and (chosen < 0 or earliest[each] < earliest[chosen]):
                chosen = each
        blocked[chosen] = -1
        end = starts[turn]
        starts[turn + 1] = end + sizes[chosen]
        for position in range(size):
            document = order[position]
            if group[document] == chosen:
                result[end] = document
                end += 1
                for other in range(size):
                    if table[document, other] > 0 and group[other] != chosen:
                        blocked[group[other]] -= 1
    return result, starts


@kernel
def _groups(table: Doubles, order: Ints) -> Ints:
    """Return the strongly connected component of each document (Kosaraju's algorithm)."""
    size = len(order)
    finished = np.empty(size, np.int64)
    path = np.empty(size, np.int64)
    following = np.zeros(size, np.int64)
    seen = np.zeros(size, np.bool_)
    count = 0
    for position in range(size):
        if seen[order[position]]:
            continue
        depth = 1
        path[0] = order[position]
        seen[order[position]] = True
        while depth:
            document = path[depth - 1]
            while following[document] < size and (
                seen[following[document]] or table[document, following[document]] <= 0
            ):
                following[document] += 1
            if following[document] == size:
                finished[count] = document
                count += 1
                depth -= 1
            else:
                path[depth] = following[document]
                seen[path[depth]] = True
                depth += 1
    group = np.full(size, -1, np.int64)
    groups = 0
    for position in range(size - 1, -1, -1):
        if group[finished[position]] >= 0:
            continue
        depth = 1
        path[0] = finished[position]
        group[finished[position]] = groups
        while depth:
            depth -= 1
            document = path[depth]
            for other in range(size):
                if group[other] < 0 and table[other, document] > 0:
                    group[other] = groups
                    path[depth] = other
                    depth += 1
        groups += 1
    return group

"""The best order of many documents as an integer programme, its constraints added as needed.

A variable for each pair says whether the first comes before the second. It is an order if no
three documents go in a circle; of those O(n³) constraints few ever bind, so that only broken
ones are added, until none is. Without whole numbers asked for, this gives a lower bound quickly,
and for votes that agree a little nearly always the order itself.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.aggregation.margins import against
from podium.aggregation.moves import best_first, insert_all, move_all
from podium.kernels import Doubles, Ints, kernel

_BROKEN = 1e-6
_SURE = 1e-7  # what HiGHS' own tolerances leave of a bound
_ONE_SOLVER = Lock()  # HiGHS keeps state of its own for all threads of a process


class Solved(NamedTuple):
    """The best order found, what it goes against, and a bound on what any order goes against."""

    order: Ints
    cost: float
    bound: float


class _Relaxed(NamedTuple):
    values: Doubles | None
    bound: float


def solve_programme(table: Doubles, order: Ints, tolerance: float, seconds: float) -> Solved:
    """Order documents at the least cost, starting from a good order, for so many seconds."""
    deadline = time.perf_counter() + seconds
    size = len(table)
    first, second = np.triu_indices(size, 1)
    costs = -table[first, second]  # of the first before the second, less the cost of the reverse
    base = float(np.maximum(table[first, second], 0.0).sum())
    scale = float(np.abs(costs).max())
    best, cost, bound = order, against(table, order), 0.0
    triples = np.empty((0, 3), np.int64)
    whole = False
    enough = max(tolerance * size * size, _SURE * cost)
    while cost - bound > enough and time.perf_counter() < deadline:
        left = deadline - time.perf_counter()
        values, found = _solve(costs / scale, size, triples, whole, left)
        bound = max(bound, base + found * scale)
        if values is None:
            break
        before = _square(values, first, second, size)
        rounded = best_first(before.sum(axis=1))
        insert_all(table, rounded)
        move_all(table, rounded, tolerance)
        worth = against(table, rounded)
        if worth < cost:
            best, cost = rounded, worth
        more = _broken(before, 20 * size)
        if len(more):
            triples = np.concatenate((triples, more))
        elif whole or np.all(np.abs(values - np.round(values)) < _BROKEN):
            break  # the relaxation is an order, which was the one rounded to
        else:
            whole = True
    return Solved(best, cost, cost if cost - bound <= enough else bound)


def _solve(costs: Doubles, size: int, triples: Ints, whole: bool, seconds: float) -> _Relaxed:
    """The programme with the constraints of some triples: its values if solved, and its bound."""
    from scipy import optimize, sparse

    first, second, third = triples.T
    columns = np.stack(
        [
            _pair(np.minimum(one, other), np.maximum(one, other), size)
            for one, other in ((first, second), (second, third), (first, third))
        ],
        axis=1,
    )
    signs: NDArray[np.float64] = np.tile([1.0, 1.0, -1.0], (len(triples), 1))
    rows = np.repeat(np.arange(len(triples)), 3)
    matrix = sparse.csr_array(
        (signs.ravel(), (rows, columns.ravel())), shape=(len(triples), len(costs))
    )
    limits = [optimize.LinearConstraint(matrix, 0.0, 1.0)] if len(triples) else []
    with _ONE_SOLVER:
        found: Any = optimize.milp(
            costs,
            integrality=np.full(len(costs), int(whole)),
            bounds=optimize.Bounds(0.0, 1.0),
            constraints=limits,
            options={"time_limit": max(seconds, 1e-3), "mip_rel_gap": 0.0},
        )
    if found.status == 0:
        known = found.mip_dual_bound if whole and found.mip_dual_bound is not None else found.fun
        return _Relaxed(np.asarray(found.x, np.float64), float(known))
    unknown = not whole or found.mip_dual_bound is None
    return _Relaxed(None, -np.inf if unknown else float(found.mip_dual_bound))


def _pair(first: Ints, second: Ints, size: int) -> Ints:
    """The variable of each pair, in the order of ``np.triu_indices``."""
    return first * (2 * size - first - 1) // 2 + second - first - 1


def _square(values: Doubles, first: Ints, second: Ints, size: int) -> Doubles:
    before = np.zeros((size, size))
    before[first, second] = values
    before[second, first] = 1.0 - values
    return before


def _broken(before: Doubles, most: int) -> Ints:
    """Triples that go in a circle, in either direction, the worst first, at most so many."""
    found, excess = _circles(before, _BROKEN)
    return found[np.argsort(-excess, kind="stable")[:most]]


@kernel
def _circles(before: Doubles, least: float) -> tuple[Ints, Doubles]:
    """Triples (i < j < k) for which x_ij + x_jk - x_ik leaves 0..1, and by how much.

    Of each pair (i, k) only the worst is kept: many constraints of one variable say the same.
    """
    size = len(before)
    found = np.empty((size * size, 3), np.int64)
    excess = np.empty(size * size)
    count = 0
    for one in range(size):
        for third in range(one + 1, size):
            worst, middle = least, -1
            for other in range(one + 1, third):
                total = before[one, other] + before[other, third] - before[one, third]
                over = max(-total, total - 1.0)
                if over > worst:
                    worst, middle = over, other
            if middle >= 0:
                found[count, 0], found[count, 1], found[count, 2] = one, middle, third
                excess[count] = worst
                count += 1
    return found[:count], excess[:count]

"""The best order of many documents as an integer program with lazily added constraints.

A variable for each pair says whether the first comes before the second. The values are an order if
no three documents form a cycle; few of those O(n³) constraints ever bind, so that only violated
ones are added, until none is left. The linear relaxation quickly gives a lower bound, and for votes
that agree even a little nearly always the order itself.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.aggregation.margins import against, best_first, insert_all, move_all
from podium.kernels import Doubles, Ints, kernel

_VIOLATION = 1e-6
_BOUND_TOLERANCE = 1e-7  # relative error of a bound due to HiGHS' tolerances
_SOLVER_LOCK = Lock()  # HiGHS has state that all threads of a process share


class Solved(NamedTuple):
    """The best order known, its cost (the majorities it contradicts), and a bound on any cost."""

    order: Ints
    cost: float
    bound: float


class _Relaxed(NamedTuple):
    values: Doubles | None
    bound: float


def solve_programme(table: Doubles, order: Ints, tolerance: float, seconds: float) -> Solved:
    """Minimize the cost of an order within some seconds, starting from a good order."""
    deadline = time.perf_counter() + seconds
    size = len(table)
    first, second = np.triu_indices(size, 1)
    costs = -table[first, second]  # of the first before the second, less the cost of the reverse
    base = float(np.maximum(table[first, second], 0.0).sum())
    scale = float(np.abs(costs).max())
    best, cost, bound = order, against(table, order), 0.0
    triples = np.empty((0, 3), np.int64)
    integral = False
    tolerated_gap = max(tolerance * size * size, _BOUND_TOLERANCE * cost)
    while cost - bound > tolerated_gap and time.perf_counter() < deadline:
        remaining = deadline - time.perf_counter()
        values, relaxed_cost = _solve(costs / scale, size, triples, integral, remaining)
        bound = max(bound, base + relaxed_cost * scale)
        if values is None:
            break
        before = _square(values, first, second, size)
        rounded = best_first(before.sum(axis=1))
        insert_all(table, rounded)
        move_all(table, rounded, tolerance)
        rounded_cost = against(table, rounded)
        if rounded_cost < cost:
            best, cost = rounded, rounded_cost
        violated = _violated(before, 20 * size)
        if len(violated):
            triples = np.concatenate((triples, violated))
        elif integral or np.all(np.abs(values - np.round(values)) < _VIOLATION):
            break  # the relaxation is an order, and it is the rounded one
        else:
            integral = True
    return Solved(best, cost, cost if cost - bound <= tolerated_gap else bound)


def _solve(costs: Doubles, size: int, triples: Ints, integral: bool, seconds: float) -> _Relaxed:
    """Solve the program with the constraints of some triples; values are None if not solved."""
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
    with _SOLVER_LOCK:
        result: Any = optimize.milp(
            costs,
            integrality=np.full(len(costs), int(integral)),
            bounds=optimize.Bounds(0.0, 1.0),
            constraints=limits,
            options={"time_limit": max(seconds, 1e-3), "mip_rel_gap": 0.0},
        )
    if result.status == 0:
        known = (
            result.mip_dual_bound if integral and result.mip_dual_bound is not None else result.fun
        )
        return _Relaxed(np.asarray(result.x, np.float64), float(known))
    unknown = not integral or result.mip_dual_bound is None
    return _Relaxed(None, -np.inf if unknown else float(result.mip_dual_bound))


def _pair(first: Ints, second: Ints, size: int) -> Ints:
    """Return the variable's index of each pair, in the order of ``np.triu_indices``."""
    return first * (2 * size - first - 1) // 2 + second - first - 1


def _square(values: Doubles, first: Ints, second: Ints, size: int) -> Doubles:
    before = np.zeros((size, size))
    before[first, second] = values
    before[second, first] = 1.0 - values
    return before


def _violated(before: Doubles, most: int) -> Ints:
    """Return at most ``most`` triples that form a cycle, the most violated first."""
    triples, excess = _cycles(before, _VIOLATION)
    return triples[np.argsort(-excess, kind="stable")[:most]]


@kernel
def _cycles(before: Doubles, least: float) -> tuple[Ints, Doubles]:
    """Return triples (i < j < k) with x_ij + x_jk - x_ik outside 0..1, and the excess of each.

    Only the worst of each pair (i, k) is kept: other constraints of one variable add little.
    """
    size = len(before)
    triples = np.empty((size * size, 3), np.int64)
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
                triples[count, 0], triples[count, 1], triples[count, 2] = one, middle, third
                excess[count] = worst
                count += 1
    return triples[:count], excess[:count]

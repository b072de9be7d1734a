"""DCGLearn beside cvxpy with Clarabel, and its growth with the number of pairs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._report import run_measured
from podium.utility import DCGLearn, RankingPreferences
from podium.utility.learned_utility import LearnedUtility
from podium.utility.next_pair import differences
from studies.metric_curves import LIST, judged, shuffles_of, truth_table

_FLIPPED = 0.1


def noisy(count: int, seed: int = 0) -> RankingPreferences:
    """Preferences of people with gains 2^l - 1, one in ten reversed."""
    random = np.random.default_rng(seed)
    pairs = judged(shuffles_of(LIST)(count, random), truth_table("exponential", 10, 5))
    flipped = np.where(random.random(len(pairs)) < _FLIPPED, -1, 1)
    return pairs.with_choices(pairs.choices * flipped)


def ours(pairs: RankingPreferences) -> LearnedUtility:
    """The paper's problem, solved here."""
    return DCGLearn(C=1.0, form="by-position").fit(pairs).learned_


def cvxpy_slacks(pairs: RankingPreferences) -> float:
    """The paper's problem as it is printed, by cvxpy with Clarabel: its smallest objective."""
    import cvxpy as cp

    full, signs = _matrix(pairs)
    w, slacks = cp.Variable(full.shape[1]), cp.Variable(len(pairs), nonneg=True)
    table = cp.reshape(w, (pairs.depth, pairs.grades), order="C")
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(w) + cp.sum_squares(slacks)),
        [cp.multiply(signs, full @ w) >= 1 - slacks, table[:, 1:] >= table[:, :-1]],
    )
    return float(problem.solve(solver=cp.CLARABEL))


def cvxpy_smooth(pairs: RankingPreferences) -> float:
    """The same without slack variables, as a user of cvxpy who knows that they can be left out."""
    import cvxpy as cp

    full, signs = _matrix(pairs)
    w = cp.Variable(full.shape[1])
    table = cp.reshape(w, (pairs.depth, pairs.grades), order="C")
    loss = cp.sum_squares(cp.pos(1 - cp.multiply(signs, full @ w)))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w) + loss), [table[:, 1:] >= table[:, :-1]])
    return float(problem.solve(solver=cp.CLARABEL))


def _matrix(pairs: RankingPreferences) -> tuple[Any, np.ndarray]:
    from scipy import sparse

    count = len(pairs)
    full = np.zeros((count, pairs.depth, pairs.grades))
    full[:, :, 1:] = differences(pairs).reshape(count, pairs.depth, -1)
    full[:, :, 0] = -full.sum(axis=2)  # each position holds one document
    return sparse.csr_matrix(full.reshape(count, -1)), pairs.choices.astype(np.float64)


def seconds_of(pairs: RankingPreferences, repeats: int) -> float:
    """The median time of learning."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        ours(pairs)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def million(count: int) -> tuple[float, float]:
    """Seconds and GiB of so many pairs in a process of its own, compiled before."""
    code = (
        "import time; from benchmarks._utility_speed import noisy, ours; "
        f"ours(noisy(1000)); pairs = noisy({count}); start = time.perf_counter(); ours(pairs); "
        "print(time.perf_counter() - start)"
    )
    printed, memory = run_measured(code)
    return float(printed), memory

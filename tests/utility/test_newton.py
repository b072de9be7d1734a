"""The optimum of DCGLearn, against cvxpy's, against scipy's, and by its own conditions."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from podium.errors import DataError
from podium.utility import DCGLearn, RankingPreferences
from podium.utility.learned_utility import LearnedUtility
from podium.utility.newton import minimize, minimize_quadratic, ridge_of
from podium.utility.pair_kernels import PairArrays
from podium.utility.utility_tables import increments
from tests.utility.people import judged, preferences, random_pairs


def one_hot(rankings: np.ndarray, grades: int) -> np.ndarray:
    """The paper's binary vectors s, of length depth * grades."""
    return (rankings[:, :, None] == np.arange(grades)).reshape(len(rankings), -1).astype(float)


def by_cvxpy(
    pairs: RankingPreferences, C: float, ties: float, much: float, decreasing: bool
) -> float:
    """Eqs 1 to 3 and 6 to 8 as they are printed, with slack variables."""
    w = cp.Variable(pairs.depth * pairs.grades)
    slacks = cp.Variable(len(pairs), nonneg=True)
    table = cp.reshape(w, (pairs.depth, pairs.grades), order="C")
    leads = (one_hot(pairs.left, pairs.grades) - one_hot(pairs.right, pairs.grades)) @ w
    constraints = [table[:, 1:] >= table[:, :-1]]
    if decreasing:
        rises = table[:, 1:] - table[:, :-1]
        constraints.append(rises[:-1] >= rises[1:])
    weights = C * pairs.pair_weights
    for index, choice in enumerate(pairs.choices):
        if choice == 0:
            weights[index] *= ties
            constraints.append(cp.abs(leads[index]) <= 1 + slacks[index])
        else:
            asked = much if abs(choice) == 2 else 1.0
            constraints.append(np.sign(choice) * leads[index] >= asked - slacks[index])
    objective = cp.sum_squares(w) + cp.sum(cp.multiply(weights, cp.square(slacks)))
    return float(cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL))


@settings(max_examples=12)
@given(
    preferences(most=12),
    st.sampled_from([0.1, 3.0]),
    st.booleans(),
)
def test_the_optimum_is_that_of_the_printed_problem(
    pairs: RankingPreferences, C: float, decreasing: bool
) -> None:
    expected = by_cvxpy(pairs, C, ties=0.5, much=1.5, decreasing=decreasing)
    model = DCGLearn(C, "by-position", decreasing, tie_weight=0.5, much=1.5)
    try:
        result = model.fit(pairs).learned_
    except DataError:  # nothing to learn: w is 0 there too
        zero = C * np.sum(pairs.pair_weights * np.array([0, 1, 1.5**2])[np.abs(pairs.choices)])
        assert expected == pytest.approx(zero, rel=1e-6, abs=1e-6)
    else:
        assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


def conditions(pairs: RankingPreferences, result: LearnedUtility, C: float) -> tuple[float, float]:
    """How far the optimality conditions of w are missed, relative to the sum of all forces.

    With multipliers of the monotone constraints: increments are at least 0, the derivative by each
    is at least 0, and one of both is 0.
    """
    leads = pairs.leads(result.table) * np.sign(pairs.choices)
    slack = np.maximum(1 - leads, 0) * (pairs.choices != 0)
    force = -2 * C * pairs.pair_weights * slack * np.sign(pairs.choices)
    difference = one_hot(pairs.left, pairs.grades) - one_hot(pairs.right, pairs.grades)
    centered = result.table - result.table.mean(axis=1, keepdims=True)
    by_w = 2 * centered + (difference.T @ force).reshape(result.table.shape)
    by_increment = np.cumsum(by_w[:, ::-1], axis=1)[:, ::-1][:, 1:]
    increments_ = np.diff(result.table, axis=1)
    scale = np.abs(force).sum() + 1.0
    complementary = np.abs(np.minimum(increments_, by_increment / scale)).max()
    return complementary, -min(increments_.min(), 0.0)


@given(preferences(), st.floats(1e-3, 1e3))
def test_optimality_conditions_hold(pairs: RankingPreferences, C: float) -> None:
    strict = pairs.take(pairs.strict)
    if not len(strict):
        return
    try:
        result = DCGLearn(C, "by-position").fit(strict).learned_
    except DataError:
        return
    complementary, negative = conditions(strict, result, C)
    assert complementary < 1e-8
    assert negative < 1e-12


@given(preferences(), st.floats(1e-2, 1e2))
def test_sides_and_order_do_not_matter(pairs: RankingPreferences, C: float) -> None:
    turned = RankingPreferences.from_arrays(
        pairs.right,
        pairs.left,
        -pairs.choices,
        pair_weights=pairs.pair_weights,
        grades=pairs.grades,
    ).take(np.arange(len(pairs))[::-1])
    model = DCGLearn(C, "by-position")
    try:
        one = model.fit(pairs).learned_
    except DataError:
        with pytest.raises(DataError):
            model.fit(turned)
        return
    assert model.fit(turned).learned_.table == pytest.approx(one.table, abs=1e-7)


@given(preferences(), st.integers(2, 4))
def test_a_weight_counts_like_so_many_pairs(pairs: RankingPreferences, times: int) -> None:
    repeated = pairs.take(np.repeat(np.arange(len(pairs)), times))
    weighted = RankingPreferences.from_arrays(
        pairs.left,
        pairs.right,
        pairs.choices,
        pair_weights=pairs.pair_weights * times,
        grades=pairs.grades,
    )
    model = DCGLearn(1.0, "by-position")
    try:
        one = model.fit(repeated).learned_
    except DataError:
        return
    assert one.objective == pytest.approx(model.fit(weighted).learned_.objective, rel=1e-9)


def test_any_start_gives_the_same_optimum() -> None:
    pairs = judged(random_pairs(300), np.outer([4, 3, 2, 1], [0, 1, 3]))
    problem = PairArrays(
        pairs.left,
        pairs.right,
        np.ones(len(pairs)),
        np.ones(len(pairs)),
        np.zeros(len(pairs), bool),
        3,
    )
    ridge, shape = ridge_of(4, 3), increments(4, 3)
    zero = minimize(problem, ridge, shape)
    for seed in range(5):
        start = np.random.default_rng(seed).exponential(10.0, shape.shape[1])
        again = minimize(problem, ridge, shape, start)
        assert again.utilities == pytest.approx(zero.utilities, abs=1e-8)


def test_many_pairs_start_from_a_sample_and_end_at_the_optimum() -> None:
    random = np.random.default_rng(0)
    pairs = judged(random_pairs(70_000, seed=1), np.outer([4, 3, 2, 1], [0, 1, 3]))
    flipped = np.where(random.random(len(pairs)) < 0.2, -1, 1)
    pairs = pairs.with_choices(pairs.choices * flipped)
    pairs = pairs.take(pairs.strict)
    result = DCGLearn(1.0, "by-position").fit(pairs).learned_
    complementary, _ = conditions(pairs, result, 1.0)
    assert complementary < 1e-8


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = judged(random_pairs(150_000, seed=1), np.outer([4, 3, 2, 1], [0, 1, 3]))
    tables = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        tables.append(DCGLearn(1.0, "by-position").fit(pairs).learned_.table)
    assert np.array_equal(*tables)


def test_rank_one_is_no_worse_than_any_gains_and_discounts_that_scipy_finds() -> None:
    random = np.random.default_rng(5)
    pairs = judged(random_pairs(120, 3, 3, seed=2), np.outer([3, 2, 1], [0, 1, 4]))
    pairs = pairs.take(pairs.strict)
    flipped = np.where(random.random(len(pairs)) < 0.15, -1, 1)
    pairs = pairs.with_choices(pairs.choices * flipped)
    signs = pairs.choices.astype(float)

    def objective(values: np.ndarray) -> float:
        table = np.outer(values[:3], np.concatenate(([0], np.cumsum(values[3:]))))
        centered = table - table.mean(axis=1, keepdims=True)
        slack = np.maximum(1 - signs * pairs.leads(table), 0)
        return float(np.sum(centered**2) + np.sum(slack**2))

    best = min(
        optimize.minimize(
            objective, random.exponential(1.0, 5), method="L-BFGS-B", bounds=[(0, None)] * 5
        ).fun
        for _ in range(10)
    )
    result = DCGLearn(1.0).fit(pairs).learned_
    assert result.objective <= best * (1 + 1e-5)
    assert result.table == pytest.approx(
        np.outer(result.discounts, result.gains) * result.table[0, -1], abs=1e-8
    )


@pytest.mark.parametrize("form", ["rank-one", "by-position"])
def test_decreasing_discounts_are_kept(form: str) -> None:
    pairs = judged(random_pairs(300), np.outer([1, 3, 2, 4], [0, 1, 3]))
    free = DCGLearn(1.0, form).fit(pairs).learned_  # type: ignore[arg-type]
    bound = DCGLearn(1.0, form, decreasing=True).fit(pairs).learned_  # type: ignore[arg-type]
    assert free.discounts.argmax() == 3
    assert np.all(np.diff(np.diff(bound.table, axis=1), axis=0) <= 1e-9)
    assert free.objective <= bound.objective


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans())
def test_small_quadratics_are_solved_to_their_conditions(
    size: int, seed: int, sparse: bool
) -> None:
    random = np.random.default_rng(seed)
    root = random.normal(size=(size, size))
    matrix = root @ root.T + 0.1 * np.eye(size)
    pull = random.normal(size=size) * (random.random(size) < 0.5 if sparse else 1.0)
    for start in (np.zeros(size), random.exponential(1.0, size)):
        result = minimize_quadratic(matrix, pull, start)
        slope = matrix @ result - pull
        assert np.all(result >= 0)
        assert np.abs(np.minimum(result, slope)).max() < 1e-8

"""Folds, the choice of C and held-out leads, against the same spelled out."""

from dataclasses import replace

import numpy as np
import pytest

from podium.data.seeds import generator
from podium.errors import DataError
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.learn import GRID, choose_C, folds_of, held_out_leads
from podium.utility.learned_utility import accuracy
from podium.utility.utility_tables import NoGainsError
from tests.utility.people import judged, random_pairs

GAINS, DISCOUNTS = np.array([0.0, 0.3, 1.0]), np.array([1.0, 0.6, 0.3])
TRUTH = np.outer(DISCOUNTS, GAINS)


def noisy(count: int, seed: int = 0, wrong: float = 0.2, weights: bool = True):
    """Verdicts of which some are reversed, two pairs a query, with weights."""
    pairs = judged(random_pairs(count, 3, seed=seed), TRUTH)
    random = np.random.default_rng(seed)
    choices = np.where(random.random(count) < wrong, -pairs.choices, pairs.choices)
    return RankingPreferences.from_arrays(
        pairs.left,
        pairs.right,
        choices,
        queries=np.arange(count) // 2,
        pair_weights=random.choice([0.5, 1.0, 3.0], count) if weights else None,
        grades=3,
    )


def pooled_accuracy(model: DCGLearn, pairs: RankingPreferences, C: float) -> float:
    """The weighted share of strict preferences that are foretold by the other folds."""
    right = total = 0.0
    for train, test in folds_of(pairs, model.folds, model.random_state):
        table = DCGLearn(C, "by-position", tie_weight=model.tie_weight).fit(train).learned_.table
        leads = test.leads(table)
        for choice, lead, weight in zip(test.choices, leads, test.pair_weights, strict=True):
            if choice != 0:
                total += weight
                right += weight * (1.0 if choice * lead > 0 else 0.5 if lead == 0 else 0.0)
    return right / total


@pytest.mark.parametrize("seed", range(4))
def test_the_c_that_foretells_most_is_chosen_and_the_smallest_of_several(seed: int) -> None:
    pairs = noisy(60, seed)
    model = DCGLearn(form="rank-one", folds=3, random_state=seed)
    grid = (0.003, 0.1, 3.0, 100.0)
    shares = [pooled_accuracy(model, pairs, C) for C in grid]
    best = min(index for index, share in enumerate(shares) if share >= max(shares) - 1e-12)
    assert choose_C(model, pairs, grid) == grid[best]
    assert choose_C(model, pairs, grid[best : best + 1]) == grid[best]


def test_the_smallest_of_several_is_chosen_whatever_the_order_of_the_grid() -> None:
    pairs = RankingPreferences.from_arrays([[1, 0]] * 9, [[0, 1]] * 9, [1] * 9)
    assert choose_C(DCGLearn(), pairs, [1000.0, 0.001, 1.0]) == 0.001


@pytest.mark.parametrize("queries", [5, 6])
def test_few_queries_are_enough_for_a_report(queries: int) -> None:
    pairs = judged(random_pairs(40, 3, seed=1), TRUTH)
    few = RankingPreferences.from_arrays(
        pairs.left, pairs.right, pairs.choices, queries=np.arange(40) % queries, grades=3
    )
    leads = held_out_leads(DCGLearn(), few)
    assert np.isfinite(leads).all()
    assert np.any(leads != 0)


def test_the_grid_is_powers_of_ten() -> None:
    assert pytest.approx([10.0**power for power in range(-3, 4)], rel=1e-12) == GRID


@pytest.mark.parametrize("form", ["rank-one", "by-position"])
def test_leads_relative_to_the_best_do_not_change_the_choice(form: str) -> None:
    """While choosing, leads are plain and gains may differ by position, whatever is learned."""
    grid = (0.003, 0.03, 0.3, 3.0, 30.0)
    for seed in range(6):
        pairs = noisy(60, seed)
        model = DCGLearn(form=form, folds=3, random_state=seed, normalized=True)  # type: ignore[arg-type]
        plain = DCGLearn(form="by-position", folds=3, random_state=seed)
        assert choose_C(model, pairs, grid) == choose_C(plain, pairs, grid)


def test_the_unit_of_weights_does_not_change_the_choice() -> None:
    """A fit depends on C times a weight, and the best share on no unit at all."""
    grid, unit = (0.003, 0.1, 3.0, 100.0), 2.0**-36
    chosen = set()
    for seed in range(4):
        pairs, model = noisy(60, seed), DCGLearn(folds=3, random_state=seed)
        small = replace(pairs, pair_weights=pairs.pair_weights * unit)
        best = choose_C(model, pairs, grid)
        assert choose_C(model, small, [C / unit for C in grid]) * unit == best
        chosen.add(best)
    assert chosen - {grid[0]}


def test_the_order_of_the_grid_does_not_matter_to_the_shares() -> None:
    """Each fit starts from the one before, which changes its speed and not its result."""
    pairs = noisy(60, 5)
    model = DCGLearn(folds=3)
    for C in (0.01, 1.0):
        assert choose_C(model, pairs, (C, C)) == C


def test_progress_counts_every_fit() -> None:
    seen: list[tuple[int, int]] = []
    choose_C(DCGLearn(folds=3), noisy(40), (0.1, 1.0), progress=lambda *done: seen.append(done))
    assert seen == [(number, 6) for number in range(1, 7)]
    seen.clear()
    held_out_leads(DCGLearn(1.0, folds=4), noisy(40), progress=lambda *done: seen.append(done))
    assert seen == [(number, 4) for number in range(1, 5)]


@pytest.mark.parametrize("form", ["rank-one", "by-position"])
def test_held_out_leads_are_those_of_the_other_folds_in_units_of_their_best(form: str) -> None:
    pairs = noisy(50, 2)
    model = DCGLearn(2.0, form, folds=4, random_state=9)  # type: ignore[arg-type]
    result = held_out_leads(model, pairs)
    seen = np.zeros(len(pairs), bool)
    for train, test in folds_of(pairs, 4, 9):
        held = np.isin(pairs.queries, test.queries)
        table = model.fit(train).learned_.table
        highest = max(value for row in table.tolist() for value in row)
        assert result[held] == pytest.approx(test.leads(table) / highest)
        assert np.abs(result[held]).max() <= 3  # in units of the best, of three positions
        seen |= held
    assert seen.all()


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_folds_are_as_equal_as_they_can_be_in_strict_queries_and_in_all(folds: int) -> None:
    """Thirteen queries with a strict preference and nine of ties only, two pairs each."""
    choices = np.repeat([1] * 13 + [0] * 9, 2)
    choices[1] = 0  # a query of both kinds is strict
    order = np.random.default_rng(1).permutation(22)
    pairs = random_pairs(44)
    pairs = RankingPreferences.from_arrays(
        pairs.left, pairs.right, choices, queries=np.repeat(order, 2), grades=3
    )
    strict, every = [], []
    for train, test in folds_of(pairs, folds, random_state=0):
        assert len(train) + len(test) == 44
        names = set(test.queries.tolist())
        assert not names & set(train.queries.tolist())
        every.append(len(names))
        strict.append(len(set(test.queries[test.strict].tolist())))
    assert sum(every) == 22
    assert sum(strict) == 13
    assert max(every) - min(every) <= 1
    assert max(strict) - min(strict) <= 1


def test_folds_are_dealt_in_the_drawn_order_strict_queries_first() -> None:
    pairs = random_pairs(60)
    choices = np.random.default_rng(3).integers(0, 2, 60)
    pairs = RankingPreferences.from_arrays(pairs.left, pairs.right, choices, grades=3)
    drawn = generator(7).permutation(60).tolist()
    dealt = [query for query in drawn if choices[query]] + [
        query for query in drawn if not choices[query]
    ]
    result = [sorted(test.queries.tolist()) for _, test in folds_of(pairs, 4, random_state=7)]
    assert result == [sorted(dealt[number::4]) for number in range(4)]


def test_folds_are_drawn_by_the_seed() -> None:
    pairs = noisy(40)
    parts = [
        [tuple(test.queries.tolist()) for _, test in folds_of(pairs, 4, seed)] for seed in (1, 1, 2)
    ]
    assert parts[0] == parts[1] != parts[2]


@pytest.mark.parametrize(("queries", "folds"), [(1, 2), (2, 3), (4, 5), (5, 1), (5, 0)])
def test_folds_need_as_many_queries_and_two_at_least(queries: int, folds: int) -> None:
    pairs = RankingPreferences.from_arrays([[1]] * queries, [[0]] * queries, [1] * queries)
    with pytest.raises(DataError, match=f"there are {queries} queries for {folds} folds"):
        list(folds_of(pairs, folds, 0))
    assert len(list(folds_of(pairs, 2, 0))) == 2 if queries >= 2 else True


def contradicting() -> RankingPreferences:
    """Two queries: what is left when the first is held out says nothing of gains.

    The second query prefers the lower grade; only with the first, which prefers the higher one
    three times, is there anything to learn.
    """
    return RankingPreferences.from_arrays(
        [[1, 0]] * 3 + [[0, 0]], [[0, 0]] * 3 + [[1, 0]], [1, 1, 1, 1], queries=[0, 0, 0, 1]
    )


def test_a_fold_that_says_nothing_does_not_end_it_all() -> None:
    pairs = contradicting()
    with pytest.raises(NoGainsError, match="determine no gains"):
        DCGLearn(1.0).fit(pairs.take([3]))
    model = DCGLearn(folds=2)
    expected = DCGLearn(GRID[0], folds=2).fit(pairs).learned_
    result = model.fit(pairs).learned_
    assert GRID[0] == result.C  # every C foretells the same, and the smallest is taken
    assert result.table == pytest.approx(expected.table)
    leads = held_out_leads(DCGLearn(1.0, folds=2), pairs)
    assert leads[:3].tolist() == [0.0, 0.0, 0.0]  # nothing is known of them
    assert leads[3] == pytest.approx(-1.0)  # the first grade is worth 1 there
    assert accuracy(pairs, leads) == 0.5 * 3 / 4


def test_other_errors_of_a_fold_are_told() -> None:
    """Choosing C within a fold needs queries too, and their lack is not a fold without gains."""
    pairs = RankingPreferences.from_arrays([[1]] * 2, [[0]] * 2, [1] * 2)
    with pytest.raises(DataError, match="1 queries for 2 folds"):
        held_out_leads(DCGLearn(folds=2), pairs)


def test_a_report_of_preferences_with_such_a_fold() -> None:
    pairs = contradicting()
    result = utility_report(pairs, DCGLearn(1.0, folds=2), resamples=20, test_position=False)
    assert result.accuracies[0].share == 0.5 * 3 / 4

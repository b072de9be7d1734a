"""Kemeny's orders against all permutations, and what must hold of any of them."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.aggregation import borda, exact_kemeny, kendall_distance, supervised_kemeny
from podium.aggregation.integer_programme import solve_programme
from podium.aggregation.kemeny_solver import KemenyOrders, order_exactly, order_subsets
from podium.aggregation.margins import against, margins
from podium.aggregation.votes import Unranked
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from tests.aggregation.cases import (
    distance,
    least_distance,
    noisy,
    order_of,
    prefers,
    votes,
    weighted_votes,
)

POLICIES = st.sampled_from(["below", "ignore"])
Case = tuple[Doubles, Doubles]


def majority(table: Doubles, weights: Doubles, one: int, other: int, unranked: Unranked) -> float:
    return sum(
        weight * (prefers(column, one, other, unranked) - prefers(column, other, one, unranked))
        for weight, column in zip(weights, table.T, strict=True)
    )


@given(weighted_votes(), POLICIES)
def test_exact_is_the_least_of_all_permutations(case: Case, unranked: Unranked) -> None:
    table, weights = case
    result = exact_kemeny(table, ranker_weights=weights, unranked=unranked)
    least = least_distance(table, weights, unranked)
    assert result.distances[0] == pytest.approx(least)
    assert distance(order_of(result.scores), table, weights, unranked) == pytest.approx(least)
    assert result.optimal.all()
    assert sorted(result.scores) == list(range(1, len(table) + 1))


@settings(max_examples=25)
@given(weighted_votes(most=7), POLICIES)
def test_the_integer_programme_is_exact_too(case: Case, unranked: Unranked) -> None:
    table, weights = case
    if len(table) < 3:
        return
    missing = np.where(np.isnan(table), -np.inf, table) if unranked == "below" else table
    pairs, sure = margins(missing, weights, 0, len(table), 1e-12)
    solved = solve_programme(pairs, np.arange(len(table)), 1e-12, 60.0)
    assert sure + solved.cost == pytest.approx(least_distance(table, weights, unranked))
    assert solved.bound == pytest.approx(solved.cost, abs=1e-6)
    assert against(pairs, solved.order) == solved.cost


@pytest.mark.parametrize("seed", range(6))
def test_programme_and_subsets_agree_on_one_circle(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = 14
    upper = np.triu(random.normal(size=(size, size)), 1)
    table = upper - upper.T
    best = order_subsets(table)
    solved = solve_programme(table, np.arange(size), 1e-12, 60.0)
    assert solved.cost == pytest.approx(against(table, best))
    assert solved.bound == pytest.approx(solved.cost)
    assert order_exactly(table, np.arange(size), 1e-12, 60.0).cost == pytest.approx(solved.cost)


@given(weighted_votes(), POLICIES)
def test_distance_is_its_formula(case: Case, unranked: Unranked) -> None:
    table, weights = case
    scores = borda(table)
    tied = sum(
        weight / 2
        for one, other in combinations(range(len(table)), 2)
        for weight, column in zip(weights, table.T, strict=True)
        if scores[one] == scores[other]
        and (prefers(column, one, other, unranked) or prefers(column, other, one, unranked))
    )
    strict = sum(
        weight
        for one, other in combinations(order_of(scores), 2)
        for weight, column in zip(weights, table.T, strict=True)
        if scores[one] > scores[other] and prefers(column, other, one, unranked)
    )
    result = kendall_distance(scores, table, ranker_weights=weights, unranked=unranked)
    assert result[0] == pytest.approx(tied + strict)


@given(weighted_votes(most=8), POLICIES, st.booleans())
def test_supervised_neighbors_follow_majorities(
    case: Case, unranked: Unranked, refine: bool
) -> None:
    table, weights = case
    scores = supervised_kemeny(table, ranker_weights=weights, unranked=unranked, refine=refine)
    order = order_of(scores)
    assert sorted(scores) == list(range(1, len(table) + 1))
    for above, below in pairwise(order):
        assert majority(table, weights, above, below, unranked) >= -1e-9


@given(weighted_votes(most=7), POLICIES)
def test_refining_never_hurts_and_exact_is_never_worse(case: Case, unranked: Unranked) -> None:
    table, weights = case
    given_options = {"ranker_weights": weights, "unranked": unranked}
    plain = supervised_kemeny(table, **given_options)
    refined = supervised_kemeny(table, refine=True, **given_options)
    far, near = (kendall_distance(each, table, **given_options)[0] for each in (plain, refined))
    assert near <= far + 1e-9
    assert exact_kemeny(table, **given_options).distances[0] <= near + 1e-9


@given(votes(partial=False, most=7))
def test_unanimity(table: Doubles) -> None:
    same = np.repeat(table[:, :1], 3, axis=1)
    for scores in (supervised_kemeny(same), exact_kemeny(same).scores, borda(same)):
        for one, other in combinations(range(len(same)), 2):
            if same[one, 0] != same[other, 0]:
                assert (scores[one] > scores[other]) == (same[one, 0] > same[other, 0])


@given(weighted_votes(most=7), POLICIES)
def test_a_condorcet_winner_comes_first(case: Case, unranked: Unranked) -> None:
    table, weights = case
    for winner in range(len(table)):
        others = [row for row in range(len(table)) if row != winner]
        if all(majority(table, weights, winner, row, unranked) > 1e-9 for row in others):
            options = {"ranker_weights": weights, "unranked": unranked}
            assert supervised_kemeny(table, **options)[winner] == len(table)
            assert exact_kemeny(table, **options).scores[winner] == len(table)


@given(weighted_votes(), POLICIES, st.data())
def test_rankers_may_come_in_any_order_and_weights_at_any_scale(
    case: Case, unranked: Unranked, data: st.DataObject
) -> None:
    table, weights = case
    order = data.draw(st.permutations(range(table.shape[1])))
    scale = data.draw(st.sampled_from([0.1, 3.0, 1e6]))
    turned = {"ranker_weights": weights[order] * scale, "unranked": unranked}
    options = {"ranker_weights": weights, "unranked": unranked}
    scores = supervised_kemeny(table, **options).tolist()
    assert supervised_kemeny(table[:, order], **turned).tolist() == scores
    # Several orders may be best: which of them comes out can hang on the last bit of a sum.
    result, there = exact_kemeny(table, **options), exact_kemeny(table[:, order], **turned)
    assert there.distances == pytest.approx(scale * result.distances)
    assert distance(order_of(there.scores), table, weights, unranked) == pytest.approx(
        result.distances[0]
    )


@given(weighted_votes(), POLICIES, st.data())
def test_rows_may_come_in_any_order(case: Case, unranked: Unranked, data: st.DataObject) -> None:
    table, weights = case
    order = np.array(data.draw(st.permutations(range(len(table)))))
    options = {"ranker_weights": weights, "unranked": unranked}
    there = exact_kemeny(table[order], **options).distances
    assert there == pytest.approx(exact_kemeny(table, **options).distances)
    if len(np.unique(borda(table, **options).round(9))) == len(table):
        assert np.array_equal(
            supervised_kemeny(table[order], **options), supervised_kemeny(table, **options)[order]
        )


def test_the_base_order_settles_ties() -> None:
    circle = [[3, 1, 2], [2, 3, 1], [1, 2, 3]]
    tied = [[2, 1], [1, 2]]
    assert supervised_kemeny(tied, start=[0, 1]).tolist() == [1, 2]
    assert supervised_kemeny(tied, start=[1, 0]).tolist() == [2, 1]
    assert exact_kemeny(tied, start=[0, 1]).scores.tolist() == [1, 2]
    assert exact_kemeny(circle).distances.tolist() == [4]


def moved(order: tuple[int, ...]) -> set[tuple[int, ...]]:
    """All orders that moving one document makes."""
    result = set()
    for index in range(len(order)):
        rest = order[:index] + order[index + 1 :]
        result |= {(*rest[:to], order[index], *rest[to:]) for to in range(len(order))}
    return result


@pytest.mark.parametrize("unranked", ["below", "ignore"])
def test_no_single_move_makes_a_refined_order_better(unranked: Unranked) -> None:
    """And some plain orders can be made better: refining does something."""
    improved = 0
    for seed in range(30):
        table = noisy(8, 4, 1.0, seed)
        table[np.random.default_rng(seed).random(table.shape) < 0.15] = np.nan
        weights = np.random.default_rng(seed).integers(1, 5, 4) / 4
        plain, refined = (
            order_of(
                supervised_kemeny(table, ranker_weights=weights, unranked=unranked, refine=refine)
            )
            for refine in (False, True)
        )
        near = distance(refined, table, weights, unranked)
        assert all(
            distance(order, table, weights, unranked) >= near - 1e-9 for order in moved(refined)
        )
        improved += near < distance(plain, table, weights, unranked) - 1e-9
    assert improved >= 3


def test_refining_is_asked_for() -> None:
    table = next(
        table
        for table in (noisy(8, 4, 1.0, seed) for seed in range(99))
        if not np.array_equal(supervised_kemeny(table, refine=True), supervised_kemeny(table))
    )
    plain = supervised_kemeny(table, refine=False)
    assert supervised_kemeny(table).tolist() == plain.tolist()


def test_documents_left_out_are_below_unless_they_are_ignored() -> None:
    """One ranker saw the first document only, another prefers the second to it."""
    table = [[1.0, 1.0, np.nan], [np.nan, 2.0, np.nan], [np.nan, np.nan, 1.0]]
    for unranked in ("below", "ignore"):
        result = supervised_kemeny(table, ranker_weights=[3, 2, 2], unranked=unranked)
        expected = {"below": [3.0, 2.0, 1.0], "ignore": [2.0, 3.0, 1.0]}[unranked]
        assert result.tolist() == expected
    assert supervised_kemeny(table, ranker_weights=[3, 2, 2]).tolist() == [3.0, 2.0, 1.0]


def climbed(
    start: list[int], table: Doubles, weights: Doubles, unranked: Unranked
) -> tuple[int, ...]:
    """Each document of a start climbs while a majority prefers it to the one above."""
    order: list[int] = []
    for document in start:
        index = len(order)
        while index and majority(table, weights, document, order[index - 1], unranked) > 1e-12:
            index -= 1
        order.insert(index, document)
    return tuple(order)


@given(weighted_votes(most=8), POLICIES)
def test_documents_climb_from_bordas_order(case: Case, unranked: Unranked) -> None:
    """The algorithm spelled out, from Borda's count by its formula, ties in the order of rows."""
    table, weights = case
    points = [
        sum(
            weight
            * (
                prefers(column, one, other, unranked)
                + (
                    0.5
                    if not prefers(column, one, other, unranked)
                    and not prefers(column, other, one, unranked)
                    and (unranked == "below" or not np.isnan(column[[one, other]]).any())
                    else 0.0
                )
            )
            for other in range(len(table))
            if other != one
            for weight, column in zip(weights, table.T, strict=True)
        )
        for one in range(len(table))
    ]
    start = sorted(range(len(table)), key=lambda row: -round(points[row] / weights.sum(), 9))
    result = order_of(supervised_kemeny(table, ranker_weights=weights, unranked=unranked))
    assert result == climbed(start, table, weights, unranked)


def test_weights_at_any_scale_make_the_same_ties() -> None:
    """Sums of tenths differ in their last bits: rounded, equal counts stay in the order of rows."""
    table = np.array([[1.0, 2, 1], [2, 1, 1], [1, 2, 1], [2, 1, 1]])
    for scale in (1.0, 1e-200, 1e200):
        weights = np.array([0.1, 0.1, 0.7]) * scale
        assert supervised_kemeny(table, ranker_weights=weights).tolist() == [4.0, 3.0, 2.0, 1.0]


def test_only_the_top_of_each_ranker_counts() -> None:
    table = np.array([[4.0, 1.0], [3.0, 2.0], [2.0, 4.0], [1.0, 3.0]])
    cut = np.array([[4.0, np.nan], [3.0, np.nan], [np.nan, 4.0], [np.nan, 3.0]])
    for unranked in ("below", "ignore"):
        for aggregate in (supervised_kemeny, kendall_distance):
            arguments = ([1, 2, 3, 4],) if aggregate is kendall_distance else ()
            assert (
                aggregate(*arguments, table, top=2, unranked=unranked).tolist()  # type: ignore[call-arg]
                == aggregate(*arguments, cut, unranked=unranked).tolist()  # type: ignore[call-arg]
            )
    with pytest.raises(ArgumentError, match="top is 0"):
        supervised_kemeny(table, top=0)


def test_queries_are_apart() -> None:
    tables = [noisy(size, 5, 1.0, size) for size in (1, 9, 30, 17)]
    offsets = np.concatenate(([0], np.cumsum([len(table) for table in tables])))
    together = exact_kemeny(np.concatenate(tables), offsets)
    single = [exact_kemeny(table) for table in tables]
    assert together.distances == pytest.approx([one.distances[0] for one in single])
    assert together.optimal.all()
    sorted_together = supervised_kemeny(np.concatenate(tables), offsets)
    apart = np.concatenate([supervised_kemeny(table) for table in tables])
    assert sorted_together.tolist() == apart.tolist()


def test_out_of_time_reports_a_gap() -> None:
    table = noisy(60, 4, 5.0, 0)
    result = exact_kemeny(table, time_limit=1e-3)
    assert not result.optimal.any()
    assert 0 < result.gaps[0] <= 1
    refined = supervised_kemeny(table, refine=True)
    assert result.distances[0] <= kendall_distance(refined, table)[0] * 1.05
    assert kendall_distance(result.scores, table) == pytest.approx(result.distances)
    with pytest.raises(ArgumentError, match="time_limit"):
        exact_kemeny(table, time_limit=0)


def test_threads_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    table, offsets = noisy(6000, 3, 1.0, 1), np.arange(0, 6001, 20)
    result: list[tuple[Doubles, KemenyOrders]] = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        result.append((supervised_kemeny(table, offsets), exact_kemeny(table, offsets)))
    assert result[0][0].tolist() == result[1][0].tolist()
    assert result[0][1].scores.tolist() == result[1][1].scores.tolist()


def test_no_queries() -> None:
    assert supervised_kemeny(np.empty((0, 2)), [0]).tolist() == []
    assert repr(exact_kemeny(np.empty((0, 2)), [0])) == "KemenyOrders(0 queries, 0 optimal)"


def test_start_has_a_score_for_each_row() -> None:
    with pytest.raises(DataError, match="start is not 2 finite numbers"):
        supervised_kemeny([[1], [2]], start=[1])


def test_weights_that_differ_by_rounding_alone_count_alike() -> None:
    """Three rankers in a circle: the order is that of Borda's count, or of rows if it is a tie."""
    circle = [[3, 1, 2], [2, 3, 1], [1, 2, 3]]
    for excess, expected in ((0.0, [3, 2, 1]), (3e-10, [3, 2, 1]), (3e-8, [1, 3, 2])):
        # The second ranker's first document has 3 + 2 * excess points, the others fewer.
        result = supervised_kemeny(circle, ranker_weights=[1, 1 + excess, 1])
        assert result.tolist() == expected

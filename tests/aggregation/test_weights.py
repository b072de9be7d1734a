"""Weights learned from what rankers are worth."""

from collections.abc import Callable

import numpy as np
import pytest

from podium.aggregation import (
    borda,
    exact_kemeny,
    proportional_weights,
    supervised_kemeny,
    tuned_weights,
)
from podium.errors import DataError
from podium.kernels import Doubles, Ints
from podium.measures import evaluate

RANDOM = np.random.default_rng(5)
LABELS = RANDOM.integers(0, 3, 400).astype(np.float64)
OFFSETS = np.arange(0, 401, 20)
NOISE = (0.5, 2.0, 8.0)
VOTES = np.stack([LABELS + noise * RANDOM.normal(size=400) for noise in NOISE], axis=1)


def quality(scores: Doubles) -> float:
    return float(evaluate("nDCG@10", LABELS, scores, group=np.diff(OFFSETS))["nDCG@10"].mean())


def test_proportional_to_the_measure() -> None:
    values = np.array([quality(column) for column in VOTES.T])
    assert proportional_weights(VOTES, quality, OFFSETS) == pytest.approx(values / values.sum())


def test_documents_left_out_come_last() -> None:
    votes = np.where(VOTES > 0, VOTES, np.nan)
    filled = np.where(np.isnan(votes), -1.0, votes)
    values = np.array([quality(column) for column in filled.T])
    assert proportional_weights(votes, quality, OFFSETS) == pytest.approx(values / values.sum())


def test_rankers_worth_nothing() -> None:
    assert proportional_weights([[1, 2]], lambda _: -1.0).tolist() == [0.5, 0.5]
    assert proportional_weights([[np.nan, 2]], lambda _: 1.0).tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match="quality"):
        proportional_weights([[1, 2]], lambda _: float("nan"))


def test_documents_left_out_come_below_the_largest_numbers_too() -> None:
    """Where 1 less than the lowest is the lowest again."""
    seen: list[list[float]] = []

    def quality(scores: Doubles) -> float:
        seen.append(scores.tolist())
        return 1.0

    proportional_weights([[3e17], [2e17], [np.nan]], quality)
    proportional_weights([[-3.0], [-2.0], [np.nan]], quality)
    for first, second, missing in seen:
        assert missing < min(first, second)
    assert seen[0][:2] == [3e17, 2e17]  # what was ranked stays as it is


def ascent(
    start: list[float], value: Callable[[list[float]], float], factors: list[float], rounds: int
) -> tuple[list[float], list[list[float]]]:
    """Coordinate ascent spelled out: the weights it ends with, and all that it tried."""
    weights, tried = list(start), [list(start)]
    best = value(weights)
    for _ in range(rounds):
        before = list(weights)
        for ranker, kept in enumerate(before):
            for factor in factors:
                other = [*weights[:ranker], kept * factor, *weights[ranker + 1 :]]
                if sum(other) == 0:
                    continue
                tried.append(other)
                if value(other) > best:
                    best, weights = value(other), other
        if weights == before:
            break
    return weights, tried


@pytest.mark.parametrize("rounds", [1, 2, 3, 9])
@pytest.mark.parametrize("seed", range(4))
def test_each_weight_is_multiplied_by_what_helps_most(seed: int, rounds: int) -> None:
    """The aggregation gives the weights back, and quality is a hill of which the top is known."""
    random = np.random.default_rng(seed)
    top, start = random.random((2, 3)) * 4
    tried: list[list[float]] = []

    def value(weights: list[float]) -> float:
        return -sum((weight - best) ** 2 for weight, best in zip(weights, top, strict=True))

    def aggregate(votes: Doubles, offsets: object, *, ranker_weights: Doubles) -> Doubles:
        assert votes.tolist() == [[1.0, 2.0, 3.0]]
        assert offsets == [0, 1]
        tried.append(ranker_weights.tolist())
        return ranker_weights

    result = tuned_weights(
        [[1, 2, 3]],
        lambda scores: value(scores.tolist()),
        aggregate,
        [0, 1],
        start=start,
        rounds=rounds,
    )
    weights, expected = ascent(start.tolist(), value, [0.0, 0.5, 2.0, 4.0], rounds)
    assert tried == expected
    assert result == pytest.approx(np.array(weights) / sum(weights))
    assert start.tolist() == expected[0]  # what was given is not changed


def test_one_pass_is_enough_where_nothing_helps() -> None:
    tried = []

    def aggregate(_votes: Doubles, _offsets: object, *, ranker_weights: Doubles) -> Doubles:
        tried.append(ranker_weights.tolist())
        return ranker_weights

    result = tuned_weights([[1, 2]], lambda _: 0.25, aggregate, start=[1, 3], factors=[2, 3])
    assert tried == [[1, 3], [2, 3], [3, 3], [1, 6], [1, 9]]
    assert result.tolist() == [0.25, 0.75]
    # A gain that is rounding alone is none.
    values = iter([1.0, 1.0 + 1e-13, 1.0 + 1e-13])
    result = tuned_weights([[1, 2]], lambda _: next(values), aggregate, start=[1, 1], factors=[2])
    assert result.tolist() == [0.5, 0.5]


def test_no_ranker_at_all_is_never_tried() -> None:
    tried = []

    def aggregate(_votes: Doubles, _offsets: object, *, ranker_weights: Doubles) -> Doubles:
        tried.append(ranker_weights.tolist())
        return ranker_weights

    assert tuned_weights([[1]], lambda scores: -scores[0], aggregate, start=[2]).tolist() == [1.0]
    assert [0.0] not in tried
    assert [1.0] in tried
    tried.clear()
    assert tuned_weights([[1, 2]], lambda _: 0.0, aggregate, start=[0, 0]).tolist() == [0.5, 0.5]
    assert tried == [[0.0, 0.0]]


def test_the_first_weights_are_proportional() -> None:
    tried = []

    def aggregate(votes: Doubles, offsets: Ints, *, ranker_weights: Doubles) -> Doubles:
        tried.append(ranker_weights)
        return borda(votes, offsets, ranker_weights=ranker_weights)

    tuned_weights(VOTES, quality, aggregate, OFFSETS, rounds=0)
    assert len(tried) == 1
    assert tried[0] == pytest.approx(proportional_weights(VOTES, quality, OFFSETS))


@pytest.mark.parametrize("aggregate", [borda, supervised_kemeny])
def test_tuned_is_no_worse_where_it_was_tuned(aggregate) -> None:  # type: ignore[no-untyped-def]
    first = proportional_weights(VOTES, quality, OFFSETS)
    tuned = tuned_weights(VOTES, quality, aggregate, OFFSETS)
    assert tuned.sum() == pytest.approx(1)
    before, after = (
        quality(aggregate(VOTES, OFFSETS, ranker_weights=weights)) for weights in (first, tuned)
    )
    assert after > before
    assert tuned[0] > tuned[2]
    again = tuned_weights(VOTES, quality, aggregate, OFFSETS, start=tuned, rounds=1)
    assert quality(aggregate(VOTES, OFFSETS, ranker_weights=again)) >= after


def test_qualities_below_1_are_proportional_too() -> None:
    values = iter([0.1, 0.3])
    result = proportional_weights([[1, 2], [2, 1]], lambda _: next(values))
    assert result == pytest.approx([0.25, 0.75])
    values = iter([-2.0, 0.3, 0.3])  # a quality below 0 counts as 0
    result = proportional_weights([[1, 2, 3], [2, 1, 3]], lambda _: next(values))
    assert result.tolist() == [0.0, 0.5, 0.5]


def test_weights_of_any_size_are_made_to_sum_to_1() -> None:
    for start in ([0.01, 0.03], [1.0, 3.0], [100.0, 300.0]):
        result = tuned_weights([[1, 2]], lambda _: 0.0, borda, start=start, rounds=1)
        assert result == pytest.approx([0.25, 0.75])


def test_a_gain_of_a_trillionth_is_rounding() -> None:
    for gain, expected in ((1e-12, [0.5, 0.5]), (3e-12, [2 / 3, 1 / 3])):
        values = iter([0.0, gain, gain])
        result = tuned_weights(
            [[1, 2]],
            lambda _, values=values: next(values),
            borda,
            start=[1, 1],
            factors=[2],
            rounds=1,
        )
        assert result == pytest.approx(expected)


def test_votes_are_a_table() -> None:
    for start in (None, [1.0]):
        with pytest.raises(DataError, match="votes"):
            tuned_weights([1, 2], lambda _: 0.0, borda, start=start)


def test_a_ranker_of_nothing_gives_every_document_the_same_score() -> None:
    seen: list[list[float]] = []

    def quality(scores: Doubles) -> float:
        seen.append(scores.tolist())
        return 1.0

    proportional_weights([[np.nan, 5.0], [np.nan, np.nan]], quality)
    assert seen[0][0] == seen[0][1]
    assert seen[1][0] == 5.0
    assert seen[1][1] < 5.0


def test_weights_of_exact_orders_are_tuned() -> None:
    votes = [[3, 1], [2, 3], [1, 2]]
    weights = tuned_weights(votes, lambda scores: float(scores[1] - scores[0]), exact_kemeny)
    assert weights.tolist() == [0.0, 1.0]

"""What to ask next: never what is known or was asked, and ahead of drawing at random."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from podium.errors import ArgumentError, DataError
from podium.utility import DCGLearn, RankingPreferences, choose_pairs
from podium.utility.learned_utility import LearnedUtility
from podium.utility.next_pair import informative, next_positions
from tests.utility.people import judged, preferences, random_pairs

TRUTH = np.outer([1, 0.7, 0.5, 0.2], [0.0, 0.4, 1.0])
MODEL = DCGLearn(10.0, "by-position")


def certain(left: np.ndarray, right: np.ndarray, grades: int) -> bool:
    """Whether random increasing gains and decreasing discounts all agree, by trying many."""
    random = np.random.default_rng(0)
    signs = set()
    for _ in range(100):
        gains = np.concatenate(([0], np.cumsum(random.exponential(1.0, grades - 1) ** 3)))
        discounts = np.cumsum(random.exponential(1.0, len(left)) ** 3)[::-1]
        lead = discounts @ (gains[left] - gains[right])
        if abs(lead) > 1e-9:
            signs.add(np.sign(lead))
    return len(signs) < 2


@given(preferences(most=10))
def test_pairs_that_some_gains_and_discounts_judge_differently_are_kept(
    pool: RankingPreferences,
) -> None:
    """Trying finds most such pairs, so those it finds must be kept (one of each kind)."""
    kept = informative(pool)
    kinds = {kind(pool, pool_index) for pool_index in kept}
    assert len(kinds) == len(kept)
    for pool_index in range(len(pool)):
        if not certain(pool.left[pool_index], pool.right[pool_index], pool.grades):
            assert kind(pool, pool_index) in kinds


def kind(pool: RankingPreferences, pool_index: int) -> frozenset[tuple]:
    """What a pair compares, whichever side is left: the documents that both share cancel out."""
    sides = list(zip(pool.left[pool_index].tolist(), pool.right[pool_index].tolist(), strict=True))
    one = tuple(pair if pair[0] != pair[1] else None for pair in sides)
    other = tuple(None if pair is None else pair[::-1] for pair in one)
    return frozenset((one, other))


def test_the_best_order_is_never_shown() -> None:
    """Proposition 1: every increasing gain and decreasing discount prefers it."""
    orders = [list(order) for order in permutations([2, 1, 1, 0])]
    pool = RankingPreferences.from_arrays([[2, 1, 1, 0]] * len(orders), orders)
    assert len(informative(pool)) == 0
    with pytest.raises(StopIteration) as done:
        next(choose_pairs(pool))
    assert done.value.value is None


def play(pool: RankingPreferences, count: int, **settings: object) -> tuple[list[int], list[int]]:
    asking = choose_pairs(pool, MODEL, **settings)  # type: ignore[arg-type]
    truth = judged(pool, TRUTH).choices
    question = next(asking)
    indices, sent = [], []
    for _ in range(count):
        indices.append(question.pool_index)
        sent.append(int(truth[question.pool_index]))
        question = asking.send(sent[-1])
    return indices, sent


@pytest.mark.parametrize("strategy", ["margin", "change", "random"])
def test_no_pair_is_asked_twice_and_replay_asks_the_same(strategy: str) -> None:
    pool = random_pairs(400)
    indices, _ = play(pool, 60, strategy=strategy)
    assert len({kind(pool, pool_index) for pool_index in indices}) == 60
    assert play(pool, 60, strategy=strategy)[0] == indices


def test_verdicts_given_before_count() -> None:
    pool = random_pairs(200)
    indices, sent = play(pool, 30, strategy="margin", first=10)
    judged_pairs = pool.take(indices).with_choices(sent)
    on = next(choose_pairs(pool, MODEL, judged=judged_pairs, strategy="margin", first=10))
    assert (
        on.pool_index == next_positions(pool, judged_pairs, MODEL, strategy="margin", first=10)[0]
    )
    assert not {
        kind(pool, pool_index) for pool_index in next_positions(pool, judged_pairs, MODEL)
    } & {kind(pool, pool_index) for pool_index in indices}
    learned = MODEL.fit(judged_pairs).learned_
    leads = np.abs(pool.leads(learned.table))
    left = next_positions(pool, judged_pairs, MODEL, strategy="margin", first=10)
    assert np.all(np.diff(leads[left]) >= 0)


@pytest.mark.parametrize("strategy", ["margin", "change"])
def test_chosen_pairs_teach_more_than_drawn_ones(strategy: str) -> None:
    test = judged(random_pairs(4000, 6, 4, seed=99), np.outer(1 / np.arange(1, 7), [0, 1, 2, 5]))
    truth = np.outer(1 / np.arange(1, 7), [0, 1, 2, 5])
    result: dict[str, list[float]] = {"random": [], strategy: []}
    for seed in range(3):
        pool = judged(random_pairs(800, 6, 4, seed=seed), truth)
        for name, values in result.items():
            asking = choose_pairs(pool, MODEL, strategy=name, random_state=seed)  # type: ignore[arg-type]
            question, indices = next(asking), []
            for _ in range(100):
                indices.append(question.pool_index)
                question = asking.send(int(pool.choices[question.pool_index]))
            values.append(MODEL.fit(pool.take(indices)).learned_.accuracy(test))
    assert np.mean(result[strategy]) > np.mean(result["random"]) + 0.01


def test_the_end_returns_what_was_learned() -> None:
    pool = random_pairs(15)
    asking = choose_pairs(pool, first=3, refit_every=2)
    truth = judged(pool, TRUTH).choices
    result = None
    question = next(asking)
    while result is None:
        try:
            question = asking.send(int(truth[question.pool_index]))
        except StopIteration as done:
            result = done.value
    assert isinstance(result, LearnedUtility)


def test_ties_alone_leave_the_choice_to_chance() -> None:
    asking = choose_pairs(random_pairs(30), first=2)
    next(asking)
    indices = {asking.send(0).pool_index for _ in range(8)}
    assert len(indices) == 8


def test_nonsense_is_refused() -> None:
    pool = random_pairs(30)
    asking = choose_pairs(pool)
    next(asking)
    with pytest.raises(DataError, match="the verdict is 7"):
        asking.send(7)
    with pytest.raises(ArgumentError, match="no strategy 'best'"):
        next_positions(pool, strategy="best")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="refit_every is 0"):
        next(choose_pairs(pool, refit_every=0))

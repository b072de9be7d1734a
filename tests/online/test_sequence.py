"""Intervals over clients: formulas of others, and false alarms with a look after each search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium.errors import ArgumentError
from podium.online.sequence import (
    LEAST,
    ClientSums,
    difference,
    preference,
    relative_difference,
    sample_ratio_evidence,
    widening,
    without_past,
)


def sums(size: np.ndarray, outcome: np.ndarray, past: np.ndarray | float = 0.0) -> ClientSums:
    """Sums over clients, of which each has one search or several with equal outcomes."""
    n, x, b = size.astype(float), outcome.astype(float), np.broadcast_to(past, size.shape)
    values = (
        np.ones(len(n)), n, x, n * n, n * x, x * x, x * x / n,
        *(x ** (4 - k) * n**k for k in range(5)), b, b * b, b * n, b * x,
    )  # fmt: skip
    return ClientSums(*(float(each.sum()) for each in values))


@pytest.mark.parametrize(("searches", "tuned"), [(31, 5000), (1000, 1000), (10**8, 5000)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_widening_is_equation_9_of_waudby_smith_et_al(
    searches: int, tuned: int, level: float
) -> None:
    # As GrowthBook's gbstats 0.8 has it: SequentialTwoSidedTTest.confidence_interval.
    alpha = 1 - level
    rho2 = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / tuned
    scaled = searches * rho2 + 1
    width = math.sqrt(2 * scaled * math.log(math.sqrt(scaled) / alpha) / (searches**2 * rho2))
    expected = math.sqrt(searches) * width
    assert widening(searches, level=level, tuned=tuned) == pytest.approx(expected, rel=1e-12)


def test_the_level_is_checked() -> None:
    with pytest.raises(ArgumentError, match="level"):
        widening(100, level=1.0)


def test_the_deviation_is_that_of_a_ratio_over_clients() -> None:
    random = np.random.default_rng(0)
    size = random.integers(1, 9, 500)
    outcome = random.poisson(0.3 * size * random.gamma(1.0, 1.0, 500))
    each = sums(size, outcome)
    center = outcome.sum() / size.sum()
    assert each.ratio == pytest.approx(center)
    expected = ((outcome - center * size) ** 2).sum() / size.sum() ** 2
    assert each.variance(center) == pytest.approx(expected)
    fourth = ((outcome - center * size) ** 4.0).sum() / float(size.sum()) ** 4
    assert each.fourth_moment(center) == pytest.approx(fourth)


def test_few_clients_do_not_vary_less_than_single_searches() -> None:
    # 10 searches each, half of them won: all clients are equal by chance.
    n = np.full(40, 10.0)
    each = ClientSums(40, 400, 0, float((n * n).sum()), 0, 0, 400)
    assert each.variance(0.0) == pytest.approx(1 / 400)


def test_what_clients_did_before_is_removed_as_by_least_squares() -> None:
    random = np.random.default_rng(1)
    past = random.gamma(2.0, 1.0, 2000)
    outcome = past + random.normal(0, 0.5, 2000)
    new = random.random(2000) < 0.5
    outcome[new] += 0.2
    ones = np.ones(2000)
    old_sums, new_sums = (sums(ones[g], outcome[g], past[g]) for g in (~new, new))
    # The least-squares slope of means, over all clients.
    slope = np.polyfit(past, outcome, 1)[0]
    rest = outcome - slope * (past - past.mean())
    adjusted = without_past(old_sums, new_sums)
    assert adjusted[0].ratio == pytest.approx(rest[~new].mean())
    assert adjusted[1].ratio == pytest.approx(rest[new].mean())
    plain = difference(*(sums(ones[g], outcome[g]) for g in (~new, new)))
    better = difference(old_sums, new_sums)
    assert better.deviation < 0.4 * plain.deviation
    assert better.value == pytest.approx(rest[new].mean() - rest[~new].mean())
    assert better.low < 0.2 < better.high


def test_a_relative_difference_is_where_a_share_of_the_old_mean_is_possible() -> None:
    random = np.random.default_rng(2)
    old, new = (sums(np.ones(3000), random.random(3000) < rate) for rate in (0.2, 0.26))
    relative = relative_difference(old, new)
    assert relative.value == pytest.approx(new.ratio / old.ratio - 1)
    for end in (relative.low, relative.high):
        # Up to the common center of the deviations, the difference from that share has 0 as an end.
        shifted = difference(old, new, factor=1 + end)
        assert min(abs(shifted.low), abs(shifted.high)) < 1e-9


def test_nothing_is_said_of_few_clients_and_rare_events() -> None:
    few = sums(np.full(LEAST - 1, 1000), np.full(LEAST - 1, 900))
    assert preference(few).low == -math.inf
    ones = np.ones(100_000)
    bought = np.arange(100_000) < 3
    result = difference(sums(ones, bought), sums(ones, bought), offset=-0.001)
    assert result.low == -math.inf  # three buyers each: there is no loss of 1 in 1,000, it seems
    bought = np.arange(100_000) < 60
    assert difference(sums(ones, bought), sums(ones, bought), offset=-0.001).low > 0
    nobody = sums(ones, 0 * ones)
    assert difference(nobody, nobody, offset=-0.001).low == -math.inf


def test_all_searches_with_the_same_winner_are_a_result() -> None:
    assert preference(sums(np.ones(LEAST), np.ones(LEAST))).decided is False
    assert preference(sums(np.ones(60), np.ones(60))).decided is True


@pytest.mark.parametrize(
    ("clients", "taste", "skew"), [(2000, 0.0, 0.0), (60, 0.8, 0.0), (500, 0.5, 1.0)]
)
def test_false_alarms_of_equal_rankings_with_a_look_after_every_search(
    clients: int, taste: float, skew: float
) -> None:
    random = np.random.default_rng(3)
    shares = np.arange(1, clients + 1) ** -skew
    runs, searches = 200, 3000
    alarms = naive = 0
    for _ in range(runs):
        likes = np.clip(random.normal(0, taste, clients), -1, 1)
        client = random.choice(clients, searches, p=shares / shares.sum())
        won = np.where(random.random(searches) < (1 + likes[client]) / 2, 1.0, -1.0)
        # What a search adds to the sum of squares of its client's total.
        order = np.argsort(client, kind="stable")
        total = np.cumsum(won[order])
        first = np.r_[True, np.diff(client[order]) != 0]
        before = np.empty(searches)
        starts = np.maximum.accumulate(np.where(first, np.arange(searches), 0))
        before[order] = total - won[order] - np.r_[0, total][starts]
        squares = np.cumsum(2 * before * won + 1)
        seen = np.zeros(searches)
        seen[order] = first
        number = np.arange(1, searches + 1)
        variance = np.maximum(squares, number)
        reach = np.array([widening(n) for n in range(30, searches + 1, 10)])
        looks = slice(29, None, 10)
        enough = np.cumsum(seen)[looks] >= LEAST
        distance = np.abs(np.cumsum(won))[looks]
        alarms += bool((enough & (distance > reach * np.sqrt(variance[looks]))).any())
        naive += bool((distance > 1.96 * np.sqrt(number[looks])).any())
    assert alarms <= 0.05 * runs
    assert naive > 0.2 * runs


def test_evidence_of_another_split_is_a_martingale() -> None:
    # Over all splits of n clients at the planned share its expectation is 1.
    for share in (0.5, 0.2):
        n = 40
        total = sum(
            math.comb(n, k) * share**k * (1 - share) ** (n - k)
            * sample_ratio_evidence((n - k, k), share) for k in range(n + 1)
        )  # fmt: skip
        assert total == pytest.approx(1.0)


def test_a_preference_that_active_users_do_not_share_is_within_its_interval() -> None:
    random = np.random.default_rng(0)
    clients, missed = 3000, 0
    for _ in range(100):
        size = np.where(random.random(clients) < 0.1, 20, 1)
        # The active prefer none.
        won = np.where(size == 1, 1, 2 * random.binomial(size, 0.5) - size)
        n, x = size.cumsum(), won.cumsum()
        nn, nx, xx = ((part * other).cumsum() for part, other in
                      ((size, size), (size, won), (won, won)))  # fmt: skip
        for at in range(30, clients, 30):
            total = ClientSums(at + 1, n[at], x[at], nn[at], nx[at], xx[at], n[at])
            value = preference(total)
            if not value.low <= 0.9 / 2.9 <= value.high:
                missed += 1
                break
    assert missed <= 10


@pytest.mark.parametrize("tuned", [0, -1, math.nan])
def test_intervals_are_narrowest_at_some_number_of_searches(tuned: float) -> None:
    with pytest.raises(ArgumentError, match="tuned is"):
        widening(100, tuned=tuned)  # type: ignore[arg-type]


def test_nothing_has_an_interval_without_ends() -> None:
    value = difference(ClientSums(), ClientSums(100, 100, 50, 100, 50, 50))
    assert math.isnan(value.value)
    assert (value.low, value.high, value.decided) == (-math.inf, math.inf, False)

"""Bootstraps of learned utilities: intervals, and whether gains depend on the position.

The test is that of Zhou et al. 2012, footnote 4, as a parametric bootstrap.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.utility.learn import DCGLearn, Progress
from podium.utility.learned_utility import LearnedUtility
from podium.utility.preferences import RankingPreferences
from podium.utility.utility_tables import NoGainsError


@dataclass(frozen=True, eq=False)
class Intervals:
    """Interval bounds: the first row of each array has the lower bounds, the second the upper ones.

    Attributes:
        gains: The interval of each gain, in units of the highest gain.
        discounts: The interval of each discount, in units of the first.
        table: The interval of each utility (grade at a position), in units of the highest utility.
        level: The confidence level.
        resamples: How many samples were drawn, without those that determine no gains.
    """

    gains: Doubles
    discounts: Doubles
    table: Doubles
    level: float
    resamples: int


def bootstrap_utility(
    model: DCGLearn,
    preferences: RankingPreferences,
    learned: LearnedUtility,
    *,
    resamples: int = 200,
    level: float = 0.95,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Intervals:
    """Compute percentile intervals by learning again from queries drawn with replacement.

    C is kept. Pairs of one query are drawn together. The intervals cover sampling error only: where
    people err at random, squared slacks are slightly biased away from their mean utility however
    many are asked, and no interval shows that.

    Example:
        >>> random = np.random.default_rng(0)
        >>> pairs = RankingPreferences.from_arrays(*random.integers(0, 3, (2, 300, 2)))
        >>> pairs = pairs.with_choices(np.sign(pairs.leads(np.outer([1, 0.6], [0, 1, 3]))))
        >>> learned = DCGLearn(C=10.0).fit(pairs).learned_
        >>> intervals = bootstrap_utility(DCGLearn(C=10.0), pairs, learned, resamples=50)
        >>> low, high = intervals.gains
        >>> bool(np.all(low <= learned.gains) & np.all(learned.gains <= high))
        True
    """
    if resamples < 2 or not 0 < level < 1:
        raise ArgumentError(
            f"{resamples} resamples at level {level}", hint="Give 2 or more, and a level in (0, 1)."
        )
    random = generator(random_state)
    unique, query = np.unique(preferences.queries, return_inverse=True)
    n_queries = len(unique)
    fixed = replace(model, C=learned.C)
    gains, discounts, tables = [], [], []
    for number in range(resamples):
        drawn = np.bincount(random.integers(0, n_queries, n_queries), minlength=n_queries)
        drawn_pairs = np.flatnonzero(drawn[query])
        sample = preferences.take(drawn_pairs)
        sample = replace(sample, pair_weights=sample.pair_weights * drawn[query[drawn_pairs]])
        with suppress(NoGainsError):  # only ties, or contradictions throughout
            resampled = fixed.fit(sample, start=learned).learned_
            gains.append(resampled.gains)
            discounts.append(resampled.discounts)
            tables.append(resampled.table / resampled.table.max())
        if progress is not None:
            progress(number + 1, resamples)
    if len(gains) < 2:
        raise DataError(
            "hardly any sample has a strict preference", hint="Collect more preferences first."
        )
    ends = [50 * (1 - level), 50 * (1 + level)]
    of_gains, of_discounts, of_table = (
        np.percentile(np.array(each), ends, axis=0) for each in (gains, discounts, tables)
    )
    return Intervals(of_gains, of_discounts, of_table, level, len(gains))


@dataclass(frozen=True)
class PositionTest:
    """How much better gains by position fit than gains times discounts, and whether by chance.

    Attributes:
        p_value: How often people whose gains do not depend on the position would make gains by
            position fit better by as much.
        gain: The share of the objective that gains by position save.
        expected: The mean of that share for such people.
        resamples: How many such sets of preferences were drawn.
    """

    p_value: float
    gain: float
    expected: float
    resamples: int


def position_test(
    model: DCGLearn,
    preferences: RankingPreferences,
    *,
    resamples: int = 99,
    random_state: int = 0,
    progress: Progress | None = None,
) -> PositionTest:
    """Test whether gains depend on the position, by a parametric bootstrap.

    Gains times discounts are fitted, and how often people disagree with them by the size of the
    lead (a logistic curve). From these, strict preferences are drawn anew for the same pairs;
    ties stay ties. Both forms are fitted to each draw.

    Args:
        model: With a C; its form does not matter.
        preferences: The pairs; the more different ones, the more powerful the test.
        resamples: How many draws; the smallest p-value is ``1 / (resamples + 1)``.
        random_state: Seed of the draws.
        progress: Called after each draw.

    Example:
        >>> random = np.random.default_rng(0)
        >>> pairs = RankingPreferences.from_arrays(*random.integers(0, 3, (2, 400, 2)))
        >>> by_position = np.array([[0, 1, 9], [0, 4, 5.0]])
        >>> pairs = pairs.with_choices(np.sign(pairs.leads(by_position)))
        >>> position_test(DCGLearn(C=1.0), pairs, resamples=19).p_value
        0.05
    """
    if model.C is None:
        raise ArgumentError("the model has no C", hint="Choose one with choose_C.")
    if resamples < 1:
        raise ArgumentError(f"{resamples} resamples", hint="Give 1 or more.")
    random = generator(random_state)
    single = replace(model, form="rank-one").fit(preferences).learned_
    gain = _gain(model, preferences)
    leads = preferences.leads(single.table)
    # The logistic curve, in a form that cannot overflow.
    chance = 0.5 + 0.5 * np.tanh(0.5 * _steepness(preferences, leads) * leads)
    drawn = []
    for number in range(resamples):
        left = random.random(len(leads)) < chance
        choices = np.where(left, 1, -1) * np.abs(preferences.choices)
        drawn.append(_gain(model, preferences.with_choices(choices)))
        if progress is not None:
            progress(number + 1, resamples)
    as_large = int(np.sum(np.array(drawn) >= gain * (1 - 1e-9)))
    return PositionTest((as_large + 1) / (resamples + 1), gain, float(np.mean(drawn)), resamples)


def _gain(model: DCGLearn, preferences: RankingPreferences) -> float:
    # Where C is fixed, both objectives are of the same function over a larger and a smaller set.
    free = replace(model, form="by-position", normalized=False).fit(preferences).learned_
    single = replace(model, form="rank-one", normalized=False).fit(preferences).learned_
    return max(1.0 - free.objective / single.objective, 0.0)


def _steepness(preferences: RankingPreferences, leads: Doubles) -> float:
    """The slope of the logistic curve of agreement over leads with the largest likelihood."""
    from scipy.optimize import minimize_scalar

    strict = preferences.strict
    sides = np.sign(preferences.choices[strict]) * leads[strict]
    weights = preferences.pair_weights[strict]

    def surprise(log_slope: float) -> float:
        return float(np.sum(weights * np.logaddexp(0.0, -np.exp(log_slope) * sides)))

    # Preferences without a contradiction have no best slope: the bound is as good as certain.
    return float(np.exp(minimize_scalar(surprise, bounds=(-6.0, 6.0), method="bounded").x))

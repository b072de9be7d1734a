"""Bootstrap intervals of every gain, discount and utility."""

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

"""Intervals by the bootstrap over queries: judgments of one query are not independent.

The bootstrap gives the standard error, and Student's t the rest: quantiles of its samples would be
too narrow with few queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

from podium.data.seeds import generator
from podium.judging.agreement.coefficients import Interval
from podium.kernels import Ints

LEAST_QUERIES = 10
"""With fewer, how much they differ is not known well enough: of 95 % intervals of kappa from 5
queries whose units are alike, 80 % hold it."""


def cluster_interval(
    statistic: Callable[[Ints], float],
    clusters: Ints,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    random_state: int = 0,
    least: float = -1.0,
) -> Interval:
    """A figure of some units, at most 1, with its interval from resampling their queries.

    Where most samples have no figure, or there are fewer than 10 queries, the ends are NaN.

    Args:
        statistic: The figure of the units of these numbers; NaN if there is none.
        clusters: The number of each unit's query.
        draws: How many samples to draw.
        confidence: How often the interval should contain the figure.
        random_state: Draws the samples.
        least: The least that the figure can be.

    Example:
        >>> values = np.arange(20) % 2
        >>> interval = cluster_interval(lambda units: float(values[units].mean()), np.arange(20))
        >>> interval.value, round(interval.low, 1), round(interval.high, 1)
        (0.5, 0.3, 0.7)
    """
    value = statistic(np.arange(len(clusters)))
    members = [np.flatnonzero(clusters == number) for number in np.unique(clusters)]
    if len(members) < LEAST_QUERIES or np.isnan(value):
        return Interval(value, float("nan"), float("nan"), 0)
    random = generator(random_state)
    drawn = [
        statistic(
            np.concatenate(
                [members[each] for each in random.integers(0, len(members), len(members))]
            )
        )
        for _ in range(draws)
    ]
    valid = [each for each in drawn if not np.isnan(each)]
    if 2 * len(valid) <= draws:
        return Interval(value, float("nan"), float("nan"), len(valid))
    queries = len(members)
    error = float(np.std(valid)) * math.sqrt(queries / (queries - 1))
    reach = error * float(stdtrit(queries - 1, (1 + confidence) / 2))
    return Interval(value, max(value - reach, least), min(value + reach, 1.0), len(valid))

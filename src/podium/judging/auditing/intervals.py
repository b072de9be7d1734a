"""Intervals by the bootstrap over queries: judgments of one query are not independent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.data.seeds import generator
from podium.judging.agreement.coefficients import Interval
from podium.kernels import Ints


def cluster_interval(
    statistic: Callable[[Ints], float],
    clusters: Ints,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A figure of some units with its percentile interval, from resampling their queries.

    Where most samples have no figure, or there is one query only, the ends are NaN.

    Args:
        statistic: The figure of the units of these numbers; NaN if there is none.
        clusters: The number of each unit's query.
        draws: How many samples to draw.
        confidence: How often the interval should contain the figure.
        seed: Draws the samples.

    Example:
        >>> values = np.arange(20.0)
        >>> interval = cluster_interval(lambda units: float(values[units].mean()), np.arange(20))
        >>> interval.value, round(interval.low), round(interval.high)
        (9.5, 7, 12)
    """
    value = statistic(np.arange(len(clusters)))
    members = [np.flatnonzero(clusters == number) for number in np.unique(clusters)]
    if len(members) < 2 or np.isnan(value):
        return Interval(value, float("nan"), float("nan"), 0)
    random = generator(seed)
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
    low, high = np.quantile(valid, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(low), float(high), len(valid))

"""Agreement beyond chance, and how sure a figure is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.judging.agreement.ratings import Ratings
from podium.kernels import Doubles, Ints

Level = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(one: ArrayLike, other: ArrayLike) -> float:
    """Cohen's kappa of two people's values of the same things: 1 is full agreement, 0 is chance.

    Example:
        >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
        0.5
    """
    first, second = np.asarray(one), np.asarray(other)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise DataError("two people's values do not fit", hint="Give one of each for each thing.")
    categories = np.unique(np.concatenate([first, second]))
    table = np.zeros((len(categories), len(categories)))
    np.add.at(table, (np.searchsorted(categories, first), np.searchsorted(categories, second)), 1)
    return table_kappa(table)


def table_kappa(table: Doubles) -> float:
    """Cohen's kappa of a table that counts one person's value (row) against another's (column).

    Example:
        >>> table_kappa(np.array([[1.0, 1.0], [0.0, 2.0]]))
        0.5
    """
    shares = table / table.sum()
    chance = float(shares.sum(axis=0) @ shares.sum(axis=1))
    return _beyond_chance(float(np.trace(shares)), chance)


def fleiss_kappa(ballots: Ratings) -> float:
    """Fleiss' kappa: any people, as many votes on each thing as there are.

    Things with one vote do not count. Where all have the same number of votes it is Fleiss' own.

    Example:
        >>> round(fleiss_kappa(Ratings.from_table([[1, 1, 1], [0, 0, 0], [1, 0, 0]])), 3)
        0.55
    """
    counts = _paired(ballots)
    votes = counts.sum(axis=1)
    agreed = (counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))
    shares = counts.sum(axis=0) / counts.sum()
    return _beyond_chance(float(agreed.mean()), float(shares @ shares))


def krippendorff_alpha(ballots: Ratings, level: Level = "nominal") -> float:
    """Krippendorff's alpha: any people, votes missing or not.

    Args:
        ballots: The votes; things with one vote do not count.
        level: What values mean: mere names, an order (grades, or -1 to 1), or distances.

    Example:
        >>> votes = Ratings.from_table([[1, 1, 1], [0, 0, np.nan], [1, 0, 0]])
        >>> round(krippendorff_alpha(votes), 3)
        0.562
    """
    counts = _paired(ballots)
    votes = counts.sum(axis=1)
    seen = counts.sum(axis=0)
    # Coincidences: every two votes on a thing, a thing's votes weighing as much as it has votes.
    pairs = counts.T @ (counts / (votes - 1)[:, None]) - np.diag(
        (counts / (votes - 1)[:, None]).sum(axis=0)
    )
    distances = _distances(ballots.categories, seen, level)
    expected = float((np.outer(seen, seen) * distances).sum()) / float(seen.sum() - 1)
    if expected == 0:
        return 1.0  # there is one value only
    observed = float((pairs * distances).sum())
    return 1 - observed / expected


@dataclass(frozen=True)
class Interval:
    """A figure and the range that it is in with some confidence.

    Attributes:
        value: The figure.
        low: The lower end of the range.
        high: The upper end.
        draws: How many samples the ends are taken from.
    """

    value: float
    low: float
    high: float
    draws: int

    def text(self, digits: int) -> str:
        """The figure with its range, as far as they are known."""
        if math.isnan(self.value):
            return "unknown"
        if math.isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def bootstrap_agreement(
    statistic: Callable[[Ratings], float],
    ballots: Ratings,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Interval:
    """A figure's percentile bootstrap interval, from resampling the units judged.

    Samples without a figure, in which nothing was judged by two people, are left out; if most are,
    there is no interval.

    Args:
        statistic: The figure, such as `fleiss_kappa`.
        ballots: The votes.
        draws: How many samples to draw.
        confidence: How often the interval should contain the figure, between 0 and 1.
        random_state: Draws the samples.

    Example:
        >>> votes = Ratings.from_table([[1, 1], [0, 0], [1, 0], [1, 1]] * 25)
        >>> interval = bootstrap_agreement(fleiss_kappa, votes, draws=200)
        >>> interval.low < interval.value < interval.high
        True
    """
    if draws < 1 or not 0 < confidence < 1:
        raise ArgumentError(
            f"{draws} draws at confidence {confidence}",
            hint="Give 1 or more, and a confidence between 0 and 1.",
        )
    random = generator(random_state)
    size = int(ballots.units.max(initial=-1)) + 1
    if size == 0:
        raise DataError("there are no votes", hint="Give at least one.")
    value = statistic(ballots)
    values = [
        _figure(statistic, ballots.take(random.integers(0, size, size))) for _ in range(draws)
    ]
    valid = [interval for interval in values if not np.isnan(interval)]
    if 2 * len(valid) <= draws:
        raise DataError(
            f"only {len(valid)} of {draws} samples have the figure",
            hint="Let more be judged by two people: see Overlap.",
        )
    low, high = np.quantile(valid, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(low), float(high), len(valid))


def _figure(statistic: Callable[[Ratings], float], sample: Ratings) -> float:
    try:
        return statistic(sample)
    except DataError:  # nothing in the sample was judged by two people
        return float("nan")


def _paired(ballots: Ratings) -> Doubles:
    every = ballots.counts().astype(float)
    counts: Doubles = every[every.sum(axis=1) > 1]
    if not len(counts):
        raise DataError("nothing was judged by two people", hint="Let people overlap: see Overlap.")
    return counts


def _beyond_chance(agreed: float, chance: float) -> float:
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def _distances(categories: Doubles, seen: Doubles, level: Level) -> Doubles:
    if level == "nominal":
        return 1 - np.eye(len(categories))
    positions = categories
    if level == "ordinal":
        positions = np.cumsum(seen) - seen / 2
    difference: Doubles = np.subtract.outer(positions, positions) ** 2
    return difference


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

    Judgments of one query are not independent. The bootstrap gives the standard error, and
    Student's t the rest: quantiles of its samples would be too narrow with few queries. Where most
    samples have no figure, or there are fewer than 10 queries, the ends are NaN.

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
        (0.5, 0.2, 0.8)
    """
    from scipy.special import stdtrit

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

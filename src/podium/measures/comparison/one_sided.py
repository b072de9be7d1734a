"""One-sided tests of a mean: whether it is above a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from podium.kernels import Doubles
from podium.measures.comparison.power import chance_above, first_enough
from podium.measures.comparison.statistics import weighted_deviations

# Values that differ by less than this share of the largest are equal but for rounding.
_TIE = 1e-12


@dataclass(frozen=True)
class MeanTest:
    """Whether a mean is above a bound.

    Attributes:
        mean: The mean.
        low: What the mean is above, with the confidence asked for; NaN for a single value.
        p_value: How surprising values so far above the bound would be, were the mean at it: the
            larger of the t-test's p-value and ``unseen``.
        unseen: The chance that no value is one of the losses that would bring the
            mean to the bound, were they as large as they can be.
        deviation: The standard deviation of the values, each as it counts in the mean; NaN for a
            single value.
        skewness: Their skewness; NaN for a single value.
        least: The least value, as it would count in the mean.
        effective: How many queries of equal weight are worth as much, as a share of the queries.
    """

    mean: float
    low: float
    p_value: float
    unseen: float
    deviation: float
    skewness: float
    least: float
    effective: float = 1.0


def mean_above(
    values: Doubles, bound: float, level: float, least: float, weights: Doubles | None = None
) -> MeanTest:
    """Test whether the mean of values is above a bound.

    Two things must be unlikely, were the mean at the bound. The first is a t statistic so large.
    Where most queries gain a little and a few lose much, the t-test shows too much, so its
    statistic is corrected for skewness by Hall's transformation (Journal of the Royal Statistical
    Society B 54, 1992); where skewness makes the t-test cautious, it is left so. Few queries tell
    little about skewness, so it is taken one standard error (for normal values the square root of
    6 / n) towards losses.

    The second is that the losses that make up the difference are in none of the queries. With the
    share q of all queries at the least value possible and the others as they are here, the mean is
    at the bound; n queries miss all of these with the chance (1 - q)^n.

    With weights, errors are those of ``weighted_interval``, and a query that is not here may be as
    heavy as the heaviest; nothing is said of heavier ones.

    Args:
        values: One per query.
        bound: The value that the mean must be above.
        level: The level of the test, for ``low``.
        least: The least that a value can be.
        weights: One per query, above 0; None if all count equally.

    Example:
        >>> test = mean_above(np.array([0.1, 0.1, 0.2, 0.1, 0.1, 0.6, 0.1]), 0.0, 0.05, -0.2)
        >>> round(test.mean, 3), round(test.low, 3), round(test.p_value, 4), round(test.unseen, 4)
        (0.186, 0.049, 0.0194, 0.0101)
    """
    from scipy import special

    count = len(values)
    mean, deviations, freedom = weighted_deviations(values, weights)
    heaviest = 1.0 if weights is None else count * float(weights.max() / weights.sum())
    least = mean + heaviest * (least - mean)
    if not freedom:
        return MeanTest(mean, math.nan, 1.0, 1.0, math.nan, math.nan, least)
    largest = max(float(np.abs(values).max()), abs(bound))
    unseen = 1.0
    if mean - bound > _TIE * largest:
        unseen = ((bound - least) / (mean - least)) ** count if bound > least else 0.0
    low = mean - (1.0 - level ** (1.0 / count)) * (mean - least)
    effective = (freedom + 1.0) / count
    if float(np.ptp(values)) <= _TIE * largest:
        return MeanTest(mean, low, unseen, unseen, 0.0, 0.0, least, effective)
    deviation = math.sqrt(float(np.sum(deviations**2)) / (count - 1))
    third = float(np.mean(deviations**3)) / float(np.mean(deviations**2)) ** 1.5
    root = 1.0 / math.sqrt(count)
    skew = root * _towards_losses(third, freedom)
    t = (mean - bound) / (deviation * root)
    p_value = float(special.stdtr(freedom, -min(t, _without_skew(t, skew))))
    critical = -float(special.stdtrit(freedom, level))
    needed = max(critical, _with_skew(critical, skew))
    return MeanTest(
        mean,
        min(low, mean - needed * deviation * root),
        max(p_value, unseen),
        unseen,
        deviation,
        third,
        least,
        effective,
    )


def queries_to_show(test: MeanTest, bound: float, level: float, power: float = 0.8) -> int | None:
    """The fewest queries that show a mean to be above a bound with some power.

    Their true mean, deviation, skewness and least value are taken to be those of a test, and their
    weights to be spread as its are.

    Returns:
        The number of queries; None for a single value, for a mean that is not above the bound, and
        if there would have to be more than ``MOST_QUERIES``.

    Example:
        >>> test = mean_above(np.array([0.1, 0.1, 0.2, 0.1, -0.3, 0.6, 0.1]), 0.0, 0.05, -0.3)
        >>> round(test.p_value, 3), queries_to_show(test, 0.0, 0.05)
        (0.153, 29)
    """
    from scipy import special

    gap = test.mean - bound
    if math.isnan(test.deviation) or gap <= 0:
        return None

    def enough(queries: int) -> bool:
        missed = 1.0 - level ** (1.0 / queries)
        unseen = max(bound - test.least, 0.0) * missed / (1.0 - missed)
        if test.deviation == 0:
            return bool(gap > unseen)
        error = test.deviation / math.sqrt(queries)
        freedom = queries * test.effective - 1.0
        if freedom <= 0:
            return False
        critical = -float(special.stdtrit(freedom, level))
        skew = _towards_losses(test.skewness, freedom) / math.sqrt(queries)
        needed = max(critical, _with_skew(critical, skew), unseen / error)
        return chance_above(needed, gap / error, freedom) >= power

    return first_enough(enough)


def _towards_losses(skewness: float, freedom: float) -> float:
    """The skewness that is corrected for: one standard error worse than that of the values."""
    return min(skewness - math.sqrt(6.0 / (freedom + 1.0)), 0.0)


def _without_skew(t: float, skew: float) -> float:
    """Hall's transformation of a t statistic, which increases with it.

    It is ((1 + u)³ - 1) / skew + skew / 6 with u = skew t / 3, multiplied out: nothing is left of
    the difference if skewness is tiny.
    """
    u = skew * t / 3.0
    return t * (1.0 + u + u * u / 3.0) + skew / 6.0


def _with_skew(t: float, skew: float) -> float:
    """Its inverse, 3 (c - 1) / skew with the cube root c, with the division carried out."""
    shifted = t - skew / 6.0
    c = math.cbrt(1.0 + skew * shifted)
    return 3.0 * shifted / (c * c + c + 1.0)

"""One-sided tests of a mean: whether it is above a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from podium.kernels import Doubles
from podium.measures.comparison.power import chance_above, first_enough

# Values that differ by less than this share of the largest are equal but for rounding.
_TIE = 1e-12


@dataclass(frozen=True)
class MeanTest:
    """Whether a mean is above a bound.

    Attributes:
        mean: The mean.
        low: What the mean is above, with the confidence asked for; NaN for a single value, and
            for equal ones that are too few for it.
        p_value: How surprising values so far above the bound would be, were the mean at it.
        deviation: The standard deviation of the values; NaN for a single value.
        skewness: The skewness of the values; NaN for a single value.
        effective: How many queries of equal weight would tell as much, as a share of the queries.
    """

    mean: float
    low: float
    p_value: float
    deviation: float
    skewness: float
    effective: float = 1.0


def mean_above(
    values: Doubles, bound: float, level: float, weights: Doubles | None = None
) -> MeanTest:
    """Test whether the mean of values is above a bound, by Student's t.

    Where most queries gain a little and a few lose much, the t-test shows too much. There its
    statistic is corrected for skewness by Hall's transformation (Journal of the Royal Statistical
    Society B 54, 1992); where skewness makes the t-test cautious, it is left so. Few queries tell
    little about skewness, so it is taken one standard error (for normal values the square root of
    6 / n) towards losses. If all values are equal, the sign test takes the place of the t-test.
    With weights, as in ``weighted_interval``, the error of the mean is enlarged by Kish's factor.

    Example:
        >>> test = mean_above(np.array([0.1, 0.1, 0.2, 0.1, 0.1, 0.6, 0.1]), 0.0, 0.05)
        >>> round(test.mean, 3), round(test.low, 3), round(test.p_value, 4)
        (0.186, 0.049, 0.0194)
    """
    from scipy import special

    count = len(values)
    shares = np.full(count, 1.0 / count) if weights is None else weights / weights.sum()
    mean = float(shares @ values)
    if count < 2:
        return MeanTest(mean, math.nan, 1.0, math.nan, math.nan)
    largest = max(float(np.abs(values).max()), abs(bound))
    if float(np.ptp(values)) <= _TIE * largest:
        # Equal values tell nothing about the spread: two of them must not show what they like. The
        # sign test asks no more than that half of all values are at the bound or below.
        chance = 0.5**count
        return MeanTest(
            mean,
            mean if chance < level else math.nan,
            chance if mean - bound > _TIE * largest else 1.0,
            0.0,
            0.0,
        )
    deviation = float(np.std(values, ddof=1))
    root = math.sqrt(float(np.sum(shares**2)))  # 1 / sqrt(count) if all count equally
    third = float(np.mean(((values - values.mean()) / np.std(values)) ** 3))
    skew = root * _towards_losses(third, count)
    t = (mean - bound) / (deviation * root)
    p_value = float(special.stdtr(count - 1, -min(t, _without_skew(t, skew))))
    critical = -float(special.stdtrit(count - 1, level))
    needed = max(critical, _with_skew(critical, skew))
    low = mean - needed * deviation * root
    return MeanTest(mean, low, p_value, deviation, third, 1.0 / (count * root**2))


def queries_to_show(test: MeanTest, bound: float, level: float, power: float = 0.8) -> int | None:
    """The fewest queries that show a mean to be above a bound with some power.

    Their true mean, deviation and skewness are taken to be those of a test, and their weights to be
    spread as its are.

    Returns:
        The number of queries; None for a single value, for a mean that is not above the bound, and
        if there would have to be more than ``MOST_QUERIES``.

    Example:
        >>> test = mean_above(np.array([0.1, 0.1, 0.2, 0.1, -0.3, 0.6, 0.1]), 0.0, 0.05)
        >>> round(test.p_value, 3), queries_to_show(test, 0.0, 0.05)
        (0.153, 29)
    """
    from scipy import special

    gap = test.mean - bound
    if math.isnan(test.deviation) or gap <= 0:
        return None
    if test.deviation == 0:
        return math.floor(math.log(level, 0.5)) + 1  # the sign test's

    def enough(queries: int) -> bool:
        root = 1.0 / math.sqrt(queries * test.effective)
        critical = -float(special.stdtrit(queries - 1, level))
        skew = root * _towards_losses(test.skewness, queries)
        needed = max(critical, _with_skew(critical, skew))
        return chance_above(needed, gap / (test.deviation * root), queries - 1) >= power

    return first_enough(enough)


def _towards_losses(skewness: float, count: int) -> float:
    """The skewness that is corrected for: one standard error worse than that of the values."""
    return min(skewness - math.sqrt(6.0 / count), 0.0)


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

"""How many queries show a difference, and what difference a number of queries shows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.statistics import differences_of
from podium.measures.registry import Measure

MOST_QUERIES = 10**9
"""Needed queries beyond this are not counted."""


def difference_power(
    difference: float,
    deviation: float,
    queries: int,
    *,
    level: float = 0.05,
    one_sided: bool = False,
) -> float:
    """The chance that a paired t-test of some queries shows a true mean difference.

    The test statistic has a noncentral t distribution if differences are normal, and nearly so for
    the mean of many that are not. With two sides, a significant difference of the wrong sign does
    not count.

    Args:
        difference: The true mean difference; for a margin, the distance from it.
        deviation: The standard deviation of the differences, query by query.
        queries: How many queries.
        level: The level of the test.
        one_sided: Whether the test has one side, as those of requirements have.

    Example:
        >>> round(difference_power(0.01, 0.1, 787), 3)
        0.8
    """
    from scipy import special

    _check(deviation=deviation, level=level)
    if queries < 2 or difference <= 0:
        # No difference, or one of the wrong sign, cannot be rightly shown.
        return 0.0
    if deviation == 0:
        return 1.0
    freedom = queries - 1
    critical = -float(special.stdtrit(freedom, level if one_sided else level / 2))
    return chance_above(critical, difference / deviation * math.sqrt(queries), freedom)


def chance_above(critical: float, shift: float, freedom: float) -> float:
    """The chance that a t statistic with a true shift is above a critical value."""
    from scipy import special

    if shift > critical + 40:  # where the noncentral distribution is not computed
        return 1.0
    return 1.0 - float(special.nctdtr(freedom, shift, critical))


def queries_needed(
    difference: float,
    deviation: float,
    *,
    power: float = 0.8,
    level: float = 0.05,
    one_sided: bool = False,
) -> int | None:
    """The fewest queries that show a true difference with some power.

    Args:
        difference: The true mean difference, above 0; for a margin, the distance from it.
        deviation: The standard deviation of the differences, query by query.
        power: The chance to show it.
        level: The level of the test.
        one_sided: Whether the test has one side.

    Returns:
        The number of queries, None if there would have to be more than ``MOST_QUERIES``.

    Example:
        >>> queries_needed(0.01, 0.1), queries_needed(0.01, 0.1, one_sided=True)
        (787, 620)
    """
    _check(power=power, level=level, deviation=deviation)
    if not (math.isfinite(difference) and difference > 0):
        raise ArgumentError(f"the difference is {difference}", hint="Give a number above 0.")

    def enough(queries: int) -> bool:
        reached = difference_power(difference, deviation, queries, level=level, one_sided=one_sided)
        return reached >= power

    return first_enough(enough)


def detectable_difference(
    deviation: float,
    queries: int,
    *,
    power: float = 0.8,
    level: float = 0.05,
    one_sided: bool = False,
) -> float:
    """The smallest true difference that a number of queries shows with some power.

    Example:
        >>> round(detectable_difference(0.1, 787), 4)
        0.01
    """
    from scipy import optimize

    _check(power=power, level=level, deviation=deviation)
    if queries < 2:
        return math.inf
    if deviation == 0:
        return 0.0

    def excess(difference: float) -> float:
        reached = difference_power(difference, 1.0, queries, level=level, one_sided=one_sided)
        return reached - power

    high = 1.0 / math.sqrt(queries)
    while excess(high) < 0:
        high *= 2.0
    return float(optimize.brentq(excess, 0.0, high)) * deviation


def first_enough(enough: Callable[[int], bool]) -> int | None:
    """The first of the numbers from 2 on that is enough, if all after it are."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_QUERIES:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _check(**numbers: float) -> None:
    for name, number in numbers.items():
        if name == "deviation":
            if not (math.isfinite(number) and number >= 0):
                raise ArgumentError(f"the deviation is {number}", hint="Give a number from 0 on.")
        elif not 0 < number < 1:
            raise ArgumentError(f"{name} is {number}", hint="Give a number in (0, 1).")


@dataclass(frozen=True)
class QueryPlan:
    """The queries that a system's comparison with the baseline needs.

    Attributes:
        measure: The measure.
        system: The system.
        queries: How many queries there are.
        deviation: The standard deviation of their differences.
        difference: The true difference to show.
        power: The chance that a paired t-test of the queries at hand shows it.
        needed: How many queries show it with the power asked for; None if more than a billion.
        detectable: The smallest difference that the queries at hand show with that power.
    """

    measure: Measure
    system: str
    queries: int
    deviation: float
    difference: float
    power: float
    needed: int | None
    detectable: float


def plan_queries(
    comparison: Comparison, *, difference: float = 0.01, power: float = 0.8, level: float = 0.05
) -> tuple[QueryPlan, ...]:
    """Plan how many queries show a difference, by how the differences here vary.

    Args:
        comparison: The comparison.
        difference: The true mean difference to show, above 0, and at most 1 or, if it is more, as
            far as values of the measure are apart here.
        power: The chance to show it.
        level: The level of the two-sided paired t-test.

    Returns:
        A plan for each measure and system.

    Example:
        >>> from podium.measures import compare
        >>> truth = {"p": {"a": 1}, "q": {"b": 1}, "r": {"b": 1}}
        >>> old = {query: {"b": 2, "a": 1} for query in truth}
        >>> new = {query: {"a": 2, "b": 1} for query in truth}
        >>> comparison = compare("RR", truth, {"old": old, "new": new})
        >>> (plan,) = plan_queries(comparison, difference=0.1)
        >>> round(plan.deviation, 4), plan.needed
        (0.5774, 264)
    """
    queries = len(comparison.query_ids)
    if queries < 2:
        raise DataError(
            "how differences vary is not known from a single query",
            hint="Give at least two queries.",
        )
    if comparison.query_weights is not None:
        raise DataError("queries have weights", hint="Compare without sample_weight=.")
    plans = []
    for measure, values in comparison.values.items():
        # Most measures are from 0 to 1; of others, such as DCG, the values here are the scale.
        most = max(1.0, float(np.ptp(values)))
        if difference > most:
            raise ArgumentError(
                f"the difference is {difference:g}, and no two values of {measure!r} are more than "
                f"{most:g} apart",
                hint="Give a difference of means, such as 0.05 for five points in a hundred.",
            )
        for column, system in enumerate(comparison.systems[1:], start=1):
            deviation = float(np.std(differences_of(values[:, column], values[:, 0]), ddof=1))
            plans.append(
                QueryPlan(
                    measure,
                    system,
                    queries,
                    deviation,
                    difference,
                    difference_power(difference, deviation, queries, level=level),
                    queries_needed(difference, deviation, power=power, level=level),
                    detectable_difference(deviation, queries, power=power, level=level),
                )
            )
    return tuple(plans)

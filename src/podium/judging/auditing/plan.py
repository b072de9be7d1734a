"""How many units people must judge for an audit to have an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri, stdtrit

from podium.errors import ArgumentError
from podium.judging.agreement.coefficients import LEAST_QUERIES
from podium.judging.auditing.alt_test import LEAST_PEOPLE, LEAST_UNITS, level_for_half


@dataclass(frozen=True)
class AuditPlan:
    """The size of a sample.

    Attributes:
        people: How many people judge each unit.
        for_test: Units for the alternative annotator test to have its power.
        for_interval: Units for the interval of the agreement to be as narrow as was asked.
        units: The larger of the two, and at least 30 units of 10 queries.
    """

    people: int
    for_test: int
    for_interval: int
    units: int

    @property
    def judgments(self) -> int:
        """How many judgments people give in total."""
        return self.people * self.units


def plan_audit(
    *,
    people: int = 3,
    agreement: float = 0.6,
    epsilon: float = 0.15,
    power: float = 0.8,
    width: float = 0.1,
    rate: float = 0.05,
    per_query: float = 1.0,
    correlation: float = 0.1,
    values: int = 2,
) -> AuditPlan:
    """Plan the blind sample of an audit before anything is judged.

    For the test: if any two agree on a share a, a person and a model that is as good as they are
    differ on 1 - a of the units, and one of them is nearer to the others unless these are divided
    equally, which is not counted on if there are more than two values. The t-test must tell that
    the model is not behind by epsilon, for half of the people, after the correction, and there must
    be so many queries that some of those in which it might be behind throughout would be among
    them. The power is that against one of them; against half of an even number it is a few points
    higher.

    Args:
        people: How many people judge each unit.
        agreement: The share of units on which two of them are expected to agree.
        epsilon: The test's margin.
        power: How likely a model that is as good as a person should pass.
        width: The half width of the 95 % interval of the agreement with people.
        rate: The test's false discovery rate.
        per_query: How many units of each query are judged.
        correlation: How far judgments of one query are alike (the intraclass correlation).
        values: How many different values a judgment can have: with grades, how many there are;
            with pairs, 3 if ties are common.

    Example:
        >>> plan = plan_audit(people=3, agreement=0.7)
        >>> plan.units, plan.judgments
        (83, 249)
    """
    if people < LEAST_PEOPLE:
        raise ArgumentError(f"{people} people", hint=f"Let {LEAST_PEOPLE} or more judge.")
    for name, value in (
        ("agreement", agreement), ("power", power), ("width", width), ("rate", rate),
        ("epsilon", epsilon),
    ):  # fmt: skip
        if not 0 < value < 1:
            raise ArgumentError(f"{name} is {value}", hint="Give a number between 0 and 1.")
    if values < 2:
        raise ArgumentError(f"{values} values", hint="Give 2 or more.")
    if per_query < 1 or not 0 <= correlation <= 1:
        raise ArgumentError(
            f"{per_query} units per query, correlation {correlation}",
            hint="Give 1 or more, and 0 to 1.",
        )
    design = 1 + (per_query - 1) * correlation
    level = level_for_half(people, rate)
    divided = _divided(people - 1, agreement) if values == 2 else 0.0
    variance = (1 - agreement) * (1 - divided)
    for_test = float(LEAST_UNITS)
    for _ in range(50):  # the quantile depends on the number of queries, and that on the quantile
        freedom = max(for_test * design / per_query, LEAST_QUERIES) - 1
        reach = float(stdtrit(freedom, 1 - level)) + float(ndtri(power))
        for_test = reach**2 * variance / epsilon**2
    while True:
        # How far behind the model may seem with this power, although it is not.
        behind = float(ndtri(power)) * math.sqrt(variance / for_test)
        queries = for_test * design / per_query
        if queries * math.log((1 - behind) / (1 - epsilon)) >= -math.log(level):
            break
        for_test += per_query / design
    for_interval = (float(ndtri(0.975)) / width) ** 2 * agreement * (1 - agreement)
    tested, interval = (math.ceil(size * design) for size in (for_test, for_interval))
    least = max(LEAST_UNITS, math.ceil(LEAST_QUERIES * per_query))
    return AuditPlan(people, tested, interval, max(tested, interval, least))


def _divided(others: int, agreement: float) -> float:
    """How probable it is that one half of the other people say yes and the other half no."""
    if others % 2:
        return 0.0
    right = (1 + math.sqrt(max(2 * agreement - 1, 0.0))) / 2  # agreement = right² + (1 - right)²
    return math.comb(others, others // 2) * (right * (1 - right)) ** (others // 2)

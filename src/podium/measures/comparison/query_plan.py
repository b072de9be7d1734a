"""How many queries a comparison needs, from how its differences vary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.errors import DataError
from podium.measures.comparison.power import (
    detectable_difference,
    difference_power,
    queries_needed,
)
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.statistics import differences_of
from podium.measures.registry import Measure


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
        difference: The true mean difference to show, above 0.
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
            "a single query does not tell how differences vary", hint="Give at least two queries."
        )
    if comparison.query_weights is not None:
        raise DataError("queries have weights", hint="Compare without query_weight=.")
    plans = []
    for measure, values in comparison.values.items():
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

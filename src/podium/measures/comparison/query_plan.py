"""How many queries a comparison needs, from how its differences vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podium.errors import DataError
from podium.measures.comparison.power import (
    detectable_difference,
    difference_power,
    queries_needed,
)
from podium.measures.comparison.statistics import differences_of
from podium.measures.registry import Measure

if TYPE_CHECKING:
    from podium.measures.comparison.result import Comparison


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
    comparison: Comparison, *, difference: float, power: float, level: float
) -> tuple[QueryPlan, ...]:
    """Plan every system's comparison under every measure; ``Comparison.plan`` documents it."""
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

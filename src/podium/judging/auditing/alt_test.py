"""The alternative annotator test (Calderon, Reichart and Dror, ACL 2025).

Each person in turn is left out, and the model and that person are held against the others, unit by
unit: whose judgment is nearer to theirs? The model wins against a person if it is nearer at least
as often, less a margin epsilon for what it costs less; that is tested, with Benjamini and
Yekutieli's correction. A model that wins against half of the people or more may replace them.

The authors' t-test takes units for independent. Those of one query are alike, so the variance here
is the jackknife's over queries, with as many degrees of freedom as there are queries, less one;
where each unit is of another query, that is their test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.errors import ArgumentError
from podium.judging.auditing.intervals import LEAST_QUERIES
from podium.kernels import Doubles, Ints

Bools = NDArray[np.bool_]

LEAST_UNITS = 30
"""Below so many units the t-test's assumption is in doubt, and a person is left out."""

LEAST_PEOPLE = 3
"""With two people, it is only seen to whom the model is nearer."""


@dataclass(frozen=True)
class AnnotatorTest:
    """The model against one person.

    Attributes:
        person: The person.
        units: How many units both they and others judged.
        model_ahead: How often the model is as near to the others as they are, or nearer.
        person_ahead: How often they are as near as the model, or nearer.
        p_value: Of the hypothesis that the model is behind by epsilon or more.
        won: Whether it is rejected, after the correction.
    """

    person: str
    units: int
    model_ahead: float
    person_ahead: float
    p_value: float
    won: bool


@dataclass(frozen=True)
class AltTest:
    """The result of the test.

    Attributes:
        epsilon: The margin.
        tests: The model against each person.
        winning_rate: The share of people it wins against.
        advantage: The mean probability that it is as good as a person, or better.
    """

    epsilon: float
    tests: tuple[AnnotatorTest, ...]
    winning_rate: float
    advantage: float

    @property
    def passed(self) -> bool:
        """Whether the model wins against half of the people or more."""
        return self.winning_rate >= 0.5


def alt_test(
    values: Doubles,
    votes: Doubles,
    people: tuple[str, ...] = (),
    *,
    clusters: Ints | None = None,
    epsilon: float = 0.15,
    rate: float = 0.05,
    graded: bool = False,
    least_units: int = LEAST_UNITS,
) -> AltTest | None:
    """Test whether a model may replace people; None if they, units or queries are too few.

    Args:
        values: The model's value of each unit.
        votes: One row per unit, one column per person; NaN where they did not judge.
        people: The people's names.
        clusters: The number of each unit's query; by default each is of another one.
        epsilon: The margin: 0.2 where people are experts, 0.15 where they are trained, 0.1 for a
            crowd, as the authors advise.
        rate: The false discovery rate.
        graded: Whether values have distances (grades), or are names.
        least_units: How many units a person must have judged to count.

    Example:
        >>> votes = np.tile([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], (30, 1))
        >>> alt_test(votes[:, 0], votes).winning_rate
        1.0
    """
    from scipy import stats  # here, as it takes longer to import than all the rest

    if not 0 <= epsilon <= 1:
        raise ArgumentError(f"epsilon is {epsilon}", hint="Give 0 to 1, such as 0.15.")
    names = people or tuple(str(column) for column in range(votes.shape[1]))
    known = ~np.isnan(votes)
    queries = np.arange(len(values)) if clusters is None else clusters
    rows: list[tuple[str, Bools, Bools, Ints]] = []
    for column, name in enumerate(names):
        others = known.copy()
        others[:, column] = False
        units = known[:, column] & others.any(axis=1)
        if units.sum() < least_units or len(np.unique(queries[units])) < LEAST_QUERIES:
            continue
        model = _alignment(values[units], votes[units], others[units], graded)
        person = _alignment(votes[units, column], votes[units], others[units], graded)
        rows.append((name, model >= person, person >= model, queries[units]))
    if len(rows) < LEAST_PEOPLE:
        return None
    p_values = np.array([_p_value(*row[1:], epsilon) for row in rows])
    corrected = stats.false_discovery_control(p_values, method="by")
    tests = tuple(
        AnnotatorTest(
            name, len(model), float(model.mean()), float(person.mean()), float(p), bool(q <= rate)
        )
        for (name, model, person, _), p, q in zip(rows, p_values, corrected, strict=True)
    )
    return AltTest(
        epsilon,
        tests,
        float(np.mean([test.won for test in tests])),
        float(np.mean([test.model_ahead for test in tests])),
    )


def _alignment(values: Doubles, votes: Doubles, others: Bools, graded: bool) -> Doubles:
    """How near values are to the others' votes: the share that is equal, or minus the distance."""
    counts = others.sum(axis=1)
    if graded:
        squares = np.where(others, (votes - values[:, None]) ** 2, 0.0).sum(axis=1)
        distances: Doubles = -np.sqrt(squares / counts)
        return distances
    shares: Doubles = (others & (votes == values[:, None])).sum(axis=1) / counts
    return shares


def _p_value(model: Bools, person: Bools, queries: Ints, epsilon: float) -> float:
    from scipy import stats

    differences = person.astype(float) - model
    mean = float(differences.mean())
    _, numbers, units = np.unique(queries, return_inverse=True, return_counts=True)
    residuals = np.bincount(numbers, differences - mean)
    count = len(units)
    error = math.sqrt((count - 1) / count * ((residuals / (units.sum() - units)) ** 2).sum())
    if error < 1e-12:
        # Queries that all say the same may be luck: so many without one in which the model is
        # behind, if it is in a share epsilon of them.
        return (1 - epsilon) ** count if mean < epsilon else 1.0
    # As many as there would be of equal size: one large query is not made up for by small ones.
    freedom = units.sum() ** 2 / (units**2).sum() - 1
    return float(stats.t.cdf((mean - epsilon) / error, freedom))

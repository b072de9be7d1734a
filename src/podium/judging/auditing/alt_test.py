"""The alternative annotator test (Calderon, Reichart and Dror, ACL 2025).

Each person in turn is left out, and the model and that person are held against the others, unit by
unit: whose judgment is nearer to theirs? The model wins against a person if it is nearer at least
as often, less a margin epsilon for what it costs less; that is tested, with Benjamini and
Yekutieli's correction. A model that wins against half of the people or more may replace them.

The authors' t-test takes units for independent. Those of one query are alike, so the variance here
is the jackknife's over queries, with as many degrees of freedom as there are queries, less one;
where each unit is of another query, that is their test. A model may also be behind in a few queries
throughout and as good as people in all others: the p-value is no smaller than the chance that an
audit of so many queries has none of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.errors import ArgumentError
from podium.judging.agreement.coefficients import LEAST_QUERIES
from podium.kernels import Doubles, Ints

Bools = NDArray[np.bool_]

LEAST_UNITS = 30
"""A person with fewer units is left out: the t-test's assumption is in doubt."""

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
        p_value: The p-value of the hypothesis that the model is behind by epsilon or more.
        unseen: The chance that queries in which the model is behind throughout, as many as would
            put it behind by epsilon, are all missing here; 1 if it is behind by epsilon here.
        won: Whether it is rejected, after the correction.
    """

    person: str
    units: int
    model_ahead: float
    person_ahead: float
    p_value: float
    unseen: float
    won: bool


@dataclass(frozen=True)
class AltTest:
    """The result of the test.

    Attributes:
        epsilon: The margin.
        tests: The model against each person.
        winning_rate: The share of people it wins against.
        advantage: The mean probability that it is as good as a person, or better.
        queries_needed: How many queries would show it, with as many units each, if the model does
            in them as it does here; None if queries are not too few.
    """

    epsilon: float
    tests: tuple[AnnotatorTest, ...]
    winning_rate: float
    advantage: float
    queries_needed: int | None = None

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
    p_values, unseen = np.transpose([_p_values(*row[1:], epsilon) for row in rows])
    corrected = stats.false_discovery_control(p_values, method="by")
    tests = tuple(
        AnnotatorTest(
            name,
            len(model),
            float(model.mean()),
            float(person.mean()),
            float(p),
            float(chance),
            bool(q <= rate),
        )
        for (name, model, person, _), p, chance, q in zip(
            rows, p_values, unseen, corrected, strict=True
        )
    )
    winning_rate = float(np.mean([test.won for test in tests]))
    return AltTest(
        epsilon,
        tests,
        winning_rate,
        float(np.mean([test.model_ahead for test in tests])),
        None if winning_rate >= 0.5 else _needed(rows, unseen, rate),
    )


def level_for_half(people: int, rate: float) -> float:
    """The p-value that half of the people need for Benjamini and Yekutieli's correction."""
    harmonic = sum(1 / rank for rank in range(1, people + 1))
    return rate * math.ceil(people / 2) / people / harmonic


def _needed(rows: list[tuple[str, Bools, Bools, Ints]], unseen: Doubles, rate: float) -> int | None:
    """How many queries would make the chances small enough that half of the people have."""
    half = math.ceil(len(rows) / 2)
    chance = float(np.sort(unseen)[half - 1])
    level = level_for_half(len(rows), rate)
    if not level < chance < 1:
        return None
    person = int(np.argsort(unseen, kind="stable")[half - 1])
    queries = len(np.unique(rows[person][3]))
    return math.ceil(queries * math.log(level) / math.log(chance))


def _alignment(values: Doubles, votes: Doubles, others: Bools, graded: bool) -> Doubles:
    """How near values are to the others' votes: the share that is equal, or minus the distance."""
    counts = others.sum(axis=1)
    if graded:
        squares = np.where(others, (votes - values[:, None]) ** 2, 0.0).sum(axis=1)
        distances: Doubles = -np.sqrt(squares / counts)
        return distances
    shares: Doubles = (others & (votes == values[:, None])).sum(axis=1) / counts
    return shares


def _p_values(model: Bools, person: Bools, queries: Ints, epsilon: float) -> tuple[float, float]:
    """The p-value, and the chance that no query is one in which the model is behind throughout."""
    from scipy import stats

    differences = person.astype(float) - model
    mean = float(differences.mean())
    _, numbers, units = np.unique(queries, return_inverse=True, return_counts=True)
    residuals = np.bincount(numbers, differences - mean)
    count = len(units)
    error = math.sqrt((count - 1) / count * ((residuals / (units.sum() - units)) ** 2).sum())
    # As many as there would be of equal size: one large query is not made up for by small ones.
    effective = float(units.sum() ** 2 / (units**2).sum())
    # Such a share of queries would put the model behind by epsilon, if it does in the others as
    # it does here: 1 - (1 - epsilon) / (1 - mean).
    unseen = ((1 - epsilon) / (1 - mean)) ** effective if mean < epsilon else 1.0
    if error < 1e-12:
        return unseen, unseen
    p_value = float(stats.t.cdf((mean - epsilon) / error, effective - 1))
    return (max(p_value, unseen) if mean < epsilon else p_value), unseen

"""Means over queries from few human judgments and many of a machine.

People judge a random sample of the queries, a machine judges all. The mean by the machine's labels
is corrected by how far it is off on the queries that people judged: prediction-powered inference
(Angelopoulos et al., Science 2023), with the power tuning of PPI++ (Angelopoulos, Duchi and Zrnic
2023), which gives the machine as much weight as it earns, and none if it earns none. A query is one
observation, however many of its documents were judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.data import Judgments, Preferences, Rankings, TableSource, as_judgments, as_rankings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.comparison.statistics import mean_interval
from podium.measures.conventions import Conventions
from podium.measures.evaluate import Measures, evaluate, measures_of
from podium.measures.measure_dict import ByMeasure
from podium.measures.registry import definition_of
from podium.measures.value import Measure

_LEAST = 4
"""Queries that people must have judged for the machine's weight to be estimated."""


@dataclass(frozen=True)
class PoweredMean:
    """A mean by human and machine labels, beside that by human labels alone.

    Attributes:
        mean: The prediction-powered mean.
        low: The lower end of its 95 % interval.
        high: The upper end.
        human_mean: The mean over the queries that people judged.
        human_low: The lower end of its interval.
        human_high: The upper end.
        weight: How much the machine's labels count, from 0 (not at all) to 1.
        human_queries: How many queries people judged.
        machine_queries: How many the machine judged beside them.
    """

    mean: float
    low: float
    high: float
    human_mean: float
    human_low: float
    human_high: float
    weight: float
    human_queries: int
    machine_queries: int

    @property
    def effective_queries(self) -> float:
        """How many queries people would have to judge for an interval as narrow as this one."""
        width, alone = self.high - self.low, self.human_high - self.human_low
        return self.human_queries * (alone / width) ** 2 if width > 0 else math.nan


def powered_mean(
    human: Doubles, machine: Doubles, others: Doubles, level: float = 0.95
) -> PoweredMean:
    """The mean of a value over queries, few of which have it by human labels.

    With weight w, y the human values, f the machine's of the same queries and g those of the other
    queries, the mean is mean(y) + w (mean(g) - mean(f)). w minimises its variance; as it is
    estimated from the queries that people judged, the interval has one degree of freedom less.

    Args:
        human: The value of each query that people judged, by their labels.
        machine: The same by the machine's labels.
        others: The value of each other query, by the machine's labels.
        level: The interval's confidence.

    Example:
        >>> random = np.random.default_rng(0)
        >>> truth = random.random(500)
        >>> guess = truth + 0.1 * random.standard_normal(500)
        >>> result = powered_mean(truth[:50], guess[:50], guess[50:])
        >>> result.low < 0.5 < result.high, round(result.effective_queries / 50, 1)
        (True, 5.5)
    """
    from scipy import stats

    y, f, g = (np.asarray(values, np.float64) for values in (human, machine, others))
    if y.shape != f.shape or y.ndim != 1 or g.ndim != 1:
        raise DataError(
            "the human and the machine's values are not of the same queries",
            hint="Give one of each per query, in the same order.",
        )
    if not len(y) or not all(np.isfinite(values).all() for values in (y, f, g)):
        raise DataError(
            "values are missing, NaN or infinite", hint="Leave out queries that have no value."
        )
    alone = mean_interval(y, level)
    count, rest = len(y), len(g)
    weight = 0.0
    if count >= _LEAST and rest >= 2:
        spread = float(np.var(np.concatenate([f, g]), ddof=1))
        if spread > 0:
            together = float(np.cov(y, f)[0, 1])
            weight = min(max(together / ((1 + count / rest) * spread), 0.0), 1.0)
    if weight == 0.0:
        return PoweredMean(*alone, *alone, 0.0, count, rest)
    residuals = y - weight * f
    mean = float(residuals.mean() + weight * g.mean())
    squares = float(np.sum((residuals - residuals.mean()) ** 2))
    variance = squares / (count - 2) / count + weight**2 * float(np.var(g, ddof=1)) / rest
    half = float(stats.t.ppf(0.5 + level / 2, count - 2)) * math.sqrt(variance)
    return PoweredMean(mean, mean - half, mean + half, *alone, weight, count, rest)


@dataclass(frozen=True)
class PoweredComparison:
    """Systems by human and machine labels.

    Attributes:
        means: For each measure, each system's mean.
        differences: For each measure, each other system's mean difference from the first.
    """

    means: ByMeasure[Mapping[str, PoweredMean]]
    differences: ByMeasure[Mapping[str, PoweredMean]]


def compare_powered(
    measures: Measures,
    human: Judgments | TableSource,
    machine: Judgments | TableSource,
    systems: Mapping[str, Rankings | TableSource],
    *,
    conventions: Conventions | str | None = None,
) -> PoweredComparison:
    """Evaluate and compare systems by few human judgments and many of a machine.

    People must have judged a random sample of the queries that the machine judged, each of them
    as far down as the machine did; human labels of other queries are refused.

    Args:
        measures: One or several measures that are means over queries.
        human: The human judgments.
        machine: The machine's judgments, of the same queries and of others.
        systems: What each system returned, by its name; the first is the baseline.
        conventions: As ``evaluate`` takes them.

    Example:
        >>> truth = {f"q{n}": {"a": n % 2, "b": 1 - n % 2} for n in range(40)}
        >>> human = {query: truth[query] for query in list(truth)[:8]}
        >>> run = {query: {"a": 2.0, "b": 1.0} for query in truth}
        >>> result = compare_powered("RR", human, truth, {"run": run})
        >>> result.means["RR"]["run"].mean, round(result.means["RR"]["run"].weight, 2)
        (0.75, 0.89)
    """
    if not systems:
        raise ArgumentError("there are no systems", hint="Give at least one run.")
    parsed = measures_of(measures)
    for measure in parsed:
        if definition_of(measure).aggregate != "mean":
            raise ArgumentError(
                f"{measure!r} is not a mean over queries", hint="Choose one that is, such as AP."
            )
    # Converted once: an iterable can be read once only.
    sources = [as_judgments(each) for each in (human, machine)]
    runs = {name: as_rankings(source) for name, source in systems.items()}
    values = {
        name: [_by_query(measures, truth, run, conventions) for truth in sources]
        for name, run in runs.items()
    }
    means: dict[Measure, dict[str, PoweredMean]] = {}
    differences: dict[Measure, dict[str, PoweredMean]] = {}
    for measure in parsed:
        by_people = {name: each[0][measure] for name, each in values.items()}
        by_machine = {name: each[1][measure] for name, each in values.items()}
        judged, rest = _queries(by_people, by_machine)
        columns = {
            name: (
                np.array([by_people[name][query] for query in judged]),
                np.array([by_machine[name][query] for query in judged]),
                np.array([by_machine[name][query] for query in rest]),
            )
            for name in systems
        }
        means[measure] = {name: powered_mean(*column) for name, column in columns.items()}
        baseline, *others = columns
        differences[measure] = {
            name: powered_mean(
                *(one - two for one, two in zip(columns[name], columns[baseline], strict=True))
            )
            for name in others
        }
    return PoweredComparison(ByMeasure(means), ByMeasure(differences))


def _by_query(
    measures: Measures,
    truth: Judgments | Preferences,
    run: Rankings,
    conventions: Conventions | str | None,
) -> dict[Measure, dict[str, float]]:
    """The value of each query that has one."""
    evaluation = evaluate(measures, truth, run, conventions=conventions)
    queries = evaluation.query_ids.to_pylist()
    return {
        measure: {
            query: float(value)
            for query, value in zip(queries, values, strict=True)
            if not np.isnan(value)
        }
        for measure, values in evaluation.values.items()
    }


def _queries(
    by_people: Mapping[str, Mapping[str, float]], by_machine: Mapping[str, Mapping[str, float]]
) -> tuple[list[str], list[str]]:
    """The queries that people judged, and those that only the machine did, in all systems."""
    human = set.intersection(*(set(values) for values in by_people.values()))
    machine = set.intersection(*(set(values) for values in by_machine.values()))
    if not human:
        raise DataError("people judged no query that the runs have", hint="Check the query ids.")
    alone = sorted(human - machine)
    if alone:
        raise DataError(
            f"query {alone[0]!r} has human judgments and none of the machine",
            hint="Let the machine judge all queries.",
        )
    return sorted(human), sorted(machine - human)

"""Means over queries from few human judgments and many of a machine.

People judge a random sample of the queries, a machine judges all. The mean by the machine's labels
is corrected by how far it is off on the queries that people judged: prediction-powered inference
(Angelopoulos et al., Science 2023), with the power tuning of PPI++ (Angelopoulos, Duchi and Zrnic
2023), which gives the machine as much weight as it earns, and none if it earns none. The weight of
each query is learned from the others, so that the mean is not biased. A query is one observation,
however many of its documents were judged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.data import Judgments, Rankings
from podium.data.preferences import Preferences
from podium.data.sources import TableSource, as_judgments, as_rankings
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.conventions import Conventions
from podium.measures.evaluating import evaluate
from podium.measures.evaluation import ByMeasure
from podium.measures.presets import Measures, resolve_measures
from podium.measures.registry import Measure, definition_of

_LEAST = 4
"""Queries that people must have judged for the machine's weight to be estimated."""


@dataclass(frozen=True)
class PoweredMean:
    """A mean by human and machine labels, beside that by human labels alone.

    Attributes:
        mean: The prediction-powered mean.
        low: The lower end of its 95 % interval; NaN if nothing is known of how queries vary.
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
    queries, the mean is mean(y) + w (mean(g) - mean(f)). w minimizes its variance. It is estimated
    from the queries that people judged: for each of them from the others, because a weight that its
    own value took part in would bias the mean. The interval takes the weight of all, and has one
    degree of freedom less for it.

    Where people's values are the same for half of the queries or more, as measures of 0 and 1
    have them, a sample may have none of the rare ones. There the interval is that with two more
    queries, one at each end of the range of values, as of a proportion (Agresti and Coull, The
    American Statistician 52, 1998): it is wider, and the mean is not in its middle.

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
    count, rest = len(y), len(g)
    alone = (float(y.mean()), *_ends(float(y.mean()), y, f, g, 0.0, level))
    weight, mean = 0.0, alone[0]
    spread = float(np.var(np.concatenate([f, g]), ddof=1)) if rest >= 2 else 0.0
    if count >= _LEAST and spread > 0:
        earned = (1 + count / rest) * spread
        weight = min(max(float(np.cov(y, f)[0, 1]) / earned, 0.0), 1.0)
        left = count - 1  # the covariance of all but one, for each of them
        together = (y @ f - y * f) - (y.sum() - y) * (f.sum() - f) / left
        weights = np.clip(together / (left - 1) / earned, 0.0, 1.0)
        mean = float(np.mean(y - weights * f) + weights.mean() * g.mean())
    ends = _ends(mean, y, f, g, weight, level)
    return PoweredMean(mean, *ends, *alone, weight, count, rest)


def _ends(
    mean: float, y: Doubles, f: Doubles, g: Doubles, weight: float, level: float
) -> tuple[float, float]:
    """The ends of the interval around a mean, whose machine has some weight."""
    from scipy import stats

    residuals = y - weight * f
    values = np.concatenate([y, f, g])
    least, most = float(values.min()), float(values.max())
    shift = 0.0
    _, times = np.unique(y, return_counts=True)
    if len(y) > 1 and least < most and 2 * times.max() >= len(y):
        more = np.append(residuals, [least - weight * most, most - weight * least])
        shift = float(more.mean() - residuals.mean())
        residuals = more
    count = len(residuals)
    freedom = count - (2 if weight else 1)
    squares = float(np.sum((residuals - residuals.mean()) ** 2))
    if freedom < 1 or squares == 0.0:
        return math.nan, math.nan
    variance = squares / freedom / count
    if weight:
        variance += weight**2 * float(np.var(g, ddof=1)) / len(g)
    half = float(stats.t.ppf(0.5 + level / 2, freedom)) * math.sqrt(variance)
    return mean + shift - half, mean + shift + half


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
        >>> round(result.means["RR"]["run"].mean, 2), round(result.means["RR"]["run"].weight, 2)
        (0.75, 0.89)
    """
    if not systems:
        raise ArgumentError("there are no systems", hint="Give at least one run.")
    parsed, chosen = resolve_measures(measures, conventions)
    for measure in parsed:
        if definition_of(measure).aggregate != "mean":
            raise ArgumentError(
                f"{measure!r} is not a mean over queries", hint="Choose one that is, such as AP."
            )
    # Converted once: an iterable can be read once only.
    sources = [as_judgments(each) for each in (human, machine)]
    runs = {name: as_rankings(source) for name, source in systems.items()}
    values = {
        name: [_by_query(parsed, truth, run, chosen) for truth in sources]
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
        # A query that one system has no value for has none for any.
        unknown = [np.isnan(sum(part)) for part in zip(*columns.values(), strict=True)]
        for column in columns.values():
            for part, without in zip(column, unknown, strict=True):
                part[without] = np.nan
        means[measure] = {name: _mean_of_known(*column) for name, column in columns.items()}
        baseline, *others = columns
        differences[measure] = {
            name: _mean_of_known(
                *(one - two for one, two in zip(columns[name], columns[baseline], strict=True))
            )
            for name in others
        }
    return PoweredComparison(ByMeasure(means), ByMeasure(differences))


def _by_query(
    measures: list[Measure],
    truth: Judgments | Preferences,
    run: Rankings,
    conventions: Conventions,
) -> dict[Measure, dict[str, float]]:
    """The value of each query; NaN where conventions leave it out."""
    evaluation = evaluate(measures, truth, run, conventions=conventions)
    queries = evaluation.query_ids.to_pylist()
    return {
        measure: dict(zip(queries, values.tolist(), strict=True))
        for measure, values in evaluation.values.items()
    }


def _queries(
    by_people: Mapping[str, Mapping[str, float]], by_machine: Mapping[str, Mapping[str, float]]
) -> tuple[list[str], list[str]]:
    """The queries that people judged, and those that only the machine did, in all systems."""
    human = set.intersection(*(set(values) for values in by_people.values()))
    machine = set.intersection(*(set(values) for values in by_machine.values()))
    alone = sorted(human - machine)
    if alone:
        raise DataError(
            f"query {alone[0]!r} has human judgments and none of the machine",
            hint="Let the machine judge all queries.",
        )
    return sorted(human), sorted(machine - human)


def _mean_of_known(human: Doubles, machine: Doubles, others: Doubles) -> PoweredMean:
    """The mean over the queries that have a value by human labels, where some have none (NaN).

    Which of the other queries people would find nothing for is unknown, so no query is left out,
    on either side. One without a human value does not move the mean, and the others move it as
    much more as they are fewer: a mean of known values is a ratio of two means, and this is its
    linear form. Where the machine has no value, its mean takes its part.
    """
    known = ~np.isnan(human)
    if not known.any():
        raise DataError(
            "no query that people judged has a value", hint="Check the query ids and conventions."
        )
    mean = float(human[known].mean())
    y = np.where(known, mean + (human - mean) / known.mean(), mean)
    guesses = np.concatenate([machine, others])
    guessed = ~np.isnan(guesses)
    middle = float(guesses[guessed].mean()) if guessed.any() else 0.0
    f, g = (np.where(np.isnan(part), middle, part) for part in (machine, others))
    return powered_mean(y, f, g)

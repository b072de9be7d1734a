"""The result of comparing systems, and what every report shows of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.data.frames import html_table, pandas_frame
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.measures.comparison.coherence import Coherence, coherences
from podium.measures.comparison.statistics import (
    Difference,
    OnRequest,
    TestName,
    effective_queries,
    holm,
    paired_difference,
    tukey,
    weighted_interval,
)
from podium.measures.compiled import Booleans
from podium.measures.conventions import Conventions
from podium.measures.coverage import RunCoverage, coverage_notes
from podium.measures.evaluation import ByMeasure
from podium.measures.inputs import Inputs
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.registry import unknown_name
from podium.reports.charts import difference_chart
from podium.reports.figure import Figure
from podium.reports.page import interval_text

_MOVED = 5
"""How many of the queries that gained most, and of those that lost most, are named."""
_FEW = 20
"""Weights that are worth fewer equal ones are warned of, as are those that a tenth of the queries
have half of."""


@dataclass(frozen=True)
class Summary:
    """A system's mean under a measure, with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Compared:
    """What the values of a comparison were computed from, for what else may be asked of it.

    Attributes:
        conventions: The conventions that the values follow.
        inputs: What each system returned, with the truth about it.
        keep: Which of their queries are compared.
    """

    conventions: Conventions
    inputs: tuple[Inputs, ...]
    keep: Booleans


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """One system compared with the baseline under one measure; each part is computed when read.

    Attributes:
        comparison: The comparison that it is a part of.
        measure: The measure.
        system: The system.
    """

    comparison: Comparison = field(repr=False)
    measure: Measure
    system: str

    @cached_property
    def difference(self) -> Difference:
        """Mean difference, interval, effect size, wins, ties and losses, p-values."""
        comparison = self.comparison
        return paired_difference(
            self._values,
            comparison.values[self.measure][:, 0],
            random_state=comparison.random_state,
            weights=comparison.query_weights,
            larger_is_better=self.measure.larger_is_better,
        )

    @cached_property
    def corrected(self) -> Mapping[TestName, float]:
        """The p-values after Holm's correction over all systems of this measure."""
        others = self.comparison.against_baseline[self.measure]

        def correct(test: TestName) -> float:
            p_values = [each.difference.p_values[test] for each in others.values()]
            return float(holm(np.array(p_values))[list(others).index(self.system)])

        return OnRequest(self.difference.p_values, correct)

    @property
    def tukey(self) -> float:
        """The p-value of Tukey's honestly significant difference over all systems.

        NaN if queries have weights.
        """
        comparison = self.comparison
        if comparison.query_weights is not None:
            return math.nan
        return float(comparison.tukey[self.measure][0, comparison.systems.index(self.system)])

    @property
    def coherence(self) -> Coherence | None:
        """How much the result depends on gains and discounts.

        None for measures that have none, and if queries have weights.
        """
        comparison = self.comparison
        every = comparison.coherences[self.measure]
        return None if every is None else every[comparison.systems.index(self.system) - 1]

    @cached_property
    def moved(self) -> tuple[int, ...]:
        """The queries that changed most, by index: largest gains first, then largest losses."""
        sign = 1.0 if self.measure.larger_is_better else -1.0
        changes = sign * (self._values - self.comparison.values[self.measure][:, 0])
        order = np.argsort(-changes, kind="stable")
        gained = [int(query) for query in order[:_MOVED] if changes[query] > 0]
        lost = [int(query) for query in order[::-1][:_MOVED] if changes[query] < 0]
        return tuple(gained + lost)

    @property
    def _values(self) -> Doubles:
        column = self.comparison.systems.index(self.system)
        values: Doubles = self.comparison.values[self.measure][:, column]
        return values

    def is_significant(self, test: TestName, level: float = 0.05) -> bool:
        """Whether the corrected p-value of a test is below a level."""
        return self.corrected[test] < level


@dataclass(frozen=True)
class Comparison:
    """Systems compared on the same queries.

    It has the values of each query; what is computed from them is computed when it is read, or
    by functions that take a comparison: ``require``, ``slice_differences``, ``search_slices``,
    ``plan_queries``, ``as_markdown`` and so on.

    Attributes:
        systems: Their names; the first is the baseline.
        measures: The measures.
        query_ids: The queries that all systems have a value for under all measures.
        left_out: How many judged queries are not among them.
        values: For each measure, by any of its names, one row per query and one column per system.
        empty_values: For each measure, by any of its names, what each query's value would be had
            a system no result for it.
        conventions: The conventions the values follow, in words.
        test: The test that decides significance.
        random_state: The seed of the test.
        query_weights: The weight of each query; None if all count equally.
        unanswered: For each other system, how many of the queries that were left out the baseline
            has a value for.
        source: What the values were computed from; None if that is not known.
        coverage: How much of the judgments each system answers, and how much of it is judged.
    """

    systems: tuple[str, ...]
    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...] = field(repr=False)
    left_out: int
    values: ByMeasure[NDArray[np.float64]] = field(repr=False)
    empty_values: ByMeasure[Doubles] = field(repr=False)
    conventions: str
    test: TestName
    random_state: int = 0
    query_weights: Doubles | None = field(default=None, repr=False)
    unanswered: Mapping[str, int] = field(default_factory=dict, repr=False)
    source: Compared | None = field(default=None, repr=False)
    coverage: Mapping[str, RunCoverage] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        lines = [*markdown_table(HEADINGS, self.rows()), "", *notes(self), *warnings(self), ""]
        return "\n".join(lines)

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.systems[0]

    @cached_property
    def summaries(self) -> ByMeasure[Mapping[str, Summary]]:
        """For each measure, by any of its names, each system's mean and interval."""
        return ByMeasure(
            {
                measure: {
                    name: Summary(*weighted_interval(table[:, column], self.query_weights))
                    for column, name in enumerate(self.systems)
                }
                for measure, table in self.values.items()
            }
        )

    @cached_property
    def against_baseline(self) -> ByMeasure[Mapping[str, BaselineComparison]]:
        """For each measure, by any of its names, each other system against the baseline."""
        return ByMeasure(
            {
                measure: {
                    name: BaselineComparison(self, measure, name) for name in self.systems[1:]
                }
                for measure in self.measures
            }
        )

    @cached_property
    def tukey(self) -> Mapping[Measure, NDArray[np.float64]]:
        """For each measure, the p-values of Tukey's test of all pairs of systems."""
        return OnRequest(self.measures, lambda measure: tukey(self.values[measure]))

    @cached_property
    def coherences(self) -> Mapping[Measure, list[Coherence] | None]:
        """For each measure, each other system's coherence; None where there is none."""
        source = None if self.query_weights is not None else self.source

        def of(measure: Measure) -> list[Coherence] | None:
            if source is None:
                return None
            return coherences(measure, source.conventions, source.inputs, source.keep)

        return OnRequest(self.measures, of)

    def plot(self, measure: Measure | str | None = None, system: str | None = None) -> Figure:
        """Draw each query's difference from the baseline, largest gain first, as an SVG picture.

        Args:
            measure: Which measure; the first by default.
            system: Which system against the baseline; the second by default.

        Example:
            >>> from podium.measures import compare
            >>> truth = {"p": {"a": 1}, "q": {"b": 1}}
            >>> runs = {"old": {"p": {"b": 2, "a": 1}}, "new": {"p": {"a": 1}, "q": {"b": 1}}}
            >>> compare("RR", truth, runs).plot()
            Figure('RR: new against old')
        """
        chosen = self.measures[0] if measure is None else measure
        if chosen not in self.values:
            known = ", ".join(map(repr, self.measures))
            raise ArgumentError(f"{chosen} was not compared", hint=f"There are: {known}.")
        name = self.systems[1] if system is None else system
        if name not in self.systems[1:]:
            raise unknown_name("system to draw", name, self.systems[1:])
        table = self.values[chosen]
        differences = table[:, self.systems.index(name)] - table[:, 0]
        title = f"{chosen}: {name} against {self.baseline}"
        chart = difference_chart(
            differences, self.query_ids, larger_is_better=parse_measure(chosen).larger_is_better
        )
        return Figure.of_chart(title, chart)

    def rows(self) -> list[list[str]]:
        """The main table as strings: one row per system and measure, as every report shows it."""
        rows = []
        for measure in self.measures:
            for system in self.systems:
                summary = self.summaries[measure][system]
                row = [
                    repr(measure),
                    system,
                    f"{summary.mean:.4f}",
                    interval_text(summary.low, summary.high),
                ]
                outcome = self.against_baseline[measure].get(system)
                row += [""] * len(HEADINGS[4:]) if outcome is None else self._against(outcome)
                rows.append(row)
        return rows

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per measure and system; null for the baseline.

        ``p_holm`` is the p-value of ``test`` after Holm's correction.
        """
        return pa.Table.from_pylist(
            [self._record(measure, system) for measure in self.measures for system in self.systems],
            schema=_SCHEMA,
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per measure and system."""
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        queries = f"{len(self.query_ids)} queries, baseline {self.baseline}, {self.test} test"
        return html_table(self.to_arrow(), caption=queries, rows=100)

    def _record(self, measure: Measure, system: str) -> dict[str, Any]:
        summary = self.summaries[measure][system]
        record = {"measure": repr(measure), "system": system, **vars(summary)}
        outcome = self.against_baseline[measure].get(system)
        if outcome is not None:
            difference = outcome.difference
            record |= {
                "difference": difference.mean,
                "difference_low": difference.low,
                "difference_high": difference.high,
                "p_holm": outcome.corrected[self.test],
                "p_tukey": None if math.isnan(outcome.tukey) else outcome.tukey,
                "effect_size": difference.effect,
                "wins": difference.wins,
                "ties": difference.ties,
                "losses": difference.losses,
            }
        return record

    def _against(self, outcome: BaselineComparison) -> list[str]:
        difference = outcome.difference
        mark = "*" if outcome.is_significant(self.test) else ""
        return [
            f"{difference.mean:+.4f}{mark}",
            interval_text(difference.low, difference.high, "+"),
            f"{outcome.corrected[self.test]:.3g}",
            "-" if math.isnan(outcome.tukey) else f"{outcome.tukey:.3g}",
            "-" if math.isnan(difference.effect) else f"{difference.effect:+.2f}",
            f"{difference.wins}/{difference.ties}/{difference.losses}",
            coherent_cell(outcome.coherence),
        ]


_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("measure", "system")]
    + [
        (name, pa.float64())
        for name in (
            *("mean", "low", "high", "difference", "difference_low", "difference_high"),
            *("p_holm", "p_tukey", "effect_size"),
        )
    ]
    + [(name, pa.int64()) for name in ("wins", "ties", "losses")]
)


def coherent_cell(coherence: Coherence | None) -> str:
    """The share of gains and discounts that keep a result, as tables show it."""
    if coherence is None:
        return ""
    if coherence.unanimous:
        return "all"
    if coherence.difference == 0.0:  # no system is ahead
        return "-"
    # 100 % means the whole family, 0 % none of it: other shares are not rounded to these.
    share = min(
        max(round(100 * coherence.keeps), int(coherence.keeps > 0)), 100 - int(coherence.keeps < 1)
    )
    return f"{share}%"


HEADINGS = (
    "measure",
    "system",
    "mean",
    "95 % interval",
    "difference",
    "its interval",
    "p (Holm)",
    "p (Tukey)",
    "effect",
    "win/tie/loss",
    "coherent",
)


def notes(comparison: Comparison) -> list[str]:
    """Return notes on how to read the table, one sentence each."""
    weighted = comparison.query_weights is not None
    tukey = "" if weighted else "Tukey's p is for all pairs; "
    sentences = [
        f"{len(comparison.query_ids)} queries; differences are against {comparison.baseline}.",
        f"Conventions: {comparison.conventions}.",
        *coverage_notes(comparison.coverage),
        f"* p < 0.05 by the {_test_in_words(comparison)}, Holm-corrected over systems; {tukey}"
        "effect is Cohen's d of the differences.",
        "Means, intervals, effects and the test are weighted by query, and are of queries with "
        "just these weights; wins, ties and losses are numbers of queries."
        if weighted
        else "coherent: the share of a family of sensible gains and discounts, the measure's own "
        "among them, under which the same system is ahead; 'all' means that no increasing gains "
        "and decreasing discounts put the other one ahead.",
    ]
    for measure in comparison.measures:
        for system, outcome in comparison.against_baseline[measure].items():
            coherence = outcome.coherence
            if coherence is not None and coherence.nearest is not None:
                sentences.append(
                    f"{measure!r}: {system} against {comparison.baseline} flips with "
                    f"{coherence.nearest}."
                )
    return sentences


def warnings(comparison: Comparison) -> list[str]:
    """Return what readers of every format have to know, programs among them."""
    weights, sentences = comparison.query_weights, []
    if comparison.source is not None:
        for name, coverage in comparison.coverage.items():
            sentences += [
                f"{name}: {each}" for each in coverage.warnings(comparison.source.conventions)
            ]
        # The judgments are the same for all.
        sentences += comparison.coverage[comparison.baseline].label_warnings(
            comparison.measures, comparison.source.conventions
        )
    if comparison.left_out:
        no_weight = "" if weights is None else ", or weight 0"
        sentences.append(
            f"{comparison.left_out} of {comparison.left_out + len(comparison.query_ids)} queries "
            f"are left out: no value for one of the systems{no_weight}."
        )
    if weights is not None:
        sentences += _weight_warnings(weights)
    return sentences


def _weight_warnings(weights: Doubles) -> list[str]:
    """Say where a few queries decide."""
    count, effective = len(weights), effective_queries(weights)
    held = np.cumsum(np.sort(weights)[::-1]) / weights.sum()
    heaviest = int(np.searchsorted(held, 0.5 - 1e-9)) + 1
    if effective >= min(_FEW, 0.75 * count) and 10 * heaviest > count:
        return []
    have = "query has" if heaviest == 1 else "queries have"
    return [
        f"The weights of {count:,} queries are worth {effective:.1f} equal ones, and {heaviest:,} "
        f"{have} half of the weight or more: intervals and requirements are as uncertain as of so "
        "few, and do not count heavier queries that are not here."
    ]


def _test_in_words(comparison: Comparison) -> str:
    return {
        "t": "paired t-test",
        "randomization": "paired randomization test",
        "wilcoxon": "Wilcoxon signed-rank test",
        "sign": "sign test",
    }[comparison.test]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [
        "| " + " | ".join(map(markdown_escaped, row)) + " |"
        for row in (headings, ["---"] * len(headings), *rows)
    ]


def markdown_escaped(text: str) -> str:
    """Keep text in its cell, and what looks like HTML from being it."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")

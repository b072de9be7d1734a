"""The result of comparing systems, independent of the output format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.data.frames import html_table, pandas_frame
from podium.errors import ArgumentError
from podium.kernels import Doubles
from podium.measures.comparison.coherence import Coherence
from podium.measures.comparison.statistics import Difference, TestName
from podium.measures.measure_dict import ByMeasure
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.registry import unknown_name

if TYPE_CHECKING:
    from podium.measures.comparison.decision import Decision, Look
    from podium.measures.comparison.query_plan import QueryPlan
    from podium.measures.comparison.requirement import Requirement
    from podium.measures.comparison.slice_differences import SliceDifference
    from podium.measures.comparison.slices import QueryProperties
    from podium.reports.figure import Figure


@dataclass(frozen=True)
class Summary:
    """A system's mean under a measure, with the ends of its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class BaselineComparison:
    """One system compared with the baseline under one measure.

    Attributes:
        difference: Mean difference, interval, effect size, wins, ties and losses, p-values.
        corrected: The p-values after Holm's correction over all systems of this measure.
        tukey: The p-value of Tukey's honestly significant difference over all systems; NaN if
            queries have weights.
        coherence: How much the result depends on gains and discounts; None for measures that
            have none, and if queries have weights.
        moved: The indices of the queries that changed most, largest gains first, then largest
            losses.
    """

    difference: Difference
    corrected: Mapping[TestName, float]
    tukey: float
    coherence: Coherence | None
    moved: tuple[int, ...] = field(repr=False)

    def is_significant(self, test: TestName, level: float = 0.05) -> bool:
        """Whether the corrected p-value of a test is below a level."""
        return self.corrected[test] < level


@dataclass(frozen=True)
class Curve:
    """A system's means over the cut-offs of one measure."""

    cut_offs: tuple[int, ...]
    means: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """Systems compared on the same queries.

    Attributes:
        systems: Their names; the first is the baseline.
        measures: The measures.
        query_ids: The queries that all systems have a value for under all measures.
        left_out: How many judged queries are not among them.
        values: For each measure, by any of its names, one row per query and one column per system.
        empty_values: For each measure, by any of its names, what each query's value would be had
            a system no result for it.
        summaries: For each measure, by any of its names, each system's mean and interval.
        verdicts: For each measure, by any of its names, each other system against the baseline.
        curves: For the first measure with a cut-off, each system's means over cut-offs.
        curve_of: The name of that measure without its cut-off.
        conventions: The conventions the values follow, in words.
        test: The test that decides significance.
        seed: The seed of the test.
        query_weights: The weight of each query; None if all count equally.
        unanswered: For each other system, how many of the queries that were left out the baseline
            has a value for.
    """

    systems: tuple[str, ...]
    measures: tuple[Measure, ...]
    query_ids: tuple[str, ...] = field(repr=False)
    left_out: int
    values: ByMeasure[NDArray[np.float64]] = field(repr=False)
    empty_values: ByMeasure[Doubles] = field(repr=False)
    summaries: ByMeasure[Mapping[str, Summary]] = field(repr=False)
    verdicts: ByMeasure[Mapping[str, BaselineComparison]] = field(repr=False)
    curves: Mapping[str, Curve] = field(repr=False)
    curve_of: str
    conventions: str
    test: TestName
    seed: int = 0
    query_weights: Doubles | None = field(default=None, repr=False)
    unanswered: Mapping[str, int] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        from podium.measures.comparison.formats import as_markdown

        return as_markdown(self)

    @property
    def baseline(self) -> str:
        """The system that the others are compared with."""
        return self.systems[0]

    def plot(self, measure: Measure | str | None = None, system: str | None = None) -> Figure:
        """Draw each query's difference from the baseline, largest gain first, as an SVG picture.

        Args:
            measure: Of which; the first by default.
            system: Which system against the baseline; the second by default.

        Example:
            >>> from podium.measures import compare
            >>> truth = {"p": {"a": 1}, "q": {"b": 1}}
            >>> runs = {"old": {"p": {"b": 2, "a": 1}}, "new": {"p": {"a": 1}, "q": {"b": 1}}}
            >>> compare("RR", truth, runs).plot()
            Figure('RR: new against old')
        """
        from podium.reports.charts import difference_chart
        from podium.reports.figure import Figure

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

    def require(
        self,
        *requirements: Requirement | str,
        properties: QueryProperties | None = None,
        level: float = 0.05,
        look: Look | str | None = None,
    ) -> Decision:
        """Test whether each system may ship: whether all requirements are shown.

        A requirement is not met until a one-sided test shows it, so a small or noisy comparison
        does not ship by default; the result says how many queries would be enough. So few that
        the losses which matter may be in none of them show nothing, even of equal systems.

        Args:
            requirements: Such as ``"nDCG@10 >= baseline - 0.005"`` (no loss beyond a margin),
                ``"nDCG@10 > baseline"`` (a gain), ``"nDCG@10 >= baseline - 1%"`` or
                ``"RR >= 0.4"``; for losses with ``<=``, ``<`` and ``+``. After it
                ``in each COLUMN`` asks for every slice of a column, ``in COLUMN=VALUE`` for one.
            properties: The columns of the queries, for slices: ``{column: {query id: value}}``, or
                a table with a column ``query_id``. A column with more than 8 different numbers
                is cut into three ranges.
            level: How often systems that do not meet the requirements may pass. The test is
                approximate; how often they pass is measured in ``benchmarks.statistics``.
            look: Which of several planned looks at this comparison this is, such as ``"2/5"``.

        Example:
            >>> from podium.measures import compare
            >>> truth = {f"q{query}": {"a": 1} for query in range(20)}
            >>> old = {query: {"b": 2, "a": 1} for query in truth}
            >>> new = {query: {"a": 1 + (query != "q0"), "b": 1.5} for query in truth}
            >>> decision = compare("RR", truth, {"old": old, "new": new}).require("RR > baseline")
            >>> decision.shown, round(decision.results[0].value, 3)
            (True, 0.475)
        """
        from podium.measures.comparison.decision import Look, decide
        from podium.measures.comparison.requirement import Requirement

        return decide(
            self,
            [
                each if isinstance(each, Requirement) else Requirement.parse(each)
                for each in requirements
            ],
            properties=properties,
            level=level,
            look=Look.parse(look) if isinstance(look, str) else look,
        )

    def slices(self, properties: QueryProperties) -> tuple[SliceDifference, ...]:
        """Compare on the slices of each column of the queries' properties.

        P-values are those of the comparison's test, corrected over all slices by Benjamini and
        Hochberg (``q_value``).

        Args:
            properties: As ``require`` takes them.

        Example:
            >>> from podium.measures import compare
            >>> truth = {f"q{query}": {"a": 1} for query in range(8)}
            >>> old = {query: {"b": 2, "a": 1} for query in truth}
            >>> new = {query: {"a": 2, "b": 1} for query in truth}
            >>> kinds = {query: "new" if query > "q5" else "known" for query in truth}
            >>> rows = compare("RR", truth, {"old": old, "new": new}).slices({"kind": kinds})
            >>> [(row.name, row.queries, row.mean) for row in rows]
            [('kind=known', 6, 0.5), ('kind=new', 2, 0.5)]
        """
        from podium.measures.comparison.slice_differences import slice_differences
        from podium.measures.comparison.slices import property_columns, slices_of

        return slice_differences(self, slices_of(property_columns(properties, self.query_ids)))

    def search_slices(
        self, properties: QueryProperties, *, seed: int = 0
    ) -> tuple[SliceDifference, ...]:
        """Search for slices that gain or lose, and test them on queries that took no part in it.

        A tree of at most two conditions on the properties is grown on one half of the queries,
        drawn at random; its slices are tested on the other half. With fewer than 32 queries there
        is nothing to split.

        Args:
            properties: As ``require`` takes them.
            seed: Of the two halves.

        Example:
            >>> from podium.measures import compare
            >>> truth = {f"q{query}": {"a": 1} for query in range(80)}
            >>> kind = {f"q{query}": "odd" if query % 2 else "even" for query in range(80)}
            >>> old = {query: {"b": 2, "a": 1} for query in truth}
            >>> new = {query: {"a": 3 if kind[query] == "odd" else 1, "b": 2} for query in truth}
            >>> comparison = compare("RR", truth, {"old": old, "new": new})
            >>> [(row.name, row.mean) for row in comparison.search_slices({"kind": kind})]
            [('kind = even', 0.0), ('kind = odd', 0.5)]
        """
        from podium.measures.comparison.slice_search import search_slices
        from podium.measures.comparison.slices import property_columns

        return search_slices(self, property_columns(properties, self.query_ids), seed=seed)

    def plan(
        self, *, difference: float = 0.01, power: float = 0.8, level: float = 0.05
    ) -> tuple[QueryPlan, ...]:
        """Tell how many queries show a difference, by how the differences here vary.

        Args:
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
            >>> (plan,) = compare("RR", truth, {"old": old, "new": new}).plan(difference=0.1)
            >>> round(plan.deviation, 4), plan.needed
            (0.5774, 264)
        """
        from podium.measures.comparison.query_plan import plan_queries

        return plan_queries(self, difference=difference, power=power, level=level)

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
                    _interval(summary.low, summary.high),
                ]
                verdict = self.verdicts[measure].get(system)
                row += [""] * len(HEADINGS[4:]) if verdict is None else self._against(verdict)
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
        verdict = self.verdicts[measure].get(system)
        if verdict is not None:
            difference = verdict.difference
            record |= {
                "difference": difference.mean,
                "difference_low": difference.low,
                "difference_high": difference.high,
                "p_holm": verdict.corrected[self.test],
                "p_tukey": None if math.isnan(verdict.tukey) else verdict.tukey,
                "effect_size": difference.effect,
                "wins": difference.wins,
                "ties": difference.ties,
                "losses": difference.losses,
            }
        return record

    def _against(self, verdict: BaselineComparison) -> list[str]:
        difference = verdict.difference
        mark = "*" if verdict.is_significant(self.test) else ""
        return [
            f"{difference.mean:+.4f}{mark}",
            _interval(difference.low, difference.high, "+"),
            f"{verdict.corrected[self.test]:.3g}",
            "-" if math.isnan(verdict.tukey) else f"{verdict.tukey:.3g}",
            "-" if math.isnan(difference.effect) else f"{difference.effect:+.2f}",
            f"{difference.wins}/{difference.ties}/{difference.losses}",
            _coherent(verdict.coherence),
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


def _interval(low: float, high: float, sign: str = "") -> str:
    return "-" if math.isnan(low) else f"{low:{sign}.4f} to {high:{sign}.4f}"


def _coherent(coherence: Coherence | None) -> str:
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

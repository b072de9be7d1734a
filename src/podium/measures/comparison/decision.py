"""Requirements, and whether systems may ship: each requirement tested, and all of them together."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles
from podium.measures.comparison.one_sided import mean_above, queries_to_show
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slices import (
    QueryProperties,
    Slice,
    column_slices,
    left_out_of_slices,
    property_columns,
    slices_of,
)
from podium.measures.comparison.statistics import differences_of
from podium.measures.compiled import Booleans
from podium.measures.coverage import without_judged
from podium.measures.names import parse_measure
from podium.measures.registry import Measure

DECISION_HEADINGS = (
    "requirement", "system", "slice", "queries", "value", "limit", "p", "shown",
)  # fmt: skip

_FEWEST = 5
"""With fewer queries it is not known how often requirements are shown falsely."""
_LOOK = re.compile(r"\s*(\d{1,4})\s*/\s*(\d{1,4})\s*")
_MOST_LOOKS = 1000


@dataclass(frozen=True)
class Look:
    """One of several planned looks at the same comparison while queries are being judged.

    Every look but one at the end is another chance to be wrong. Each of the planned looks is
    tested at its share of the level; by the union bound all of them together show something false
    at most as often as the level says, however their data overlap. The number of looks has to be
    fixed before the first.

    Attributes:
        number: Which look this is, from 1.
        planned: How many looks there are to be.

    Example:
        >>> Look.parse("2/5").level(0.05)
        0.01
    """

    number: int = 1
    planned: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.planned <= _MOST_LOOKS:
            raise ArgumentError(
                f"look {self.number} of {self.planned}",
                hint=f"Give a look from 1 on, of at most {_MOST_LOOKS}, such as 2/5.",
            )

    @classmethod
    def parse(cls, text: str) -> Look:
        """Read ``2/5``: the second of five planned looks."""
        match = _LOOK.fullmatch(text)
        if match is None:
            raise ArgumentError(
                f"{text[:40]!r} is not a look", hint="Write the second of five as 2/5."
            )
        return cls(int(match[1]), int(match[2]))

    def level(self, level: float) -> float:
        """The level of this look's tests."""
        return level / self.planned


@dataclass(frozen=True)
class RequirementResult:
    """One requirement of one system, over all queries or those of a slice.

    Attributes:
        requirement: What was asked for.
        system: The system.
        slice_name: The slice; empty for all queries.
        queries: How many queries were tested.
        value: The mean difference from the baseline, or the mean itself where the baseline does
            not matter.
        bound: What it must be shown to be beyond.
        limit: The end of the one-sided interval of ``value``, at the level of the test, which has
            to be beyond the bound; NaN where nothing can be tested: for fewer than 5 queries,
            where one has most of the weight, and for ``uncovered`` ones.
        p_value: The p-value of the one-sided test; 1 where nothing can be tested.
        unseen: The chance that losses which would bring ``value`` to the bound are in none of the
            queries, if such a query loses all that the baseline's best one has; the p-value is no
            smaller. Where it is not below the level, there are too few queries to decide.
        corrected: The p-value after Holm's correction over systems.
        shown: Whether that is below the level.
        needed: If it is not shown, how many queries would show it with 80 % power, were the true
            mean, deviation and skewness what they are here; None if it is shown, or if no number of
            queries would, because the mean is on the wrong side of the bound. Where there are as
            many, Holm's correction waits for a system with smaller p-values.
        level: The level of the test.
        uncovered: Which run has no judged document among the first for most of the queries, in
            words; empty if neither has so little coverage.
        only_relevant: Whether only relevant documents are judged: then ``uncovered`` ones, on which
            other documents that are relevant may count as misses, are tested nevertheless.
    """

    requirement: Requirement
    system: str
    slice_name: str
    queries: int
    value: float
    bound: float
    limit: float
    p_value: float
    unseen: float
    corrected: float
    shown: bool
    needed: int | None
    level: float
    uncovered: str = ""
    only_relevant: bool = False

    def written(self, value: float) -> str:
        """A value as tables show it: differences with their sign."""
        sign = "+" if self.requirement.against_baseline else ""
        return "-" if math.isnan(value) else f"{value:{sign}.4f}"

    @property
    def missing(self) -> str:
        """What is missing, in words; empty if it is shown."""
        if self.shown:
            return ""
        if self.uncovered and not self.only_relevant:
            return (
                f"cannot be decided, as {self.uncovered}: compare the document ids, or judge more"
            )
        if self.queries < _FEWEST:
            return f"cannot be decided with fewer than {_FEWEST} queries, there are {self.queries}"
        if math.isnan(self.limit):
            return "queries of which one has most of the weight cannot show it"
        if self.needed is None:
            return "the mean is not beyond the bound: more queries alone will not show it"
        if self.needed <= self.queries:
            return "there are queries enough, but a system with smaller p-values is not shown"
        if self.unseen >= self.level:
            return (
                f"cannot be decided with {self.queries:,} queries: so few may lack the rare bad "
                "ones that would bring the mean to the bound; about "
                f"{self.needed:,} are needed"
            )
        return (
            f"about {self.needed:,} queries would show it (80 % power), there are {self.queries:,}"
        )


@dataclass(frozen=True)
class Decision:
    """Which systems were shown to meet all requirements.

    A system is falsely said to meet all of them only if one that it does not meet is falsely
    shown, so testing each at the level keeps the level for the joint claim (intersection-union
    test), however many requirements and slices there are. Several systems are several claims, which
    Holm's correction keeps to the level together.

    Attributes:
        results: One per requirement, slice and system.
        level: The level of all looks together.
        look: The look that this is.
        ships: For each system, whether all its requirements are shown.
        left_out: What requirements of each slice do not cover, one sentence each.
    """

    results: tuple[RequirementResult, ...]
    level: float
    look: Look
    ships: dict[str, bool]
    left_out: tuple[str, ...] = ()

    @property
    def shown(self) -> bool:
        """Whether every system was shown to meet every requirement."""
        return all(self.ships.values())

    def rows(self) -> list[list[str]]:
        """The results as strings, as every report shows them."""
        return [
            [
                each.requirement.text,
                each.system,
                each.slice_name,
                f"{each.queries:,}",
                each.written(each.value),
                each.written(each.limit),
                f"{each.corrected:.3g}",
                "yes" if each.shown else "no",
            ]
            for each in self.results
        ]

    def missing(self) -> list[str]:
        """What each requirement that is not shown lacks, one sentence each."""
        return [
            f"{each.requirement.text}, {each.system}"
            + (f", {each.slice_name}" if each.slice_name else "")
            + f": {each.missing}."
            for each in self.results
            if not each.shown
        ]

    def notes(self) -> list[str]:
        """How to read the results, one sentence each."""
        level = self.look.level(self.level)
        sentences = [
            f"Each requirement is a one-sided t-test at level {level:g}, corrected for rare large "
            "losses, those that none of the queries has among them; all must be shown, so they "
            "need no further correction (intersection-union test)."
        ]
        if len(self.ships) > 1:
            sentences.append(f"p is Holm-corrected over the {len(self.ships)} systems.")
        if self.look.planned > 1:
            sentences.append(
                f"Look {self.look.number} of {self.look.planned} planned ones, each at its share "
                f"of the level {self.level:g}."
            )
        return sentences

    def warnings(self) -> list[str]:
        """What is not shown, not known and not covered by requirements, one sentence each."""
        unknown = [
            (f"{each.slice_name}: " if each.slice_name else "")
            + f"{each.uncovered}, and only relevant documents are judged: whether it finds nothing "
            "there, or what nobody judged, cannot be known, nor by how much it is better or worse."
            for each in self.results
            if each.uncovered and each.only_relevant
        ]
        return [*self.missing(), *dict.fromkeys(unknown), *self.left_out]


def require(
    comparison: Comparison,
    *requirements: Requirement | str,
    properties: QueryProperties | None = None,
    level: float = 0.05,
    look: Look | str | None = None,
) -> Decision:
    """Test whether each system may ship: whether all requirements are shown.

    A requirement is not met until a one-sided test shows it, so a small or noisy comparison
    does not ship by default; the result says how many queries would be enough. So few that
    the losses which matter may be in none of them show nothing, even of equal systems, and nor do
    fewer than 5, or runs with no judged document among the first for most of the queries.

    Args:
        comparison: The comparison.
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
        >>> comparison = compare("RR", truth, {"old": old, "new": new})
        >>> decision = require(comparison, "RR > baseline")
        >>> decision.shown, round(decision.results[0].value, 3)
        (True, 0.475)
    """
    parsed = [
        each if isinstance(each, Requirement) else Requirement.parse(each) for each in requirements
    ]
    look = Look.parse(look) if isinstance(look, str) else look or Look()
    if not requirements:
        raise ArgumentError("there are no requirements", hint="Give at least one.")
    if not 0 < level < 1:
        raise ArgumentError(f"level is {level}", hint="Give a number in (0, 1), such as 0.05.")
    for system, count in comparison.unanswered.items():
        # Left out, they would make a system that fails on hard queries look better.
        if count:
            raise DataError(
                f"{system!r} has no value for {count:,} of the baseline's queries, which "
                "these conventions leave out of the comparison",
                hint="Complete its run, or choose conventions that count them as 0, such as "
                "podium.",
            )
    for requirement in parsed:
        _check_measure(comparison, requirement)
    slices = None
    if properties is not None:
        slices = slices_of(property_columns(properties, comparison.query_ids))
    parts = [_parts(each, slices, len(comparison.query_ids)) for each in parsed]
    for requirement, chosen in zip(parsed, parts, strict=True):
        for part in chosen:
            _check_bound(comparison, requirement, part)
    tests = [
        (requirement, system, part)
        for system in comparison.systems[1:]
        for requirement, chosen in zip(parsed, parts, strict=True)
        for part in chosen
    ]
    here = look.level(level)
    blank = _without_judged(comparison, parsed)
    results = [
        _testable(_tested(comparison, *test, level=here), comparison, test[2], blank)
        for test in tests
    ]
    corrected = _corrected_over_systems(results, comparison.systems[1:])
    final = tuple(
        _decided(result, p_value, here) for result, p_value in zip(results, corrected, strict=True)
    )
    ships = {
        system: all(result.shown for result in final if result.system == system)
        for system in comparison.systems[1:]
    }
    columns = dict.fromkeys(each.column for each in parsed if each.column and not each.value)
    left_out = [
        sentence
        for column in columns
        for sentence in left_out_of_slices(properties, comparison.query_ids, column)
    ]
    return Decision(final, level, look, ships, tuple(left_out))


def _parts(requirement: Requirement, slices: Sequence[Slice] | None, queries: int) -> list[Slice]:
    """The slices that a requirement is about; one without a name for all queries."""
    if not requirement.column:
        return [Slice("", "", np.ones(queries, np.bool_))]
    if slices is None:
        raise ArgumentError(
            f"{requirement.text!r} is about slices, and none are known",
            hint="Give properties=, a table with a column query_id and this column.",
        )
    return column_slices(slices, requirement.column, requirement.value)


def _check_measure(comparison: Comparison, requirement: Requirement) -> None:
    if requirement.measure not in comparison.values:
        known = ", ".join(map(repr, comparison.measures))
        raise ArgumentError(
            f"{requirement.measure!r} was not compared", hint=f"There are: {known}."
        )


def _check_bound(comparison: Comparison, requirement: Requirement, part: Slice) -> None:
    """Refuse a bound that lets a system without results ship, such as a margin of 5 for 5 %.

    Where the baseline itself is worse than no results, a bound may well be so: of Unjudged, or of
    gains below 0.
    """
    every_weight = comparison.query_weights
    weights = None if every_weight is None else every_weight[part.members]
    baseline = comparison.values[requirement.measure][:, 0]
    mean, of_nothing = (
        float(np.average(values[part.members], weights=weights))
        for values in (baseline, comparison.empty_values[requirement.measure])
    )
    sign = 1.0 if requirement.measure.larger_is_better else -1.0
    bound = requirement.factor * mean + requirement.offset
    if sign * (of_nothing - bound) > 0 >= sign * (of_nothing - mean):
        side, than = ("above", ">") if sign > 0 else ("below", "<")
        raise ArgumentError(
            f"{requirement.text!r} would be met by a system that finds nothing"
            + (f" for {part.name}" if part.column else "")
            + f": the baseline's mean is {mean:.4f}",
            hint=f"Give a bound {side} {of_nothing:g}, or ask for a gain: "
            f"'{requirement.name} {than} baseline'.",
        )


def _tested(
    comparison: Comparison, requirement: Requirement, system: str, part: Slice, *, level: float
) -> RequirementResult:
    table = comparison.values[requirement.measure][part.members]
    values: Doubles = table[:, comparison.systems.index(system)]
    if requirement.against_baseline:
        values = differences_of(values, requirement.factor * table[:, 0])
    weights = comparison.query_weights
    # Smaller losses are better: their negative has to be above the bound's.
    sign = 1.0 if requirement.measure.larger_is_better else -1.0
    # A query that is not among these can lose what a system without results would lose here.
    nothing = comparison.empty_values[requirement.measure][part.members]
    lost = sign * (nothing - requirement.factor * table[:, 0])
    test = mean_above(
        sign * values,
        sign * requirement.offset,
        level,
        float(min(lost.min(), (sign * values).min())),
        None if weights is None else weights[part.members],
    )
    systems = len(comparison.systems) - 1
    # A percentage is tested on differences from that share of the baseline which it leaves, and
    # shown as a difference from the baseline, as every other requirement is.
    shift = 0.0
    if requirement.against_baseline:
        every = None if weights is None else weights[part.members]
        shift = (requirement.factor - 1.0) * float(np.average(table[:, 0], weights=every))
    return RequirementResult(
        requirement=requirement,
        system=system,
        slice_name=part.name if part.column else "",
        queries=len(values),
        value=sign * test.mean + shift,
        bound=requirement.offset + shift,
        limit=sign * test.low + shift,
        p_value=test.p_value,
        unseen=test.unseen,
        corrected=test.p_value,
        shown=False,
        # The first system of Holm's correction, which the others wait for, has this level.
        needed=queries_to_show(test, sign * requirement.offset, level / systems),
        level=level,
    )


def _without_judged(
    comparison: Comparison, requirements: Sequence[Requirement]
) -> dict[tuple[Measure, str], Booleans]:
    """For each measure and system, the queries whose first documents are all unjudged."""
    source = comparison.source
    if source is None:
        return {}
    return {
        (measure, system): without_judged(inputs, measure, source.conventions)[source.keep]
        for measure in {each.measure for each in requirements}
        for system, inputs in zip(comparison.systems, source.inputs, strict=True)
    }


def _testable(
    result: RequirementResult,
    comparison: Comparison,
    part: Slice,
    blank: Mapping[tuple[Measure, str], Booleans],
) -> RequirementResult:
    """The result as it is, or one that shows nothing of too few or uncovered queries."""
    requirement, system = result.requirement, result.system
    for name in [comparison.baseline, system] if requirement.against_baseline else [system]:
        if (requirement.measure, name) in blank:
            count = int(blank[requirement.measure, name][part.members].sum())
            if 2 * count > result.queries:
                uncovered = (
                    f"{name} has no judged document among the first for {count:,} of "
                    f"{result.queries:,} queries"
                )
                # A query without a hit looks the same, as most of MS MARCO do.
                only_relevant = comparison.coverage[name].only_relevant
                result = replace(result, uncovered=uncovered, only_relevant=only_relevant)
                break
    undecided = bool(result.uncovered) and not result.only_relevant
    if not undecided and result.queries >= _FEWEST:
        return result
    needed = None if undecided or result.needed is None else max(result.needed, _FEWEST)
    return replace(result, limit=math.nan, p_value=1.0, needed=needed)


def _decided(result: RequirementResult, p_value: float, level: float) -> RequirementResult:
    shown = p_value < level
    return replace(result, corrected=p_value, shown=shown, needed=None if shown else result.needed)


def _corrected_over_systems(
    results: Sequence[RequirementResult], systems: Sequence[str]
) -> list[float]:
    """Holm's correction of each system's joint p-value, the largest of its requirements'.

    Each p-value is multiplied as its system's joint one is, and is at least the corrected joint
    p-value of the systems before it, so the largest of a system's is its corrected joint p-value.
    """
    joint = {
        system: max(each.p_value for each in results if each.system == system) for system in systems
    }
    before, least, factors = 0.0, {}, {}
    for rank, system in enumerate(sorted(systems, key=joint.__getitem__)):
        least[system], factors[system] = before, len(systems) - rank
        before = max(before, joint[system] * factors[system])
    return [
        min(1.0, max(least[each.system], factors[each.system] * each.p_value)) for each in results
    ]


_LONGEST = 500
_NUMBER = r"\d{0,30}\.?\d{1,30}(?:[eE][+-]?\d{1,3})?"
_SIGN = "[-+\u2212\u2013]"
_PLAIN = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2265": ">=", "\u2264": "<="})
"""Signs of a text processor, as they are typed."""
_TEXT = re.compile(
    r"\s*(?P<measure>[^<>\u2264\u2265]+?)(?<![=\s])\s*(?P<relation>[<>]=?|[\u2264\u2265])\s*"
    rf"(?:(?P<baseline>baseline)(?:\s*(?P<sign>{_SIGN})\s*(?P<offset>{_NUMBER})\s*(?P<percent>%)?)?"
    rf"|(?P<bound>{_SIGN}?{_NUMBER}))"
    r"(?:\s+in\s+(?:each\s+(?P<each>.+?)|(?P<column>[^=]+?)\s*=\s*(?P<value>.+?)))?\s*",
    re.DOTALL,
)
_HINT = (
    "Write 'nDCG@10 >= baseline - 0.005', 'nDCG@10 > baseline', 'nDCG@10 >= baseline - 1%' or "
    "'nDCG@10 >= 0.4', and for some queries 'in each COLUMN' or 'in COLUMN=VALUE' after it"
)


class RequirementText(NamedTuple):
    """A requirement as it is written, of any name: what `Requirement` has, and the relation.

    Example:
        >>> RequirementText.parse("click_rate >= baseline - 1%")[:4]
        ('click_rate', '>=', 0.99, 0.0)
    """

    name: str
    relation: str
    factor: float
    offset: float
    column: str
    value: str

    @classmethod
    def parse(cls, text: str) -> RequirementText:
        """Read a requirement; signs may be those of a text processor."""
        if not isinstance(text, str):
            raise ArgumentError(
                f"a requirement is a {type(text).__name__}", hint=f"Give text. {_HINT}."
            )
        match = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ArgumentError(f"{text[:80]!r} is not a requirement", hint=f"{_HINT}.")
        return cls(
            match["measure"], match["relation"].translate(_PLAIN), *_bound(match),
            match["each"] or match["column"] or "", match["value"] or "",
        )  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """A bound that a system's mean must be shown to be on the right side of.

    The bound is ``factor`` times the baseline's mean plus ``offset``. A requirement is shown by a
    test, so the bound itself is not enough: ``>`` and ``>=`` ask for the same.

    Attributes:
        text: The text as it was written.
        name: The measure as it was written, which may name a tool's conventions.
        measure: The measure.
        factor: 1 for the baseline, 0 for a bound of its own, 0.99 for ``baseline - 1%``.
        offset: Added to it; its negative is the margin of a test for non-inferiority.
        column: The column of the queries whose slices are meant; empty for all queries.
        value: The slice; empty for each slice of the column.

    Example:
        >>> requirement = Requirement.parse("nDCG@10 >= baseline - 0.005")
        >>> requirement.measure, requirement.factor, requirement.offset
        (nDCG@10, 1.0, -0.005)
        >>> Requirement.parse("TopKLoss(k=3) <= baseline + 2% in each language").column
        'language'
    """

    text: str
    name: str
    measure: Measure
    factor: float
    offset: float
    column: str = ""
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a requirement as it is written; signs may be those of a text processor."""
        parts = RequirementText.parse(text)
        measure = parse_measure(parts.name)
        relation, smaller = parts.relation, parts.relation.startswith("<")
        if smaller == measure.larger_is_better:
            better = "larger" if measure.larger_is_better else "smaller"
            right = ">=" if measure.larger_is_better else "<="
            raise ArgumentError(
                f"{text.strip()!r}: of {measure!r} {better} values are better",
                hint=f"Write {right} instead of {relation}.",
            )
        factor, offset = parts.factor, parts.offset
        if relation.endswith("=") and (factor, offset) == (1.0, 0.0):
            margin, strict = ("+", "<") if smaller else ("-", ">")
            raise ArgumentError(
                f"{text.strip()!r} has no margin: that two systems are equal cannot be shown",
                hint=f"Allow for a loss that does not matter ('{parts.name} "
                f"{relation} baseline {margin} 0.005'), or ask for a gain "
                f"('{parts.name} {strict} baseline').",
            )
        return cls(
            text=" ".join(text.split()),
            name=parts.name,
            measure=measure,
            factor=factor,
            offset=offset,
            column=parts.column,
            value=parts.value,
        )

    @property
    def against_baseline(self) -> bool:
        """Whether the bound depends on the baseline."""
        return self.factor != 0.0


def _bound(match: re.Match[str]) -> tuple[float, float]:
    if match["baseline"] is None:
        factor, offset = 0.0, float(match["bound"].translate(_PLAIN))
    else:
        change = float(f"{(match['sign'] or '+').translate(_PLAIN)}{match['offset'] or 0}")
        factor, offset = (1.0 + change / 100, 0.0) if match["percent"] else (1.0, change)
    if not (math.isfinite(factor) and math.isfinite(offset)):
        raise ArgumentError(f"the bound of {match[0].strip()[:80]!r} is infinite", hint=f"{_HINT}.")
    if match["baseline"] is not None and factor <= 0.0:
        raise ArgumentError(
            f"{match[0].strip()[:80]!r} leaves nothing of the baseline",
            hint="Give a percentage below 100.",
        )
    return factor, offset

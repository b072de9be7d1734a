"""Reports of online comparisons: requirements, tables, JSON, and a page with the course of time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from podium.errors import ArgumentError
from podium.measures.comparison.decision import RequirementText
from podium.online.comparison import BROKEN, PREFERENCE, OnlineReport, OnlineResult, seconds_text
from podium.online.sequence import OnlineInterval, difference
from podium.reports.charts import Line, line_chart
from podium.reports.document import ReportDocument, ReportSection

_HEADINGS = (
    "metric", "slice", "old", "new", "difference", "low", "high", "relative low", "relative high",
    "searches", "clients", "past saves",
)  # fmt: skip


@dataclass(frozen=True)
class OnlineRequirement:
    """A requirement, and whether it is shown.

    Attributes:
        text: What was asked for.
        slice_name: The slice; empty for all.
        beyond: How far the new ranking is beyond the bound, with the interval at any time.
        shown: Whether all of that interval is beyond the bound.
    """

    text: str
    slice_name: str
    beyond: OnlineInterval
    shown: bool


def require_online(report: OnlineReport, texts: Sequence[str]) -> list[OnlineRequirement]:
    """Return whether requirements are shown, in the language of offline gates.

    ``"new > old"`` with the names of the rankings is about the first metric. A claim that all are
    shown is wrong at most as often as an interval fails: no correction is needed.

    Args:
        report: The comparison.
        texts: The requirements.

    Example:
        >>> from podium.online import compare_interleaved
        >>> rows = {"search_id": list(range(400)), "team": ["b", "b", "b", "a"] * 100,
        ...         "clicked": [True] * 400}
        >>> report = compare_interleaved(rows)
        >>> [each.shown for each in require_online(report, ["b > a", "preference > 0.6"])]
        [True, False]
    """
    results = []
    for text in texts:
        winner = re.fullmatch(r"\s*(.+?)\s*>\s*(.+?)\s*", text)
        names = None if winner is None else (winner[1], winner[2])
        if names in ((report.new, report.old), (report.old, report.new)):
            value = report.first.difference
            if report.first.metric == "abandonment":
                raise ArgumentError(
                    f"{text.strip()!r}: less abandonment is better",
                    hint="Write 'abandonment < baseline'.",
                )
            ahead = value if names == (report.new, report.old) else _negative(value)
            shown = ahead.low > 0 and not report.is_broken
            results.append(OnlineRequirement(text.strip(), "", ahead, shown))
            continue
        parts = RequirementText.parse(text)
        chosen = [each for each in report.results if each.metric == parts.name]
        if not chosen:
            known = dict.fromkeys(each.metric for each in report.results)
            raise ArgumentError(
                f"{text.strip()!r}: there is no metric {parts.name!r}",
                hint=f"Name {', '.join(known)}, or write '{report.new} > {report.old}'.",
            )
        if parts.column and parts.column != report.slices:
            raise ArgumentError(
                f"{text.strip()!r}: slices are not of {parts.column}",
                hint=f"Add --slices {parts.column}.",
            )
        for result in chosen:
            if bool(parts.column) != bool(result.slice_name):
                continue
            if parts.value and parts.value != result.slice_name:
                continue
            beyond = _beyond(result, parts, report)
            shown = beyond.low > 0 and not report.is_broken
            results.append(OnlineRequirement(text.strip(), result.slice_name, beyond, shown))
        if not results or results[-1].text != text.strip():
            raise ArgumentError(f"{text.strip()!r}: there is no such slice")
    return results


def _beyond(result: OnlineResult, parts: RequirementText, report: OnlineReport) -> OnlineInterval:
    if result.metric == PREFERENCE:
        value = result.difference
        value = replace(
            value, value=value.value - parts.offset, low=value.low - parts.offset,
            high=value.high - parts.offset,
        )  # fmt: skip
    else:
        value = difference(
            *result.sums, factor=parts.factor, offset=parts.offset, level=report.level,
            tuned=report.tuned,
        )  # fmt: skip
    return _negative(value) if parts.relation.startswith("<") else value


def _negative(value: OnlineInterval) -> OnlineInterval:
    return replace(value, value=-value.value, low=-value.high, high=-value.low)


def result_table(
    report: OnlineReport, without: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headings and the results as texts, without columns that have nothing."""
    rows = [
        (
            each.metric, each.slice_name, number(each.old), number(each.new),
            number(each.difference.value, "+"), number(each.difference.low, "+"),
            number(each.difference.high, "+"),
            "-" if each.relative is None else percent(each.relative.low),
            "-" if each.relative is None else percent(each.relative.high),
            f"{each.difference.searches:,}", f"{each.difference.clients:,}",
            f"{each.gain:.0%}" if each.gain else "-",
        )
        for each in report.results
    ]  # fmt: skip
    kept = [
        at
        for at, name in enumerate(_HEADINGS)
        if name not in without and any(row[at] not in ("", "-") for row in rows)
    ]
    return tuple(_HEADINGS[at] for at in kept), [tuple(row[at] for at in kept) for row in rows]


def facts(report: OnlineReport) -> dict[str, str]:
    """Return what else is known: how it was compared, the split of clients and novelty."""
    old, new = report.clients
    known = {
        "kind": report.kind + (f" {report.experiment}" if report.experiment else ""),
        "rankings": f"new {report.new}, old {report.old}",
        "intervals": f"{report.level:.0%} at every look, clustered by "
        + ("client" if report.by_client else "search"),
    }
    if report.kind == "A/B test":
        odds = report.evidence
        known["clients"] = f"{report.old} {old:,}, {report.new} {new:,}" + (
            "; the split is broken" if odds >= BROKEN
            else f"; evidence of a broken split {odds:.2g}, which is broken from {BROKEN:,.0f} on"
        )  # fmt: skip
    for ledger, counts in report.imported.items():
        known[f"import, {ledger}"] = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    if report.novelty is not None:
        gap = report.novelty
        known["first week minus later"] = (
            f"{gap.value:+.4f} ({gap.low:+.4f} to {gap.high:+.4f})"
            + (": the effect changes" if gap.decided else "")
        )
    return known


def online_document(
    report: OnlineReport, requirements: Sequence[OnlineRequirement] = ()
) -> ReportDocument:
    """Return the report as sections, for Markdown or a page."""
    first = report.first.difference
    interval = f"{report.first.metric}: {number(first.value, '+')}"
    if math.isfinite(first.low):
        interval += f", {number(first.low, '+')} to {number(first.high, '+')} at every look"
    headings, rows = result_table(report)
    sections = [
        ReportSection(
            "Verdict", (report.verdict, f"{interval}.", _meaning(report)), bullets=report.warnings
        ),
        ReportSection("Results", headings=headings, rows=tuple(rows)),
    ]
    if requirements:
        sections.append(ReportSection(
            "Requirements", headings=("requirement", "slice", "beyond it by", "low", "shown"),
            rows=tuple(requirement_rows(requirements)),
        ))  # fmt: skip
    looks = [each for each in report.course if math.isfinite(each.difference.low)]
    if looks:
        every = -(-len(looks) // 12)
        course = tuple(
            (
                seconds_text(each.time), number(each.difference.value, "+"),
                number(each.difference.low, "+"), number(each.difference.high, "+"),
                f"{each.difference.searches:,}",
            )
            for each in looks[::-1][::every][::-1]
        )  # fmt: skip
        sections.append(ReportSection(
            "Over time",
            (f"{report.first.metric}, with the interval that holds at all these looks together.",),
            ("until", "difference", "low", "high", "searches"), course, figure=_chart(report),
        ))  # fmt: skip
    sections += [
        ReportSection("Conditions", headings=("what", "value"), rows=tuple(facts(report).items())),
        ReportSection(
            "Counts", ("What became of all that was read.",), ("of", "count"),
            tuple((name, f"{count:,}") for name, count in report.counts.items()),
        ),
    ]  # fmt: skip
    return ReportDocument(f"{report.new} against {report.old}", tuple(sections))


def _meaning(report: OnlineReport) -> str:
    """Return what the first difference is, in a sentence."""
    if report.kind == "A/B test":
        return f"It is the mean of a row with {report.new} minus that of a row with {report.old}."
    if report.experiment.startswith("balanced"):
        return (
            f"It is the clicks per search that {report.new} would get beyond those of {report.old}."
        )
    return f"It is the share of searches that {report.new} wins minus the share of {report.old}."


def requirement_rows(requirements: Iterable[OnlineRequirement]) -> list[tuple[str, ...]]:
    """Return requirements as texts."""
    return [
        (
            each.text, each.slice_name, number(each.beyond.value, "+"),
            number(each.beyond.low, "+"), "yes" if each.shown else "no",
        )
        for each in requirements
    ]  # fmt: skip


def _chart(report: OnlineReport) -> str:
    looks = [each for each in report.course if math.isfinite(each.difference.low)]
    values = np.array([(e.difference.value, e.difference.low, e.difference.high) for e in looks])
    # The first intervals are so wide that the later ones would be a line.
    reach = 3 * max(float(np.abs(values[-1]).max()), 1e-9)
    shown = np.clip(values, -reach, reach)
    low = min(0.0, float(shown.min()))
    line = Line(
        f"{report.new} minus {report.old}", shown[:, 0].tolist(), "var(--up)", shown[:, 1].tolist(),
        shown[:, 2].tolist(),
    )  # fmt: skip
    steps = [seconds_text(each.time)[5:10] for each in looks]
    return line_chart(f"{report.first.metric} over time", steps, [line], floor=low)


def online_json(
    report: OnlineReport, requirements: Sequence[OnlineRequirement] = ()
) -> dict[str, Any]:
    """Return the report as values of JSON; numbers that are not known are null."""
    content = asdict(report)
    for each in content["results"]:
        del each["sums"]
    content |= {
        "verdict": report.verdict,
        "course": [{"time": time, "difference": asdict(value)} for time, value in report.course],
        "requirements": [asdict(each) for each in requirements],
    }
    return {name: without_nan(value) for name, value in content.items()}


def without_nan(value: Any) -> Any:
    """Return what JSON can say: null for numbers that are none."""
    if isinstance(value, dict):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number(value: float, sign: str = "") -> str:
    """Return a number as tables show it."""
    return f"{value:{sign}.4f}" if math.isfinite(value) else "-"


def percent(value: float) -> str:
    """Return a share as tables show it."""
    return f"{value:+.1%}" if math.isfinite(value) else "-"

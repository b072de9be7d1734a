"""Reports of tuned fusions: tables, JSON, and a document with the frontier as a picture."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from podium.hybrid.fusion import Fusion
from podium.hybrid.objectives import Balance
from podium.hybrid.tuning import HybridTuning
from podium.measures.comparison.decision import DECISION_HEADINGS
from podium.measures.comparison.statistics import Difference
from podium.rankers import Ranker
from podium.reports.charts import COLORS, Line, line_chart
from podium.reports.document import ReportDocument, ReportSection

HEADINGS = ("chosen by", "held out", "in sample", "optimism", "gain", "low", "high", "p")
FRONTIER = ("share", "objective", "gain", "low", "high", "measure", "price", "low", "high", "shown")

HELD_OUT = (
    "held out: the mean over queries that chose nothing; in sample: over those that chose; "
    "gain: of the choice. "
    "Intervals are 95 %, p is Holm-corrected; both count the optimism as a second error."
)


def tuning_rows(tuning: HybridTuning) -> list[tuple[str, ...]]:
    """Return the choice and the baselines as texts."""
    return [
        (
            row.name, f"{row.held_out:.4f}", f"{row.in_sample:.4f}", f"{row.optimism:+.4f}",
            *(("", "", "", "") if row.gain is None else (*_ends(row.gain), f"{row.p_value:.3g}")),
        )
        for row in tuning.rows
    ]  # fmt: skip


def frontier_rows(balance: Balance) -> list[tuple[str, ...]]:
    """Return the frontier as texts."""
    objective, value = balance.baseline
    rows: list[tuple[str, ...]] = [
        ("0", f"{objective:.4g}", "", "", "", f"{value:.4f}", "", "", "", "")
    ]
    for each in balance.shares:
        shown = "-" if each.decision is None else "yes" if each.shown else "no"
        rows.append((
            f"{each.share:g}", f"{each.objective:.4g}", *_ends(each.gain, ".4g"),
            f"{each.value:.4f}", *_ends(each.price), shown,
        ))  # fmt: skip
    return rows


def verdict(result: HybridTuning | Balance) -> str:
    """Return what is chosen and what it gains, in a sentence."""
    if isinstance(result, Balance):
        return result.verdict
    row = result.rows[0]
    others = [each for each in result.rows if each.gain is not None]
    best = max(others, key=lambda each: each.held_out * _sign(result))
    assert best.gain is not None
    behind = result.behind()
    mean, low, high = _ends(best.gain)
    gain = mean if low == "-" else f"{mean} ({low} to {high})"
    return (
        f"{result.fusion}. {row.held_out:.4f} {result.measure!r} on held-out queries, "
        f"{gain} against {best.name}, the best of the others"
        + (f"; significantly behind {', '.join(behind)}." if behind else ".")
    )


def per_query_verdict(tuning: HybridTuning) -> str:
    """Return whether weights per query ship, in a sentence; empty if they were not asked for."""
    if tuning.per_query is None:
        return ""
    result = tuning.per_query.results[0]
    ships = "ship" if tuning.per_query.shown else f"do not ship: {result.missing}"
    return f"Weights per query gain {result.written(result.value)} on held-out queries and {ships}."


def warnings(result: HybridTuning | Balance) -> list[str]:
    """Return what was left out, a sentence for each, and what requirements lack."""
    sentences = [
        f"{count:,} {name}."
        for name, count in result.counts.items()
        if count and name != "queries" and name != "queries of the lists without judgments"
    ]
    sentences += result.coverage
    if isinstance(result, Balance):
        first = next((each for each in result.shares if not each.shown), None)
        if first is not None and first.decision is not None:
            lacks = first.decision.warnings()
            sentences += [f"Share {first.share:g}: {each}" for each in lacks]
    return sentences


def hybrid_document(result: HybridTuning | Balance) -> ReportDocument:
    """Return a report as sections, for Markdown or a page."""
    model = _model(result)
    sections = [ReportSection("Verdict", (verdict(result),), bullets=tuple(warnings(result)))]
    if isinstance(model, Fusion):
        weights = zip(model.lists, model.weights, strict=True)
        rows = tuple((name, f"{weight:.4f}") for name, weight in weights)
        sections.append(ReportSection("Fusion", (str(model),), ("list", "weight"), rows))
    else:
        sections.append(ReportSection("Ranker", (repr(model),)))
    if isinstance(result, HybridTuning):
        sections.append(
            ReportSection("Held-out queries", (HELD_OUT,), HEADINGS, tuple(tuning_rows(result)))
        )
        if result.per_query is not None:
            sections.append(ReportSection("Weights per query", (per_query_verdict(result),)))
        folds = tuple((str(at + 1), str(each)) for at, each in enumerate(result.folds))
        sections.append(ReportSection("Choice of each fold", (), ("fold", "choice"), folds))
    else:
        sections.append(ReportSection(
            "Frontier",
            (
                f"{result.column} is its mean over the first {result.depth} documents, measure is "
                f"{result.measure!r}, both on held-out queries, with 95 % intervals of the "
                "differences from the baseline. Shares are tested in turn, up to the first that is "
                "not shown. The price in the verdict is of shares that other queries chose.",
            ),
            FRONTIER, tuple(frontier_rows(result)), figure=frontier_chart(result),
        ))  # fmt: skip
        tested = [each.decision for each in result.shares if each.decision is not None]
        tests = tuple(tuple(row) for decision in tested for row in decision.rows())
        notes = tuple(tested[0].notes())
        sections.append(ReportSection("Requirements", notes, tuple(DECISION_HEADINGS), tests))
    sections.append(
        ReportSection(
            "Counts", (), ("of", "count"), tuple((n, f"{c:,}") for n, c in result.counts.items())
        )
    )
    return ReportDocument("Hybrid search", tuple(sections))


def frontier_chart(balance: Balance) -> str:
    """Draw the frontier: the change of both in percent of the baseline, with intervals."""
    lines = []
    for name, start, differences, color in (
        (balance.column, balance.baseline[0], [s.gain for s in balance.shares], COLORS[0]),
        (repr(balance.measure), balance.baseline[1], [s.price for s in balance.shares], COLORS[1]),
    ):
        unit = 100 / (abs(start) or 1.0)
        known = [
            tuple(unit * (end if math.isfinite(end) else each.mean) for end in interval_of(each))
            for each in differences
        ]
        means, lows, highs = (list(each) for each in zip(*known, strict=True))
        lines.append(Line(f"{name}, change in %", means, color, lows, highs))
    floor = min(0.0, *(low for line in lines for low in line.low or ()))
    return line_chart(
        "What each share gains and costs", [f"{s.share:g}" for s in balance.shares], lines,
        floor=floor,
    )  # fmt: skip


def hybrid_json(result: HybridTuning | Balance) -> dict[str, Any]:
    """Return a report as values of JSON; numbers that are not known are null."""
    model = _model(result)
    known = {}
    if isinstance(model, Fusion):
        fusion = {name: value for name, value in asdict(model).items() if value is not None}
        known = {"fusion": fusion}
    content: dict[str, Any] = {
        **known,
        "measure": repr(result.measure),
        "verdict": verdict(result),
        "counts": dict(result.counts),
        "warnings": warnings(result),
    }
    if isinstance(result, HybridTuning):
        content["held_out"] = [
            {
                "name": row.name, "fusion": str(row.fusion), "held_out": row.held_out,
                "in_sample": row.in_sample, "optimism": row.optimism, "p_holm": row.p_value,
                "gain": None if row.gain is None else _numbers(row.gain),
            }
            for row in result.rows
        ]  # fmt: skip
        content["significantly_behind"] = result.behind()
        content["folds"] = [str(each) for each in result.folds]
        if result.per_query is not None:
            content["per_query"] = per_query_verdict(result)
    else:
        content["share"] = None if result.chosen is None else result.chosen.share
        content["price"] = result.price
        content["baseline"] = list(result.baseline)
        content["frontier"] = [
            {
                "share": each.share, "objective": each.objective, "gain": _numbers(each.gain),
                "value": each.value, "price": _numbers(each.price),
                "shown": None if each.decision is None else each.shown,
            }
            for each in result.shares
        ]  # fmt: skip
    return {name: _without_nan(value) for name, value in content.items()}


def _model(result: HybridTuning | Balance) -> Fusion | Ranker:
    return result.model if isinstance(result, Balance) else result.fusion


def interval_of(difference: Difference) -> tuple[float, float, float]:
    """Return the mean of a difference and the ends of its interval."""
    return difference.mean, difference.low, difference.high


def _numbers(difference: Difference) -> dict[str, float]:
    return dict(zip(("mean", "low", "high"), interval_of(difference), strict=True))


def _ends(difference: Difference, form: str = ".4f") -> tuple[str, ...]:
    return tuple(f"{end:+{form}}" if math.isfinite(end) else "-" for end in interval_of(difference))


def _sign(tuning: HybridTuning) -> float:
    return 1.0 if tuning.measure.larger_is_better else -1.0


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

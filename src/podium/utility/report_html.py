"""A utility report as one self-contained HTML file: tables, notes and SVG charts."""

from __future__ import annotations

from html import escape

import numpy as np

from podium.data.gains import log2_discounts
from podium.kernels import Doubles
from podium.reports.charts import COLORS, Line, line_chart
from podium.reports.page import Cell, report_page, report_table
from podium.utility.report import BASELINES, UtilityReport
from podium.utility.systems import Flips
from podium.utility.utility_tables import in_units, usual_table

_STYLE = """
h3 { margin: 4px 0 10px; } th, td { padding: 4px 10px; }
.cards { margin-top: 16px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 460px), 1fr)); }
"""
LEARNED, FIRST, SECOND = COLORS[:3]
_MOST_SYSTEM_PAIRS = 100
_CHOICES = ("much better left", "better left", "the same", "better right", "much better right")


def report_html(result: UtilityReport) -> str:
    """Format a report as a self-contained HTML page.

    Example:
        >>> from podium.utility import RankingPreferences, utility_report
        >>> rankings = np.random.default_rng(0).integers(0, 3, (2, 40, 4))
        >>> choices = np.sign(rankings[0].sum(axis=1) - rankings[1].sum(axis=1))
        >>> pairs = RankingPreferences.from_arrays(*rankings, choices)
        >>> report_html(utility_report(pairs, resamples=20, test_position=False))[:15]
        '<!doctype html>'
    """
    learned = result.learned
    counts = ", ".join(
        f"{count} {words}" for count, words in zip(result.counts, _CHOICES, strict=True) if count
    )
    parts = [
        f"<p>{result.pairs:,} pairs of rankings: {escape(counts)}. {len(learned.gains)} grades, "
        f"{learned.depth} positions, C = {learned.C:g}.</p>",
        f"<p>The measure: <code>{escape(repr(learned.measure))}</code></p>",
        "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in result.notes()) + "</ul>",
        "<h2>What was learned</h2><div class='cards'>",
        f"<div class='card'><h3>Gain of each grade, the highest being 1</h3>{_gains(result)}</div>",
        "<div class='card'><h3>Discount of each position, the first being 1</h3>"
        f"{_discounts(result)}</div></div>",
        "<h2>Agreement with held-out preferences</h2>",
        "<p>Strict preferences only. The learned utility is judged on queries it was not learned "
        "from; a pair without any lead counts half.</p>",
        _accuracies(result),
        "<div class='cards'><div class='card'><h3>By the difference of the usual DCG, fifths of "
        f"the preferences, closest pairs first</h3>{_bands(result)}</div></div>",
    ]
    if result.flips is not None:
        parts += ["<h2>Comparisons of systems</h2>", _systems(result.flips)]
    parts += ["<h2>Utility of each grade at each position</h2>", _table(result)]
    return report_page("Gains and discounts from preferences", parts, style=_STYLE)


def _gains(result: UtilityReport) -> str:
    gains = result.learned.gains
    ends = result.intervals.gains
    grades = len(gains)
    usual = {
        name: in_units(usual_table(1, grades, kind)[0], np.ones(1))[0].tolist()
        for name, kind in BASELINES.items()
    }
    return line_chart(
        "Gain of each grade",
        [f"grade {grade}" for grade in range(grades)],
        [
            Line("2^l - 1", usual["2^l - 1"], FIRST, dashed=True),
            Line("l", usual["l"], SECOND, dashed=True),
            _learned_line(gains, ends, result.intervals.level),
        ],
    )


def _discounts(result: UtilityReport) -> str:
    ranks = np.arange(1, result.learned.depth + 1)
    return line_chart(
        "Discount of each position",
        [str(rank) for rank in ranks],
        [
            Line("1/log2(1 + rank)", log2_discounts(ranks).tolist(), FIRST, dashed=True),
            _learned_line(
                result.learned.discounts, result.intervals.discounts, result.intervals.level
            ),
        ],
    )


def _learned_line(values: Doubles, ends: Doubles, level: float) -> Line:
    name = f"learned, {level:.0%} interval"
    return Line(name, values.tolist(), LEARNED, ends[0].tolist(), ends[1].tolist())


def _accuracies(result: UtilityReport) -> str:
    rows = []
    for index, each in enumerate(result.accuracies):
        gap = Cell("-")
        if index:
            tone = "up" if each.ahead[1] > 0 else "down" if each.ahead[2] < 0 else ""
            points = [f"{100 * value:+.1f}" for value in each.ahead]
            gap = Cell(f"{points[0]} ({points[1]} to {points[2]})", tone)
        rows.append((each.name, f"{each.share:.1%}", f"{each.low:.1%} to {each.high:.1%}", gap))
    headings = ("utility", "agrees with", "95 % interval", "learned is ahead by (points)")
    return report_table(headings, rows)


def _bands(result: UtilityReport) -> str:
    colors = (LEARNED, FIRST, SECOND)
    lines = [
        Line(each.name, np.nan_to_num(each.bands).tolist(), color, dashed=index > 0)
        for index, (each, color) in enumerate(zip(result.accuracies, colors, strict=True))
    ]
    names = ["closest", "2nd", "3rd", "4th", "farthest"]
    return line_chart("Agreement by difference of DCG", names, lines)


def _systems(flips: Flips) -> str:
    ordered = sorted(flips.pairs, key=lambda pair: (not pair.flips, abs(pair.usual)))
    rows = [
        (
            pair.one,
            pair.other,
            f"{pair.usual:+.4f}",
            f"{pair.learned:+.4f}",
            Cell("flips", "down") if pair.flips else "stays",
            f"{pair.queries_flipped:.0%}",
            f"{pair.keeps:.0%}",
        )
        for pair in ordered[:_MOST_SYSTEM_PAIRS]
    ]
    usual = repr(flips.usual_measure)
    headings = ("system", "against", usual, "learned", "verdict", "queries that turn", "coherent")
    left_out = len(ordered) - _MOST_SYSTEM_PAIRS
    more = f"<p>{left_out} more are not shown.</p>" if left_out > 0 else ""
    return (
        "<p>Differences of means by the usual measure and by the learned one. <b>coherent</b> is "
        "the share of a family of sensible gains and discounts that keeps the usual verdict.</p>"
        f"{report_table(headings, rows)}{more}"
    )


def _table(result: UtilityReport) -> str:
    values = result.learned.table / result.learned.table.max()
    low, high = result.intervals.table
    headings = ["position", *(f"grade {grade}" for grade in range(values.shape[1]))]
    rows: list[list[str | Cell]] = [
        [
            str(rank + 1),
            *(
                Cell(f"{value:.3f}", title=f"{low[rank, grade]:.3f} to {high[rank, grade]:.3f}")
                for grade, value in enumerate(values[rank])
            ),
        ]
        for rank in range(len(values))
    ]
    return (
        "<p>In units of the highest; intervals under the pointer.</p>"
        f"{report_table(headings, rows)}"
    )

"""A comparison as one HTML file that needs nothing else: tables, notes and plots in SVG."""

from __future__ import annotations

from html import escape

import numpy as np

from podium.measures.coherence import BASES, STEEPNESS
from podium.measures.comparison import HEADINGS, Comparison, Verdict
from podium.measures.comparison_text import notes
from podium.measures.svg import curve_chart, difference_chart, grid_chart

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5d6675; --line: #d9dee7; --page: #fff;
  --up: #1b7f5c; --down: #b3423a; --card: #f6f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaf0; --soft: #a0a9b8; --line: #3a4250;
  --page: #14181f; --up: #4cc39a; --down: #ef8178; --card: #1c222c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  margin: 0 auto; max-width: 1180px; padding: 24px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 36px 0 8px; }
h3 { font-size: 15px; margin: 18px 0 6px; }
p, li { color: var(--soft); max-width: 80ch; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font: 13px/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { text-align: right; font-weight: 600; color: var(--soft); }
td { text-align: right; } th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
tr.first td { border-top: 2px solid var(--line); }
.up { color: var(--up); } .down { color: var(--down); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(340px, 1fr)); gap: 16px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
"""


def as_html(found: Comparison) -> str:
    """A comparison as a page of its own; nothing in it is loaded from elsewhere."""
    title = (
        " and ".join(found.systems) if len(found.systems) < 3 else f"{len(found.systems)} systems"
    )
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Comparison of {escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Comparison of {escape(title)}</h1>",
        f"<p>{len(found.query_ids)} queries, baseline <b>{escape(found.baseline)}</b>.</p>",
        _main_table(found),
        "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes(found)) + "</ul>",
    ]
    if found.curves:
        parts += [
            f"<h2>{escape(found.curve_of)} over the cut-off</h2>",
            "<div class='card'>",
            curve_chart(
                {name: (curve.cut_offs, curve.means) for name, curve in found.curves.items()}
            ),
            "</div>",
        ]
    for measure in found.measures:
        if found.verdicts[measure]:
            parts.append(f"<h2>{escape(measure)}, query by query</h2><div class='cards'>")
            parts += [
                _verdict_card(found, measure, system, verdict)
                for system, verdict in found.verdicts[measure].items()
            ]
            parts.append("</div>")
    return "\n".join([*parts, "</body></html>"])


def _main_table(found: Comparison) -> str:
    rows = []
    for row in found.rows():
        first = " class='first'" if row[1] == found.baseline else ""
        cells = []
        for place, cell in enumerate(row):
            tone = ""
            if place == HEADINGS.index("difference") and cell.endswith("*"):
                tone = " class='up'" if cell.startswith("+") else " class='down'"
            cells.append(f"<td{tone}>{escape(cell)}</td>")
        rows.append(f"<tr{first}>{''.join(cells)}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in HEADINGS)
    return f"<div class='wide'><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def _verdict_card(found: Comparison, measure: str, system: str, verdict: Verdict) -> str:
    place = found.systems.index(system)
    differences = found.values[measure][:, place] - found.values[measure][:, 0]
    parts = [
        f"<div class='card'><h3>{escape(system)} against {escape(found.baseline)}</h3>",
        difference_chart(differences, found.query_ids),
        "<h3>Queries that moved most</h3>",
        _moved_table(found, verdict, differences),
    ]
    if verdict.coherence is not None:
        parts += [
            "<h3>Other gains and discounts</h3>",
            grid_chart(
                verdict.coherence.differences, BASES, STEEPNESS, "gain base", "discount steepness"
            ),
        ]
    return "".join([*parts, "</div>"])


def _moved_table(found: Comparison, verdict: Verdict, differences: np.ndarray) -> str:
    rows = []
    for query in verdict.moved:
        change = differences[query]
        tone = "up" if change > 0 else "down"
        rows.append(
            f"<tr><td>{escape(found.query_ids[query])}</td>"
            f"<td class='{tone}'>{change:+.4f}</td></tr>"
        )
    return (
        f"<div class='wide'><table>{''.join(rows) or '<tr><td>none moved</td></tr>'}</table></div>"
    )

"""A comparison as one self-contained HTML file: tables, notes, SVG charts and ranked lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from podium.kernels import Doubles
from podium.measures.comparison.coherence import BASES, STEEPNESS
from podium.measures.comparison.details import Details, Section
from podium.measures.comparison.result import (
    HEADINGS,
    BaselineComparison,
    Comparison,
    notes,
    warnings,
)
from podium.measures.comparison.single_queries import ListedDocument, ListPair
from podium.measures.evaluating import measure_all
from podium.measures.registry import Measure
from podium.reports.charts import curve_chart, difference_chart, grid_chart
from podium.reports.page import Cell, report_page, report_table

_MOST_CUT_OFFS = 20
_TONES = {"yes": "up", "no": "down", "could turn": "down"}
_STYLE = """
th:nth-child(-n+2), td:nth-child(-n+2), th.name, td.name { text-align: left; }
.cards svg { max-width: 560px; }
"""


def as_html(comparison: Comparison, details: Details | None = None) -> str:
    """Format a comparison as a self-contained HTML page.

    Args:
        comparison: The comparison.
        details: Requirements, slices and single queries, if they are to be in it.

    Example:
        >>> from podium.data import Dataset
        >>> from podium.measures import compare
        >>> data = Dataset.from_arrays([[0.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> comparison = compare("RR", data, {"old": [1, 2, 2, 1], "new": [2, 1, 1, 2]})
        >>> "<h1>Comparison of old and new</h1>" in as_html(comparison)
        True
    """
    title = (
        " and ".join(comparison.systems)
        if len(comparison.systems) < 3
        else f"{len(comparison.systems)} systems"
    )
    losses = {repr(each) for each in comparison.measures if not each.larger_is_better}
    parts = [
        f"<p>{len(comparison.query_ids)} queries, "
        f"baseline <b>{escape(comparison.baseline)}</b>.</p>",
        _main_table(comparison, losses),
        _list([*notes(comparison), *warnings(comparison)]),
    ]
    for section in () if details is None else details.sections():
        parts += [
            f"<h2>{escape(section.title)}</h2>",
            _section_table(section, losses),
            _list([*section.findings, *section.notes]),
        ]
    curves = cut_off_curves(comparison)
    if curves is not None:
        parts += [
            f"<h2>{escape(curves.measure)} over the cut-off</h2>",
            "<div class='card'>",
            curve_chart({name: (curves.cut_offs, means) for name, means in curves.means.items()}),
            "</div>",
        ]
    for measure in comparison.measures:
        if comparison.against_baseline[measure]:
            parts.append(f"<h2>{escape(repr(measure))}, query by query</h2><div class='cards'>")
            parts += [
                _difference_card(comparison, measure, system, outcome)
                for system, outcome in comparison.against_baseline[measure].items()
            ]
            parts.append("</div>")
    if details is not None and details.lists:
        parts += [
            "<h2>Lists of the queries that moved most</h2>",
            "<p>label: ? where nobody judged; other: the rank in the other list, if it is in "
            "it.</p>",
            *(
                list_pair(pair, comparison.baseline, is_open=at == 0)
                for at, pair in enumerate(details.lists)
            ),
        ]
    return report_page(f"Comparison of {title}", parts, style=_STYLE + LIST_STYLE)


class Curves(NamedTuple):
    """Means over the cut-offs of a measure.

    Attributes:
        measure: The name of the measure without a cut-off.
        cut_offs: The cut-offs.
        means: The mean at each cut-off, for each system.
    """

    measure: str
    cut_offs: tuple[int, ...]
    means: dict[str, tuple[float, ...]]


def cut_off_curves(comparison: Comparison) -> Curves | None:
    """Evaluate the first measure with a cut-off at others up to twice its own.

    None if no measure has a cut-off, or if it is not known what the values were computed from.
    """
    source = comparison.source
    measure = next((each for each in comparison.measures if each.cut_off is not None), None)
    if source is None or measure is None or measure.cut_off is None:
        return None
    last = max(min(2 * measure.cut_off, _MOST_CUT_OFFS), min(measure.cut_off, 100))
    cut_offs = range(1, last + 1) if last <= _MOST_CUT_OFFS else range(5, last + 1, 5)
    weights = comparison.query_weights
    means = {}
    for name, inputs in zip(comparison.systems, source.inputs, strict=True):
        results = measure_all([measure @ each for each in cut_offs], source.conventions, inputs)
        means[name] = tuple(
            _mean_of_known(values[source.keep], weights) for values in results.values()
        )
    return Curves(repr(measure).rpartition("@")[0], tuple(cut_offs), means)


def _mean_of_known(values: Doubles, weights: Doubles | None) -> float:
    known = ~np.isnan(values)
    return float(np.average(values[known], weights=None if weights is None else weights[known]))


def _list(remarks: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in remarks) + "</ul>"


def _section_table(section: Section, losses: Collection[str]) -> str:
    if not section.rows:
        return ""
    headings = [
        Cell(name, "name" if at < section.names else "") for at, name in enumerate(section.headings)
    ]
    rows = [
        [_cell(cell, section.names > at, row[0] in losses) for at, cell in enumerate(row)]
        for row in section.rows
    ]
    return report_table(headings, rows)


def _cell(text: str, is_name: bool, is_loss: bool) -> Cell:
    if is_name:
        return Cell(text, "name")
    if text.endswith("*"):
        return Cell(text, _tone_of_difference(text, is_loss))
    return Cell(text, _TONES.get(text, ""))


def _tone_of_difference(text: str, is_loss: bool) -> str:
    """Return how a difference looks: of losses, smaller values are better."""
    return _TONES["yes"] if text.startswith("+") != is_loss else _TONES["no"]


def _main_table(comparison: Comparison, losses: Collection[str]) -> str:
    rows = comparison.rows()
    difference = HEADINGS.index("difference")
    cells = [
        [
            _cell(cell, False, row[0] in losses) if column == difference else cell
            for column, cell in enumerate(row)
        ]
        for row in rows
    ]
    first = [at for at, row in enumerate(rows) if row[1] == comparison.baseline]
    return report_table(HEADINGS, cells, first=first)


def _difference_card(
    comparison: Comparison, measure: Measure, system: str, outcome: BaselineComparison
) -> str:
    column = comparison.systems.index(system)
    differences = comparison.values[measure][:, column] - comparison.values[measure][:, 0]
    parts = [
        f"<div class='card'><h3>{escape(system)} against {escape(comparison.baseline)}</h3>",
        difference_chart(
            differences, comparison.query_ids, larger_is_better=measure.larger_is_better
        ),
        "<h3>Queries that moved most</h3>",
        _moved_table(comparison, outcome, differences, measure.larger_is_better),
    ]
    if outcome.coherence is not None:
        parts += [
            "<h3>Other gains and discounts</h3>",
            grid_chart(
                outcome.coherence.differences[: len(BASES)],
                BASES,
                STEEPNESS,
                "gain base",
                "discount steepness",
            ),
        ]
    return "".join([*parts, "</div>"])


def _moved_table(
    comparison: Comparison,
    outcome: BaselineComparison,
    differences: np.ndarray,
    larger_is_better: bool,
) -> str:
    rows = []
    for query in outcome.moved:
        change = differences[query]
        tone = "up" if (change > 0) == larger_is_better else "down"
        rows.append((comparison.query_ids[query], Cell(f"{change:+.4f}", tone)))
    return report_table((), rows or [("none moved",)])


LIST_STYLE = """
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr));
  gap: 16px; }
.lists table { width: 100%; table-layout: fixed; white-space: normal; }
.lists th, .lists td { text-align: right; vertical-align: top; }
.lists th, .lists td { padding: 4px 5px; }
.lists th:nth-child(1) { width: 1.4em; } .lists th:nth-child(n+3) { width: 2.6em; }
.lists th:nth-child(2), .lists td:nth-child(2) { text-align: left; overflow-wrap: anywhere; }
.lists small { color: var(--soft); display: block; }
.lists span.title { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; }
.query { margin: 10px 0; } .query summary { cursor: pointer; font-weight: 600; }
.query .lists { margin-top: 10px; }
"""
_LONGEST = 160


def list_pair(pair: ListPair, baseline: str, *, is_open: bool) -> str:
    """A card with the query's text and how much it moved, which opens to show both lists."""
    tone = "up" if pair.is_better else "down"
    title = f"{escape(pair.query_id)}: {escape(pair.text)}" if pair.text else escape(pair.query_id)
    return (
        f"<details class='card query'{' open' if is_open else ''}><summary>{title} "
        f"<span class='{tone}'>{pair.difference:+.4f}</span></summary><div class='lists'>"
        f"{_table(baseline, pair.baseline)}{_table(pair.system, pair.ranked)}</div></details>"
    )


def _table(system: str, documents: Sequence[ListedDocument]) -> str:
    rows = "".join(
        f"<tr><td>{rank}</td><td>{_document(each)}</td><td>{_label(each)}</td>"
        f"<td>{_other(rank, each)}</td></tr>"
        for rank, each in enumerate(documents, start=1)
    )
    empty = "<tr><td></td><td>nothing was returned</td><td></td><td></td></tr>"
    return (
        f"<table><tr><th></th><th>{escape(system)}</th><th>label</th><th>other</th></tr>"
        f"{rows or empty}</table>"
    )


def _document(document: ListedDocument) -> str:
    if not document.title:
        return escape(document.document_id)
    title = document.title
    short = title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
    return (
        f"<span class='title'>{escape(short)}</span><small>{escape(document.document_id)}</small>"
    )


def _label(document: ListedDocument) -> str:
    return "?" if document.label is None else f"{document.label:g}"


def _other(rank: int, document: ListedDocument) -> str:
    """The rank in the other list, with the color of this one's gain or loss."""
    if document.other_rank is None:
        return "-"
    if document.other_rank == rank:
        return str(rank)
    tone = "up" if rank < document.other_rank else "down"
    return f"<span class='{tone}'>{document.other_rank}</span>"

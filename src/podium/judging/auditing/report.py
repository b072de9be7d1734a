"""The page of an audit: its answer first, then the figures behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from podium.judging.agreement.coefficients import Interval
from podium.judging.auditing.audit import Audit
from podium.reports.charts import COLORS, Line, line_chart
from podium.reports.page import report_page, report_table

_STYLE = ".answer { font-size: 20px; color: var(--ink); } li { margin: 4px 0; }"
FIGURE_MEANINGS = {
    "agreement with people": "share of people who gave the model's value",
    "kappa, model and people": "Cohen's kappa, 0 is chance",
    "kappa between people": "the same of every two people: what a person reaches",
    "alpha of people": "Krippendorff's alpha, ordinal",
    "alpha with the model": "the same with the model as one more person",
    "position bias": "how much more often the first of two wins; 0 is none",
    "same in both orders": "share of pairs",
    "length bias": "rank correlation of length and how much higher it judges; 0 is none",
    "same when repeated": "share of repeated questions",
    "calibration error": "mean distance of certainty from the share of people who agree",
}
"""What the figures of an audit say, by their names."""


def audit_page(audit: Audit) -> str:
    """The report as one HTML page that loads nothing from elsewhere.

    Example:
        >>> from podium.judging.auditing.audit import audit
        >>> from podium.judging.models.answer_log import ModelAnswer
        >>> answer = ModelAnswer("1", "tiny", "grades/1", "h", "q", ("d",), "1")
        >>> page = audit_page(audit([answer], {"ann": {("q", "d"): 1.0}}, draws=10))
        >>> "Not decided." in page
        True
    """
    sample, conclusion = audit.sample, audit.conclusion
    what = "documents with grades" if sample.task == "grade" else "pairs"
    queries = len({unit[0] for unit in sample.units})
    parts = [
        f"<p class='answer'><strong>{escape(conclusion.sentence)}</strong></p>",
        f"<p>{len(sample.units):,} {what} of {queries:,} queries, judged by {escape(sample.model)} "
        f"and, blind to it, by {len(sample.people):,} people. Intervals are of "
        f"{100 * audit.confidence:g} % and resample queries.</p>",
        "<h2>Why</h2>",
        _list(conclusion.reasons),
        "<h2>What to do</h2>",
        _list(conclusion.uses),
    ]
    if conclusion.warnings:
        parts += ["<h2>Biases that are not chance</h2>", _list(conclusion.warnings)]
    parts += ["<h2>Figures</h2>", _figures(audit.figures)]
    if audit.test is not None:
        rows = [
            [
                each.person,
                f"{each.units:,}",
                f"{each.model_ahead:.2f}",
                f"{each.person_ahead:.2f}",
                f"{each.p_value:.3g}",
                "yes" if each.won else "no",
            ]
            for each in audit.test.tests
        ]
        headings = ["person", "units", "model ahead", "person ahead", "p", "model wins"]
        parts += [
            "<h2>The model against each person</h2>",
            "<p>How often each is as near to the other people as the other one, or nearer; p is of "
            f"the hypothesis that the model is behind by {audit.test.epsilon:g} or more, before "
            "Benjamini and Yekutieli's correction.</p>",
            report_table(headings, rows),
        ]
    if audit.groups:
        rows = [
            [name, f"{group.units:,}", group.with_people.text(3), group.between_people.text(3)]
            for name, group in audit.groups.items()
        ]
        parts += [
            "<h2>By group of queries</h2>",
            report_table(
                ["group", "units", "kappa, model and people", "kappa between people"], rows
            ),
        ]
    if audit.calibration:
        parts += ["<h2>Certainty</h2>", _calibration(audit.calibration)]
    return report_page(f"May {sample.model} judge?", parts, style=_STYLE)


def _figures(figures: Mapping[str, Interval]) -> str:
    rows = [
        [name, interval.text(3), FIGURE_MEANINGS[name]]
        for name, interval in figures.items()
        if not math.isnan(interval.value)
    ]
    return report_table(["figure", "value and interval", "meaning"], rows)


def _calibration(curve: Sequence[tuple[float, float, int]]) -> str:
    steps = [f"{sure:.2f} ({count})" for sure, _, count in curve]
    lines = [
        Line("people who agree", [share for _, share, _ in curve], COLORS[0]),
        Line("certainty", [sure for sure, _, _ in curve], COLORS[6], dashed=True),
    ]
    chart = line_chart("How sure the model is, and how many people agree", steps, lines)
    return f"<div class='card'>{chart}</div><p>Below: mean certainty of a bin (units in it).</p>"


def _list(entries: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(entry)}</li>" for entry in entries) + "</ul>"

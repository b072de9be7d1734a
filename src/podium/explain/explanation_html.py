"""An explanation as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from podium.explain.changes import FeatureChange
from podium.rankers.explanation import Explanation, PairExplanation
from podium.reports.charts import Bar, signed_bar_chart
from podium.reports.page import report_page
from podium.reports.table import report_table

_STYLE = (
    ".bars { max-width: 560px; } .list td { text-align: left; } "
    ".list td:last-child { white-space: normal; }"
)
_MOST_DOCUMENTS = 100
_MOST_BARS = 15
_REASONS = 3


def explanation_html(
    explanation: Explanation,
    pair: PairExplanation | None = None,
    changes: Sequence[FeatureChange] | None = None,
) -> str:
    """Format why a query's documents are where they are.

    Args:
        explanation: The explanation of the query.
        pair: Two of its documents to compare; the first two by default.
        changes: What would swap the two, from ``smallest_changes``.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
        >>> explanation = LinearRanker("ListNet()").fit(X, [0, 1, 2], group=[3]).explain(X)
        >>> "<h2>Why 2 is above 1</h2>" in explanation_html(explanation)
        True
    """
    pair = explanation.pair() if pair is None else pair
    parts = _pair_parts(pair, explanation.method)
    if changes is not None:
        parts += _change_parts(changes)
    for name, part in explanation.parts.items():
        own = part.pair(pair.above_position, pair.below_position)
        parts += [f"<h2>{escape(name)}</h2>", *_pair_parts(own, part.method, heading="h3")]
    parts += _list_parts(explanation)
    return report_page(f"Query {explanation.query_id}", parts, style=_STYLE)


def _pair_parts(pair: PairExplanation, method: str, heading: str = "h2") -> list[str]:
    largest = pair.largest[:_MOST_BARS].tolist()
    bars = []
    for column in largest:
        value = float(pair.contributions[column])
        bars.append(Bar(pair.names[column], value, value, value, f"{value:+.4g}"))
    others = float(pair.contributions.sum() - pair.contributions[largest].sum())
    more = len(pair.names) - len(largest)
    if more:
        bars.append(Bar(f"{more} others", others, others, others, f"{others:+.4g}"))
    title = f"Why {pair.above} is above {pair.below}"
    rows = [
        [
            pair.names[column],
            pair.values_above[column] or "missing",
            pair.values_below[column] or "missing",
            f"{pair.contributions[column]:+.6g}",
        ]
        for column in pair.largest.tolist()
    ]
    return [
        f"<{heading}>{escape(title)}</{heading}>",
        f"<p>Scores {pair.score_above:.6g} and {pair.score_below:.6g}: the contributions add up to "
        f"the difference, {pair.difference:+.6g}. A contribution is {escape(method)}.</p>",
        f"<div class='card bars'>{signed_bar_chart(title, bars)}</div>",
        "<details><summary>Values and contributions</summary>",
        report_table(["", pair.above, pair.below, "contribution"], rows),
        "</details>",
    ]


def _change_parts(changes: Sequence[FeatureChange]) -> list[str]:
    if not changes:
        return ["<h2>What would swap them</h2>", "<p>No change of a single feature would.</p>"]
    rows = [
        [
            change.feature,
            f"{change.value:.6g}",
            f"{change.changed:.6g}",
            f"{change.deviations:.2f}",
            f"{change.score:.6g}",
            "yes" if change.observed else "no",
        ]
        for change in changes
    ]
    heads = ["feature", "now", "needed", "deviations", "score then", "in the data"]
    return [
        "<h2>What would swap them</h2>",
        "<p>The smallest change of one feature of the lower document that lifts it above the "
        "other, smallest first in standard deviations of the feature within queries.</p>",
        report_table(heads, rows),
    ]


def _list_parts(explanation: Explanation) -> list[str]:
    order = explanation.order
    rows = []
    for rank, row in enumerate(order[:_MOST_DOCUMENTS].tolist(), start=1):
        rows.append(
            [
                str(rank),
                explanation.document_ids[row],
                f"{explanation.scores[row]:.6g}",
                reasons(explanation, row),
            ]
        )
    headings = ["rank", "document", "score", "because of"]
    note = f"The first {len(rows)} of {len(order)} documents. " if len(order) > len(rows) else ""
    return [
        "<h2>What puts each document where it is</h2>",
        f"<p>{note}The largest contributions, against the query's mean document.</p>",
        f"<div class='list'>{report_table(headings, rows)}</div>",
    ]


def reasons(explanation: Explanation, row: int) -> str:
    """Return the largest contributions to the score of a document, as text."""
    values = explanation.contributions[row]
    largest = np.argsort(-np.abs(values), kind="stable")[:_REASONS]
    named = [f"{explanation.names[column]} {values[column]:+.3g}" for column in largest]
    return ", ".join(named)

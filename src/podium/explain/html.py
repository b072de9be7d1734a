"""Explanations, and what features are worth, as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from podium.explain.changes import FeatureChange
from podium.explain.dependence import PartialDependence
from podium.explain.importance import Importance
from podium.rankers.explanation import Explanation, PairExplanation
from podium.reports.charts import COLORS, Bar, Line, line_chart, signed_bar_chart
from podium.reports.page import report_page, report_table

_STYLE = ".bars { max-width: 560px; } "
_LIST_STYLE = ".list td { text-align: left; } .list td:last-child { white-space: normal; }"
_NAMES_STYLE = "td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 8em; }"
_MOST_DOCUMENTS = 100
_MOST_BARS = 15
_MOST_GROUPS = 25
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
    return report_page(f"Query {explanation.query_id}", parts, style=_STYLE + _LIST_STYLE)


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


def importance_html(importance: Importance, dependences: Sequence[PartialDependence] = ()) -> str:
    """Format the importance of features, and how scores depend on some of them.

    Example:
        >>> from podium.explain.importance import GroupImportance
        >>> group = GroupImportance(("a<b",), 0.1, 0.05, 0.15, unused=False)
        >>> result = Importance("nDCG@10", 0.5, (group,), (), 20, 10, 0.95)
        >>> "a&lt;b" in importance_html(result)
        True
    """
    bars = [
        Bar(", ".join(group.features), group.importance, group.low, group.high,
            f"{group.importance:+.4f}")
        for group in importance.groups[:_MOST_GROUPS]
    ]  # fmt: skip
    rows = [
        [
            ", ".join(group.features),
            f"{group.importance:+.4f}",
            group.interval,
            "yes" if group.unused else "",
        ]
        for group in importance.groups
    ]
    first = f"The {len(bars)} largest of {len(rows)}. " if len(bars) < len(rows) else ""
    parts = [
        f"<p>{escape(importance.measure)} is {importance.value:.4f} over "
        f"{importance.queries:,} queries. The importance is what is lost of it when the feature is "
        f"permuted within queries, with {importance.level:.0%} intervals over queries and "
        f"{importance.repeats} permutations of each.</p>",
        f"<p>{first}Features that repeat each other are permuted together.</p>",
        f"<div class='card bars'>{signed_bar_chart('Importance of features', bars)}</div>",
        report_table(
            ["features", "importance", f"{importance.level:.0%} interval", "unused"], rows
        ),
    ]
    if importance.similar:
        parts += [
            "<h2>Features that repeat each other</h2>",
            report_table(
                ["feature", "other feature", "rank correlation within queries"],
                [
                    [pair.first, pair.second, f"{pair.correlation:+.3f}"]
                    for pair in importance.similar
                ],
            ),
        ]
    if dependences:
        parts += [
            "<h2>How the score depends on a feature</h2>",
            "<p>The mean score of a document that takes a value of its own query, from the "
            "smallest (0) to the largest (1), less the query's mean score.</p>",
            "<div class='cards'>",
            *(_dependence_card(each) for each in dependences),
            "</div>",
        ]
    return report_page(f"What {importance.measure} depends on", parts, style=_STYLE + _NAMES_STYLE)


def _dependence_card(dependence: PartialDependence) -> str:
    title = f"Score by {dependence.feature}"
    line = Line(
        "mean effect on the score",
        dependence.effects.tolist(),
        COLORS[0],
        dependence.low.tolist(),
        dependence.high.tolist(),
    )
    floor = min(0.0, float(dependence.low.min()), float(dependence.effects.min()))
    steps = [f"{share:.1f}" for share in dependence.shares]
    chart = line_chart(title, steps, [line], floor=floor)
    return f"<div class='card'><h3>{escape(dependence.feature)}</h3>{chart}</div>"

"""What features are worth, as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from podium.explain.dependence import PartialDependence
from podium.explain.importance import Importance
from podium.reports.charts import COLORS, Bar, Line, line_chart, signed_bar_chart
from podium.reports.page import report_page
from podium.reports.table import report_table

_MOST_BARS = 25
_STYLE = (
    ".bars { max-width: 560px; } "
    "td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 8em; }"
)


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
        for group in importance.groups[:_MOST_BARS]
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
    return report_page(f"What {importance.measure} depends on", parts, style=_STYLE)


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

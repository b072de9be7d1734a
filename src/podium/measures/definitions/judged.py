"""Share of judged documents."""

from __future__ import annotations

from math import inf

from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import expected_hits_in, hits_in
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    shown = min(query.size, settings.cut)
    hits = expected_hits_in(query.labels, query.ties, -inf, shown)
    return hits / shown if shown else 0.0


@measure("Judged", expected=_expected, needs_ideal=False)
def Judged(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Share of judged documents among the first k: how far the other measures can be trusted.

    $$\mathrm{Judged@}k = \frac{\sum_{i=1}^{\min(k, n)} [y_i \text{ is known}]}{\min(k, n)}$$
    """
    shown = min(query.size, settings.cut)
    return hits_in(query.labels, -inf, shown) / shown if shown else 0.0

"""Recall."""

from __future__ import annotations

from math import nan

from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, expected_hits_in, hits_in, relevant_in
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    relevant = relevant_in(query.ideal, settings.rel)
    hits = expected_hits_in(query.labels, query.ties, settings.rel, settings.cut)
    return hits / relevant if relevant else nan


@measure("R", parameters=(REL,), aliases=("recall", "set_recall"), expected=_expected)
def R(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Recall: the share of the relevant documents that are among the first k.

    $$\mathrm{R@}k = \frac{\sum_{i=1}^{k} [y_i \ge rel]}{\sum_{d} [y_d \ge rel]}$$
    """
    relevant = relevant_in(query.ideal, settings.rel)
    return hits_in(query.labels, settings.rel, settings.cut) / relevant if relevant else nan

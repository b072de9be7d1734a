"""Normalised discounted cumulative gain."""

from __future__ import annotations

from math import nan

from podium.measures.compiled.dcg_sums import best_dcg_of, dcg_of, expected_dcg_of, scale_of
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import DISCOUNTS, GAINS
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ideal = query.labels, query.ideal
    gains, discounts, curve = settings.gains, settings.discounts, settings.curve
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    reach = max(len(ideal), query.size)
    best = best_dcg_of(ideal, reach, scale, gains, discounts, settings.best_discounts, curve)
    total = expected_dcg_of(labels, query.ties, scale, gains, discounts, curve)
    return total / best if best > 0.0 else nan


@measure(
    "nDCG",
    parameters=(GAINS, DISCOUNTS),
    aliases={"ndcg_cut": {}, "ndcg_burges": {"gains": "exponential"}},
    expected=_expected,
    ideal_by_gain=True,
)
def nDCG(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Discounted cumulative gain as a share of the best possible (Järvelin and Kekäläinen 2002).

    $$\mathrm{nDCG@}k = \frac{\sum_{i=1}^{k} g(y_i)\, d(i)}
    {\max_\pi \sum_{i=1}^{k} g(y_{\pi(i)})\, d(i)}$$

    where the maximum is over all orders of the query's documents, those of the pool and those that
    were ranked: the largest gain meets the largest discount, and so on, also if discounts are given
    that rise. Labels may be as large as a full order of thousands of documents makes them: gains
    are taken relative to the largest.
    """
    labels, ideal = query.labels, query.ideal
    gains, discounts, curve = settings.gains, settings.discounts, settings.curve
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    reach = max(len(ideal), query.size)
    best = best_dcg_of(ideal, reach, scale, gains, discounts, settings.best_discounts, curve)
    return dcg_of(labels, scale, gains, discounts, curve) / best if best > 0.0 else nan

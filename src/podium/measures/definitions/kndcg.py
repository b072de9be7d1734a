"""Normalised discounted cumulative gain of a top-k order."""

from __future__ import annotations

from math import nan

from podium.measures.compiled.dcg_sums import best_dcg_of, dcg_of, expected_dcg_of, scale_of
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import DISCOUNTS, K
from podium.measures.definitions._top_k import top_k_labels
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    ideal, gains, discounts = query.ideal, settings.gains, settings.discounts
    k, curve = settings.k, settings.curve
    scale = scale_of(float(k), gains, curve)
    wanted = top_k_labels(ideal, ideal, k, min(len(ideal), len(discounts)))
    labels = top_k_labels(query.labels, ideal, k, len(query.labels))
    reach = max(len(ideal), query.size)
    best = best_dcg_of(wanted, reach, scale, gains, discounts, settings.best_discounts, curve)
    total = expected_dcg_of(labels, query.ties, scale, gains, discounts, curve)
    return total / best if best > 0.0 else nan


@measure("kNDCG", parameters=(K, DISCOUNTS), expected=_expected)
def kNDCG(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""κ-NDCG: nDCG on a top-k order as the truth (Niu et al. 2012).

    $$\kappa\text{-NDCG@}l = \frac{1}{N_l} \sum_{j=1}^{l} \frac{2^{y_j} - 1}{\log_2(1 + j)}, \quad
    y = \max(0,\ k + 1 - \text{true position})$$

    with $N_l$ the largest possible sum. Exact for any k. The truth may also be a full order, whose
    first k documents then count, or grades, of which equal ones share a position; a document with
    label 0 is never among the k.
    """
    ideal, gains, discounts = query.ideal, settings.gains, settings.discounts
    k, curve = settings.k, settings.curve
    scale = scale_of(float(k), gains, curve)
    wanted = top_k_labels(ideal, ideal, k, min(len(ideal), len(discounts)))
    labels = top_k_labels(query.labels, ideal, k, min(len(query.labels), len(discounts)))
    reach = max(len(ideal), query.size)
    best = best_dcg_of(wanted, reach, scale, gains, discounts, settings.best_discounts, curve)
    return dcg_of(labels, scale, gains, discounts, curve) / best if best > 0.0 else nan

"""Discounted cumulative gain, also normalised, of grades or of a top-k order."""

from __future__ import annotations

from math import nan

from podium.kernels import Doubles, Floats
from podium.measures.compiled.arrays import Positions
from podium.measures.compiled.dcg_sums import best_dcg, dcg, expected_dcg, scale_of
from podium.measures.definitions._shared import Discounts, Gains, TopK, top_k_labels
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


def _expected_dcg(
    labels: Floats, ties: Positions, curve: int, gains: Doubles, discounts: Doubles
) -> float:
    return expected_dcg(labels, ties, 0.0, gains, discounts, curve)


@measure(aliases={"dcg_burges": {"gains": "exponential"}}, expected=_expected_dcg, monotone=True)
def DCG(  # noqa: N802
    labels: Floats,
    curve: int,
    gains: Gains = BY_CONVENTION,
    discounts: Discounts = BY_CONVENTION,
) -> float:
    r"""Discounted cumulative gain, with any gains and discounts.

    $$\mathrm{DCG@}k = \sum_{i=1}^{k} g(y_i)\, d(i)$$

    with gain $g(y) = 2^y - 1$ and discount $d(i) = 1 / \log_2(1 + i)$ unless others are given, for
    instance those learned from preferences between rankings (Zhou et al. 2012).
    """
    return dcg(labels, 0.0, gains, discounts, curve)


def _expected_ndcg(
    labels: Floats,
    ideal: Floats,
    ties: Positions,
    size: int,
    curve: int,
    ideal_discounts: Doubles,
    gains: Doubles,
    discounts: Doubles,
) -> float:
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    documents = max(len(ideal), size)
    best = best_dcg(ideal, documents, scale, gains, discounts, ideal_discounts, curve)
    total = expected_dcg(labels, ties, scale, gains, discounts, curve)
    return total / best if best > 0.0 else nan


@measure(
    aliases={"ndcg_cut": {}, "ndcg_burges": {"gains": "exponential"}},
    expected=_expected_ndcg,
    ideal_by_gain=True,
    monotone=True,
)
def nDCG(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    size: int,
    curve: int,
    ideal_discounts: Doubles,
    gains: Gains = BY_CONVENTION,
    discounts: Discounts = BY_CONVENTION,
) -> float:
    r"""Discounted cumulative gain as a share of the best possible (Järvelin and Kekäläinen 2002).

    $$\mathrm{nDCG@}k = \frac{\sum_{i=1}^{k} g(y_i)\, d(i)}
    {\max_\pi \sum_{i=1}^{k} g(y_{\pi(i)})\, d(i)}$$

    where the maximum is over all orders of the query's documents, those of the pool and those that
    were ranked: the largest gain meets the largest discount, and so on, also if discounts are given
    that rise. Labels may be as large as a full order of thousands of documents makes them: gains
    are taken relative to the largest.
    """
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    documents = max(len(ideal), size)
    best = best_dcg(ideal, documents, scale, gains, discounts, ideal_discounts, curve)
    return dcg(labels, scale, gains, discounts, curve) / best if best > 0.0 else nan


def _expected_kndcg(
    labels: Floats,
    ideal: Floats,
    ties: Positions,
    size: int,
    gains: Doubles,
    curve: int,
    ideal_discounts: Doubles,
    k: int,
    discounts: Doubles,
) -> float:
    scale = scale_of(float(k), gains, curve)
    top_ideal = top_k_labels(ideal, ideal, k, min(len(ideal), len(discounts)))
    top_labels = top_k_labels(labels, ideal, k, len(labels))
    documents = max(len(ideal), size)
    best = best_dcg(top_ideal, documents, scale, gains, discounts, ideal_discounts, curve)
    total = expected_dcg(top_labels, ties, scale, gains, discounts, curve)
    return total / best if best > 0.0 else nan


@measure(expected=_expected_kndcg, monotone=True)
def kNDCG(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    size: int,
    gains: Doubles,
    curve: int,
    ideal_discounts: Doubles,
    k: TopK = 10,
    discounts: Discounts = BY_CONVENTION,
) -> float:
    r"""κ-NDCG: nDCG on a top-k order as the ground truth (Niu et al. 2012).

    $$\kappa\text{-NDCG@}l = \frac{1}{N_l} \sum_{j=1}^{l} \frac{2^{y_j} - 1}{\log_2(1 + j)}, \quad
    y = \max(0,\ k + 1 - \text{true position})$$

    with $N_l$ the largest possible sum. Exact for any k. The labels may also be a full order, whose
    first k documents then count, or grades, of which equal ones share a position; a document with
    label 0 is never among the k.
    """
    scale = scale_of(float(k), gains, curve)
    top_ideal = top_k_labels(ideal, ideal, k, min(len(ideal), len(discounts)))
    top_labels = top_k_labels(labels, ideal, k, min(len(labels), len(discounts)))
    documents = max(len(ideal), size)
    best = best_dcg(top_ideal, documents, scale, gains, discounts, ideal_discounts, curve)
    return dcg(top_labels, scale, gains, discounts, curve) / best if best > 0.0 else nan

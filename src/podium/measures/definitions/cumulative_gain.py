"""Discounted cumulative gain and its relatives, of grades or of a top-k order."""

from __future__ import annotations

from math import log2, nan

from podium.kernels import Doubles, Floats
from podium.measures.compiled import Positions
from podium.measures.compiled.dcg_sums import best_dcg, dcg, expected_dcg, gain, scale_of
from podium.measures.definitions._shared import (
    Discounts,
    Gains,
    Rel,
    TopK,
    count_relevant,
    top_k_labels,
)
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


@measure(aliases=("binG",), monotone=True)
def BinGain(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Binary gain: relevant documents, discounted by the irrelevant ones above them.

    $$\mathrm{BinGain} = \frac{1}{R} \sum_{i : y_i \ge rel} \frac{1}{\log_2(2 + \text{irrelevant
    above } i)}$$
    """
    relevant = count_relevant(ideal, rel)
    total = 0.0
    misses = 0
    for position in range(len(labels)):
        if labels[position] >= rel:
            total += 1.0 / log2(2.0 + misses)
        else:
            misses += 1
    return total / relevant if relevant else nan


@measure(aliases=("G",), ideal_by_gain=True)
def NGain(  # noqa: N802
    labels: Floats, ideal: Floats, curve: int, gains: Gains = BY_CONVENTION
) -> float:
    r"""Normalized gain: gains, discounted by how far the ranking is behind the ideal one.

    $$\mathrm{NGain} = \frac{\sum_{i} g(y_i) \,/\, \log_2\left(2 + \sum_{j \le i} \max(g(y^*_j), 1)
    - \sum_{j \le i} g(y_j)\right)}{\sum_{j} g(y^*_j)}$$

    with $y^*_j$ the label at rank j of the ideal ranking.
    """
    total = best = cost = so_far = 0.0
    for position in range(len(ideal)):
        best += max(gain(ideal[position], 0.0, gains, curve), 0.0)
    for position in range(len(labels)):
        own = gain(labels[position], 0.0, gains, curve)
        so_far += own
        ideal_gain = gain(ideal[position], 0.0, gains, curve) if position < len(ideal) else 0.0
        cost += max(ideal_gain, 1.0)
        if own != 0.0:
            total += own / log2(2.0 + cost - so_far)
    return total / best if best > 0.0 else nan


@measure(aliases=("ndcg_rel",), ideal_by_gain=True)
def RelNDCG(  # noqa: N802
    labels: Floats, ideal: Floats, curve: int, gains: Gains = BY_CONVENTION
) -> float:
    r"""The mean of nDCG over the ranks of the documents with a gain.

    $$\mathrm{RelNDCG} = \frac{1}{R} \left(\sum_{i : g(y_i) > 0} \mathrm{nDCG@}i + (R - h)\,
    \mathrm{nDCG}\right)$$

    with R documents that have a gain, of which h are ranked.
    """
    total = own = best = 0.0
    hits = relevant = 0
    for position in range(max(len(labels), len(ideal))):
        if position < len(ideal):
            ideal_gain = gain(ideal[position], 0.0, gains, curve)
            if ideal_gain > 0.0:
                relevant += 1
                best += ideal_gain / log2(position + 2.0)
        if position < len(labels):
            own_gain = gain(labels[position], 0.0, gains, curve)
            own += own_gain / log2(position + 2.0)
            if own_gain > 0.0:
                hits += 1
                total += own / best
    return (total + (relevant - hits) * own / best) / relevant if relevant else nan


@measure(aliases=("Rndcg",), ideal_by_gain=True, monotone=True)
def LevelNDCG(  # noqa: N802
    labels: Floats, ideal: Floats, curve: int, rel: float, gains: Gains = BY_CONVENTION
) -> float:
    r"""The mean of nDCG over the ranks at which the ideal ranking goes to the next lower gain.

    $$\mathrm{LevelNDCG} = \frac{1}{m} \sum_{b = b_1, \ldots, b_m} \mathrm{nDCG@}b$$

    The last of them is the number of documents with a gain; nDCG of the whole list is one more
    value if the list goes on for two ranks or more after it.
    """
    if not count_relevant(ideal, rel):
        return nan
    total = own = best = before = 0.0
    levels = position = 0
    while True:
        ideal_gain = gain(ideal[position], 0.0, gains, curve) if position < len(ideal) else 0.0
        if best > 0.0 and ideal_gain != before:
            total += own / best
            levels += 1
        if not ideal_gain > 0.0:
            break
        before = ideal_gain
        best += ideal_gain / log2(position + 2.0)
        if position < len(labels):
            own += gain(labels[position], 0.0, gains, curve) / log2(position + 2.0)
        position += 1
    if position + 1 < len(labels) and best > 0.0:
        for later in range(position, len(labels)):
            own += gain(labels[later], 0.0, gains, curve) / log2(later + 2.0)
        total += own / best
        levels += 1
    return total / levels if levels else nan

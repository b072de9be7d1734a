"""Gains of a ranking other than DCG: relative to the ideal so far, and averaged over ranks."""

from __future__ import annotations

from math import log2, nan

from podium.kernels import Floats
from podium.measures.compiled.dcg_sums import gain
from podium.measures.definitions._shared import Gains, Rel, count_relevant
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


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


@measure(aliases=("G",), ideal_by_gain=True, monotone=True)
def NGain(  # noqa: N802
    labels: Floats, ideal: Floats, curve: int, gains: Gains = BY_CONVENTION
) -> float:
    r"""Normalised gain: gains, discounted by how far the ranking is behind the ideal one.

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

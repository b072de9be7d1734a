"""Weighted Kendall's tau."""

from __future__ import annotations

from math import nan

import numpy as np

from podium.kernels import Doubles, Floats, kernel
from podium.measures.compiled.dcg_sums import gain, scale_of
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import DISCOUNTS, GAINS, K, larger_in
from podium.measures.registry import measure


@kernel
def _weights(ideal: Floats, k: int, gains: Doubles, discounts: Doubles, curve: int) -> Doubles:
    """The weight of each of the k best places, in all 1; empty if nothing is worth anything."""
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    weights = np.zeros(min(len(ideal), k, len(discounts)))
    total = 0.0
    for place in range(len(weights)):
        weights[place] = gain(ideal[place], scale, gains, curve) * discounts[place]
        total += weights[place]
    return weights / total if total > 0.0 else weights[:0]


@kernel
def _unranked(labels: Floats, ideal: Floats, weights: Doubles, k: int) -> float:
    """The weight of pairs whose better document is not in the list, and so below all that are.

    A list shorter than k goes on with irrelevant documents up to k.
    """
    padding = max(k - len(labels), 0)
    total = 0.0
    for position in range(len(weights)):
        label = ideal[position]
        ranked = lower = 0
        for other in range(len(labels)):
            ranked += labels[other] == label
            lower += not labels[other] >= label
        if label > 0.0 and position - larger_in(ideal, label) >= ranked:
            total += weights[position] * (lower + padding)
    return total


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ideal, ties = query.labels, query.ideal, query.ties
    weights = _weights(ideal, settings.k, settings.gains, settings.discounts, settings.curve)
    if len(weights) == 0:
        return nan
    total = _unranked(labels, ideal, weights, settings.k)
    begin = 0
    for place in range(len(labels)):
        label, end = labels[place], ties[place]
        if place and ties[place - 1] <= place:
            begin = place
        if not label > 0.0:
            continue
        mates_above = lower_above = mates = lower = nth = 0
        for other in range(end):
            same, below = labels[other] == label, not labels[other] >= label
            if other < begin:
                mates_above += same
                lower_above += below
            else:
                mates += same
                lower += below
                nth += same and other <= place
        # The nth of the tie's documents with this label has nth / (mates + 1) of the others above.
        position = larger_in(ideal, label) + mates_above + nth - 1
        if position < len(weights):
            total += weights[position] * (lower_above + lower * nth / (mates + 1))
    return total


@measure(
    "WKT",
    parameters=(K, GAINS, DISCOUNTS),
    expected=_expected,
    takes_cut_off=False,
    larger_is_better=False,
)
def WKT(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Weighted Kendall's tau, a bound of 1 - nDCG@k from above (Lan et al. 2013).

    $$\mathrm{WKT} = \frac{1}{N_k} \sum_{j=1}^{k} g(y^*_j)\, d(j)\,
    \bigl|\{ l : y_l < y^*_j,\ l \text{ is ranked above } j \}\bigr|, \quad
    N_k = \sum_{j=1}^{k} g(y^*_j)\, d(j)$$

    where j runs over the k best documents in their true order. Documents with equal labels are
    taken in the order in which they are ranked, which makes the sum least. A document that the list
    does not have is below all that it has; a list shorter than k is padded with irrelevant ones.
    Smaller is better; it is 0 where the k best documents come first and in order, and may be
    above 1. It is a bound for discounts that do not increase.
    """
    labels, ideal = query.labels, query.ideal
    weights = _weights(ideal, settings.k, settings.gains, settings.discounts, settings.curve)
    if len(weights) == 0:
        return nan
    total = _unranked(labels, ideal, weights, settings.k)
    for place in range(len(labels)):
        label = labels[place]
        if not label > 0.0:
            continue
        mates = lower = 0
        for other in range(place):
            mates += labels[other] == label
            lower += not labels[other] >= label
        position = larger_in(ideal, label) + mates
        if position < len(weights):
            total += weights[position] * lower
    return total

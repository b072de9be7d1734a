"""Losses of a top-k order: weighted Kendall's tau, and whether it is exactly right."""

from __future__ import annotations

from math import nan

import numpy as np

from podium.kernels import Doubles, Floats, inner
from podium.measures.compiled import Positions
from podium.measures.compiled.dcg_sums import gain, scale_of
from podium.measures.definitions._shared import Discounts, Gains, TopK, count_larger
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _position_weights(
    ideal: Floats, k: int, gains: Doubles, discounts: Doubles, curve: int
) -> Doubles:
    """Return the weight of each of the k best positions, in sum 1; empty if no gain is above 0."""
    scale = scale_of(ideal[0] if len(ideal) else 0.0, gains, curve)
    weights = np.zeros(min(len(ideal), k, len(discounts)))
    total = 0.0
    for position in range(len(weights)):
        weights[position] = gain(ideal[position], scale, gains, curve) * discounts[position]
        total += weights[position]
    return weights / total if total > 0.0 else weights[:0]


@inner
def _unranked(labels: Floats, ideal: Floats, weights: Doubles, k: int) -> float:
    """Return the weight of pairs whose better document is not in the list, so below all others.

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
        if label > 0.0 and position - count_larger(ideal, label) >= ranked:
            total += weights[position] * (lower + padding)
    return total


def _expected_kendall(
    labels: Floats,
    ideal: Floats,
    ties: Positions,
    curve: int,
    k: int,
    gains: Doubles,
    discounts: Doubles,
) -> float:
    weights = _position_weights(ideal, k, gains, discounts, curve)
    if len(weights) == 0:
        return nan
    total = _unranked(labels, ideal, weights, k)
    begin = 0
    for position in range(len(labels)):
        label, end = labels[position], ties[position]
        if position and ties[position - 1] <= position:
            begin = position
        if not label > 0.0:
            continue
        equal_above = lower_above = equal = lower = nth = 0
        for other in range(end):
            same, below = labels[other] == label, not labels[other] >= label
            if other < begin:
                equal_above += same
                lower_above += below
            else:
                equal += same
                lower += below
                nth += same and other <= position
        # The nth of the tie's documents with this label has nth / (equal + 1) of the others above.
        ideal_position = count_larger(ideal, label) + equal_above + nth - 1
        if ideal_position < len(weights):
            total += weights[ideal_position] * (lower_above + lower * nth / (equal + 1))
    return total


@measure(expected=_expected_kendall, takes_cut_off=False, larger_is_better=False, monotone=True)
def WKT(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    curve: int,
    k: TopK = 10,
    gains: Gains = BY_CONVENTION,
    discounts: Discounts = BY_CONVENTION,
) -> float:
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
    weights = _position_weights(ideal, k, gains, discounts, curve)
    if len(weights) == 0:
        return nan
    total = _unranked(labels, ideal, weights, k)
    for position in range(len(labels)):
        label = labels[position]
        if not label > 0.0:
            continue
        equal = lower = 0
        for other in range(position):
            equal += labels[other] == label
            lower += not labels[other] >= label
        ideal_position = count_larger(ideal, label) + equal
        if ideal_position < len(weights):
            total += weights[ideal_position] * lower
    return total


@inner
def _label_at(labels: Floats, position: int) -> float:
    """Return a label; 0 for a document that is not judged or does not exist."""
    return float(labels[position]) if position < len(labels) and labels[position] > 0.0 else 0.0


def _expected_top_k_loss(labels: Floats, ideal: Floats, ties: Positions, k: int) -> float:
    probability = 1.0
    for position in range(k):
        target = _label_at(ideal, position)
        end = ties[position] if position < len(labels) else position + 1
        begin = position
        while begin > 0 and position < len(labels) and ties[begin - 1] == end:
            begin -= 1
        left = 0  # documents of the tie that fit here, less those at positions before
        for other in range(begin, end):
            if _label_at(labels, other) == target:
                left += 1
        for other in range(begin, position):
            if _label_at(ideal, other) == target:
                left -= 1
        probability *= left / (end - position)
    return 1.0 - probability


@measure(expected=_expected_top_k_loss, larger_is_better=False, monotone=True)
def TopKLoss(labels: Floats, ideal: Floats, k: TopK = 10) -> float:  # noqa: N802
    r"""Top-k true loss: 0 if the first k ranks are exactly right, else 1 (Xia et al. 2009).

    $$l_k = 1 - \prod_{i=1}^{k} [y_i = y^*_i]$$

    where $y^*$ are the labels in their best order; which of two documents with equal labels comes
    first does not matter. Smaller is better.
    """
    for position in range(k):
        if _label_at(labels, position) != _label_at(ideal, position):
            return 1.0
    return 0.0

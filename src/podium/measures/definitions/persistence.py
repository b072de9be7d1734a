"""Measures of a user who looks on with some probability: rank-biased precision and overlap."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from podium.kernels import Doubles, Floats, inner
from podium.measures.compiled import Positions
from podium.measures.definitions._shared import Persistence, Rel, count_larger, count_relevant
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _gain(label: float, rel: float, graded: bool) -> float:
    if not label >= rel:
        return 0.0
    return label if graded else 1.0


def _expected_precision(
    labels: Floats, ties: Positions, cut: int, graded: bool, p: float, rel: float
) -> float:
    total, weight = 0.0, 1.0 - p
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        gains = 0.0
        for position in range(begin, end):
            gains += _gain(labels[position], rel, graded)
        for _ in range(begin, min(end, cut)):
            total += weight * gains / (end - begin)
            weight *= p
        begin = end
    return total


@measure(expected=_expected_precision, monotone=True)
def RBP(  # noqa: N802
    labels: Floats, cut: int, graded: bool, p: Persistence = 0.8, rel: Rel = BY_CONVENTION
) -> float:
    r"""Rank-biased precision (Moffat and Zobel 2008).

    $$\mathrm{RBP} = (1 - p) \sum_{i} p^{i-1}\, [y_i \ge rel]$$
    """
    total, weight = 0.0, 1.0 - p
    for position in range(min(len(labels), cut)):
        total += weight * _gain(labels[position], rel, graded)
        weight *= p
    return total


def _expected_graded(labels: Floats, ideal: Floats, ties: Positions, cut: int, p: float) -> float:
    highest = ideal[0] if len(ideal) else 0.0
    if not highest > 0.0:
        return nan
    total, weight = 0.0, 1.0 - p
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        gains = 0.0
        for position in range(begin, end):
            gains += _gain(labels[position], 0.0, True)
        for _ in range(begin, min(end, cut)):
            total += weight * gains / (end - begin) / highest
            weight *= p
        begin = end
    return total


@measure(expected=_expected_graded, monotone=True)
def GradedRBP(labels: Floats, ideal: Floats, cut: int, p: Persistence = 0.8) -> float:  # noqa: N802
    r"""Rank-biased precision with grades, relative to the highest of the query.

    $$\mathrm{GradedRBP} = (1 - p) \sum_{i} p^{i-1}\, \frac{y_i}{\max_d y_d}$$

    trec_eval's rbp, with p of 0.9.
    """
    highest = ideal[0] if len(ideal) else 0.0
    if not highest > 0.0:
        return nan
    total, weight = 0.0, 1.0 - p
    for position in range(min(len(labels), cut)):
        total += weight * _gain(labels[position], 0.0, True) / highest
        weight *= p
    return total


@measure(aliases=("rbp_resid",), larger_is_better=False)
def RBPResidual(labels: Floats, p: Persistence = 0.9) -> float:  # noqa: N802
    r"""How much rank-biased precision could gain if everything that was not judged were relevant.

    $$\mathrm{RBPResidual} = p^n + (1 - p) \sum_{i : y_i \text{ is not known}} p^{i-1}$$

    for a list of n documents, and 0 if all of them were judged.
    """
    total, weight = 0.0, 1.0
    for position in range(len(labels)):
        if isnan(labels[position]):
            total += weight
        weight *= p
    return weight + (1.0 - p) * total if total > 0.0 else 0.0


@inner
def _weights_from_depth(depth: int, p: float) -> Doubles:
    """Return, for each depth, what a document adds that both lists have from there on."""
    weights = np.zeros(depth + 1)
    for position in range(depth - 1, -1, -1):
        weights[position] = weights[position + 1] + p**position / (position + 1)
    return weights


@inner
def _best_overlap(weights: Doubles, relevant: int) -> float:
    """Return the overlap of the ideal list with itself: the nth document counts from depth n on."""
    best = 0.0
    for position in range(relevant):
        best += weights[position]
    return best


def _expected_overlap(
    labels: Floats, ideal: Floats, ties: Positions, size: int, rel: float, p: float
) -> float:
    relevant = count_relevant(ideal, rel)
    weights = _weights_from_depth(max(size, relevant), p)
    total = 0.0
    begin = 0
    for position in range(len(labels)):
        label, end = labels[position], ties[position]
        if position and ties[position - 1] <= position:
            begin = position
        if not label >= rel:
            continue
        equal_above = equal = nth = 0
        for other in range(end):
            same = labels[other] == label
            if other < begin:
                equal_above += same
            else:
                equal += same
                nth += same and other <= position
        ideal_position = count_larger(ideal, label) + equal_above + nth - 1
        # The probability that this many of the tie's documents with this label came before.
        seen = np.zeros(equal + 1)
        seen[0] = 1.0
        for at in range(begin, end):
            here = seen[nth - 1] * (equal - nth + 1) / (end - at)
            total += here * weights[max(at, ideal_position)]
            for count in range(min(at - begin + 1, equal), -1, -1):
                seen[count] *= 1.0 - (equal - count) / (end - at)
                if count:
                    seen[count] += seen[count - 1] * (equal - count + 1) / (end - at)
    return total / _best_overlap(weights, relevant) if relevant else nan


@measure(expected=_expected_overlap, monotone=True)
def Compat(  # noqa: N802
    labels: Floats, ideal: Floats, size: int, rel: float, p: Persistence = 0.95
) -> float:
    r"""Compatibility with the ideal ranking (Clarke, Vtyurina and Smucker 2021).

    $$\mathrm{Compat} = \frac{\mathrm{RBO}(L, I)}{\mathrm{RBO}(I, I)}, \quad
    \mathrm{RBO}(L, I) \propto \sum_{i} p^{i-1}\, \frac{|L_{1:i} \cap I_{1:i}|}{i}$$

    where the ideal ranking I is of the relevant documents by descending label and, among equal
    labels, in the order of the list L, documents that the list does not have last; the sum goes as
    far as the longer of the two.
    """
    relevant = count_relevant(ideal, rel)
    weights = _weights_from_depth(max(size, relevant), p)
    total = 0.0
    for position in range(len(labels)):
        label = labels[position]
        if not label >= rel:
            continue
        equal_above = 0
        for other in range(position):
            equal_above += labels[other] == label
        total += weights[max(position, count_larger(ideal, label) + equal_above)]
    return total / _best_overlap(weights, relevant) if relevant else nan

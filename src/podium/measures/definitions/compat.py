"""Compatibility."""

from __future__ import annotations

from math import nan

import numpy as np

from podium.kernels import Doubles, kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import larger_in, persistence, relevant_in
from podium.measures.registry import measure


@kernel
def _from_depth(depth: int, p: float) -> Doubles:
    """What a document adds that both lists have from a depth on, for each depth."""
    weights = np.zeros(depth + 1)
    for place in range(depth - 1, -1, -1):
        weights[place] = weights[place + 1] + p**place / (place + 1)
    return weights


@kernel
def _best(weights: Doubles, relevant: int) -> float:
    """Of the ideal list, which shares its nth document with itself from depth n on."""
    best = 0.0
    for place in range(relevant):
        best += weights[place]
    return best


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ideal, ties, rel = query.labels, query.ideal, query.ties, settings.rel
    relevant = relevant_in(ideal, rel)
    weights = _from_depth(max(query.size, relevant), settings.p)
    total = 0.0
    begin = 0
    for place in range(len(labels)):
        label, end = labels[place], ties[place]
        if place and ties[place - 1] <= place:
            begin = place
        if not label >= rel:
            continue
        mates_above = mates = nth = 0
        for other in range(end):
            same = labels[other] == label
            if other < begin:
                mates_above += same
            else:
                mates += same
                nth += same and other <= place
        position = larger_in(ideal, label) + mates_above + nth - 1
        # The chance that so many of the tie's documents with this label came before a place.
        seen = np.zeros(mates + 1)
        seen[0] = 1.0
        for at in range(begin, end):
            total += seen[nth - 1] * (mates - nth + 1) / (end - at) * weights[max(at, position)]
            for count in range(min(at - begin + 1, mates), -1, -1):
                seen[count] *= 1.0 - (mates - count) / (end - at)
                if count:
                    seen[count] += seen[count - 1] * (mates - count + 1) / (end - at)
    return total / _best(weights, relevant) if relevant else nan


@measure("Compat", parameters=(persistence(0.95),), expected=_expected, takes_cut_off=False)
def Compat(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Compatibility with the ideal ranking (Clarke, Vtyurina and Smucker 2021).

    $$\mathrm{Compat} = \frac{\mathrm{RBO}(L, I)}{\mathrm{RBO}(I, I)}, \quad
    \mathrm{RBO}(L, I) \propto \sum_{i} p^{i-1}\, \frac{|L_{1:i} \cap I_{1:i}|}{i}$$

    where the ideal ranking I is of the relevant documents by descending label and, among equal
    labels, in the order of the list L, documents that the list does not have last; the sum goes as
    far as the longer of the two.
    """
    labels, ideal, rel = query.labels, query.ideal, settings.rel
    relevant = relevant_in(ideal, rel)
    weights = _from_depth(max(query.size, relevant), settings.p)
    total = 0.0
    for place in range(len(labels)):
        label = labels[place]
        if not label >= rel:
            continue
        mates = 0
        for other in range(place):
            mates += labels[other] == label
        total += weights[max(place, larger_in(ideal, label) + mates)]
    return total / _best(weights, relevant) if relevant else nan

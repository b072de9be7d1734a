"""Sums of gains times discounts (in kernels).

These take arrays, not the records they are in: passing a record counts references to all its
arrays, which costs more than the sums.
"""

from __future__ import annotations

from podium.data.gains import exponential_gain
from podium.kernels import Doubles, Floats, inner
from podium.measures.arguments import EXPONENTIAL, LINEAR
from podium.measures.compiled import Positions


@inner
def scale_of(highest: float, gains: Doubles, curve: int) -> float:
    """0, or the highest label of a query whose gains must be taken relative to it.

    An order of more than 1023 documents has gains beyond any double; ratios of gains need only
    ``2^(y - highest) - 2^-highest``.
    """
    return highest if curve == EXPONENTIAL and highest >= len(gains) else 0.0


@inner
def gain(label: float, scale: float, gains: Doubles, curve: int) -> float:
    """Return the gain of a label; unjudged documents have no gain."""
    if not label >= 0.0:
        return 0.0
    integer = int(label)
    if integer == label and integer < len(gains) and scale == 0.0:
        return float(gains[integer])
    if curve == LINEAR:
        return label
    return exponential_gain(label, scale)


@inner
def dcg(labels: Floats, scale: float, gains: Doubles, discounts: Doubles, curve: int) -> float:
    """Return the sum of gains times discounts."""
    total = 0.0
    for position in range(min(len(labels), len(discounts))):
        total += gain(labels[position], scale, gains, curve) * discounts[position]
    return total


@inner
def _descending(values: Doubles) -> Doubles:
    """Return the values, largest first.

    Few discounts need it, and they are in order but for a few; ``np.sort`` would take longer to
    compile than all else that nDCG needs.
    """
    ordered = values.copy()
    for index in range(1, len(ordered)):
        value = ordered[index]
        target = index
        while target > 0 and ordered[target - 1] < value:
            ordered[target] = ordered[target - 1]
            target -= 1
        ordered[target] = value
    return ordered


@inner
def best_dcg(
    ideal: Floats,
    documents: int,
    scale: float,
    gains: Doubles,
    discounts: Doubles,
    best_discounts: Doubles,
    curve: int,
) -> float:
    """Return the largest DCG of any order of a query's documents.

    The largest gain meets the largest discount of the ranks that there are documents for.

    Args:
        ideal: The labels of the pool, largest gain first.
        documents: How many documents can be ranked.
        scale: As ``scale_of`` has it.
        gains: The gain of each label.
        discounts: The discount of each rank.
        best_discounts: The same, largest first.
        curve: How a label becomes a gain.
    """
    if documents < len(discounts):
        for rank in range(1, documents):
            if discounts[rank] > discounts[rank - 1]:
                return dcg(ideal, scale, gains, _descending(discounts[:documents]), curve)
        return dcg(ideal, scale, gains, discounts, curve)
    return dcg(ideal, scale, gains, best_discounts, curve)


@inner
def expected_dcg(
    labels: Floats, ties: Positions, scale: float, gains: Doubles, discounts: Doubles, curve: int
) -> float:
    """The mean of the DCG over all orders of ties: each document has the mean gain of its tie."""
    total = 0.0
    position = 0
    while position < min(len(labels), len(discounts)):
        end = ties[position]
        total_gain = total_discount = 0.0
        for other in range(position, end):
            total_gain += gain(labels[other], scale, gains, curve)
        for other in range(position, min(end, len(discounts))):
            total_discount += discounts[other]
        total += total_gain / (end - position) * total_discount
        position = end
    return total

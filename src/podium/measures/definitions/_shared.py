"""Parameters and counts that several measures share."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import numpy as np

from podium.data.gains import DISCOUNTS as DISCOUNT_NAMES
from podium.data.gains import GAINS as GAIN_NAMES
from podium.kernels import Doubles, Floats, inner
from podium.measures.compiled import Positions
from podium.measures.parameters import Parameter, integer_from, number_between, word_or_numbers

Rel: TypeAlias = Annotated[
    float,
    Parameter("The least label that counts as relevant.", number_between(-math.inf, math.inf)),
]
Gains: TypeAlias = Annotated[
    Doubles,
    Parameter(
        "The gain of a label: 'exponential', 'linear', or the gain of each label from 0 on.",
        word_or_numbers(*GAIN_NAMES),
    ),
]
Discounts: TypeAlias = Annotated[
    Doubles,
    Parameter(
        "The weight of a rank: 'log2', 'letor', 'reciprocal', or the discount of each rank from 1 "
        "on.",
        word_or_numbers(*DISCOUNT_NAMES),
    ),
]
TopK: TypeAlias = Annotated[
    int, Parameter("The length of the top-k order that is the ground truth.", integer_from(1))
]
Persistence: TypeAlias = Annotated[
    float,
    Parameter(
        "The probability that a user who looked at a document looks at the next one.",
        number_between(0.0, 1.0),
        decimals=True,
    ),
]


@inner
def count_relevant(ideal: Floats, rel: float) -> int:
    """Count the relevant documents of the pool."""
    count = 0
    while count < len(ideal) and ideal[count] >= rel:
        count += 1
    return count


@inner
def count_hits(labels: Floats, rel: float, cut: int) -> float:
    """Count the relevant documents among the first."""
    hits = 0
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            hits += 1
    return float(hits)


@inner
def count_tied_hits(labels: Floats, rel: float, begin: int, end: int) -> int:
    """Count the relevant documents of a tie."""
    hits = 0
    for position in range(begin, end):
        if labels[position] >= rel:
            hits += 1
    return hits


@inner
def expected_hits(labels: Floats, ties: Positions, rel: float, cut: int) -> float:
    """Count the relevant documents among the first, as a mean over the orders of ties."""
    hits = 0.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        tied_hits = count_tied_hits(labels, rel, begin, end)
        hits += tied_hits * (min(end, cut) - begin) / (end - begin)
        begin = end
    return hits


@inner
def count_larger(ideal: Floats, label: float) -> int:
    """Count the labels, which come largest first, that are larger than one."""
    low, high = 0, len(ideal)
    while low < high:
        middle = (low + high) // 2
        if ideal[middle] > label:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def top_k_labels(labels: Floats, ideal: Floats, k: int, size: int) -> Floats:
    """Return ``k + 1 - position`` for the k best documents of a query, 0 for the others.

    The position counts the documents with larger labels, so any labels may be given: a top-k
    order, a full order, or grades, of which equal ones share a position.

    Args:
        labels: The labels, of which the first ``size`` are converted.
        ideal: The labels of all documents of the query, largest first.
        k: The length of the order.
        size: How many labels to make.
    """
    converted = np.zeros(size, np.float32)
    for position in range(size):
        if labels[position] > 0.0:
            converted[position] = max(k - count_larger(ideal, labels[position]), 0)
    return converted

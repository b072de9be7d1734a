"""Parameters and counts that several measures share."""

from __future__ import annotations

import math

from podium.data.gains import DISCOUNTS as DISCOUNT_NAMES
from podium.data.gains import GAINS as GAIN_NAMES
from podium.kernels import Floats, kernel
from podium.measures.compiled.ranked import Places
from podium.measures.value import Parameter, number_between, whole_from, word_or_numbers

REL = Parameter(
    "rel",
    "The least label that counts as relevant.",
    number_between(-math.inf, math.inf),
)
GAINS = Parameter(
    "gains",
    "What a label is worth: 'exponential', 'linear', or the gain of each label from 0 on.",
    word_or_numbers(*GAIN_NAMES),
)
DISCOUNTS = Parameter(
    "discounts",
    "What a rank counts: 'log2', 'letor', 'reciprocal', or the discount of each rank from 1 on.",
    word_or_numbers(*DISCOUNT_NAMES),
)
K = Parameter("k", "The length of the top-k order that is the truth.", whole_from(1), 10)


def persistence(default: float) -> Parameter:
    """The chance of looking at the next document."""
    return Parameter(
        "p",
        "The chance that a user who looked at a document looks at the next one.",
        number_between(0.0, 1.0),
        default,
        decimals=True,
    )


@kernel
def relevant_in(ideal: Floats, rel: float) -> int:
    """How many documents of the pool are relevant."""
    count = 0
    while count < len(ideal) and ideal[count] >= rel:
        count += 1
    return count


@kernel
def hits_in(labels: Floats, rel: float, cut: int) -> float:
    """How many of the first documents are relevant."""
    hits = 0
    for place in range(min(len(labels), cut)):
        if labels[place] >= rel:
            hits += 1
    return float(hits)


@kernel
def hits_between(labels: Floats, rel: float, begin: int, end: int) -> int:
    """How many of the documents of a tie are relevant."""
    hits = 0
    for place in range(begin, end):
        if labels[place] >= rel:
            hits += 1
    return hits


@kernel
def expected_hits_in(labels: Floats, ties: Places, rel: float, cut: int) -> float:
    """How many of the first documents are relevant, in the mean over the orders of ties."""
    hits = 0.0
    place = 0
    while place < min(len(labels), cut):
        end = ties[place]
        inside = hits_between(labels, rel, place, end)
        hits += inside * (min(end, cut) - place) / (end - place)
        place = end
    return hits


@kernel
def larger_in(ideal: Floats, label: float) -> int:
    """How many labels, which come largest first, are larger than one."""
    low, high = 0, len(ideal)
    while low < high:
        middle = (low + high) // 2
        if ideal[middle] > label:
            low = middle + 1
        else:
            high = middle
    return low

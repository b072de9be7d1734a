"""The orders of documents with equal scores, for measures without a formula for their mean.

``ends`` has for each position of a list the position after the last document of the same score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import inner, kernel
from podium.measures.compiled import Positions

ORDERS = 1000
"""A mean is exact up to this many distinct orders; beyond, it is over a sample of this size."""

_SEED = np.uint64(0)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


@kernel
def first_order(labels: NDArray[np.floating], ends: Positions) -> None:
    """Sort the labels of each tie, so that what follows does not depend on the order of rows."""
    begin = 0
    while begin < len(labels):
        end = ends[begin]
        labels[begin:end] = np.sort(labels[begin:end])  # NaN, not judged, comes last
        begin = end


@kernel
def count_orders(labels: NDArray[np.floating], ends: Positions) -> int:
    """Count the distinct orders of sorted labels, up to one more than ``ORDERS``."""
    count = 1.0
    begin = 0
    while begin < len(labels):
        equal = 0
        for position in range(begin, ends[begin]):
            is_new = position == begin or _before(labels[position - 1], labels[position])
            equal = 1 if is_new else equal + 1
            count = count * (position - begin + 1) / equal  # a multinomial coefficient at each step
            if count > ORDERS:
                return ORDERS + 1
        begin = ends[begin]
    return int(count)


@kernel
def next_order(labels: NDArray[np.floating], ends: Positions) -> None:
    """Put the labels in the next of their distinct orders; after the last comes the first."""
    begin = 0
    while begin < len(labels):
        end = ends[begin]
        if _next_permutation(labels, begin, end):
            return
        begin = end


@kernel
def next_sample(
    labels: NDArray[np.floating], ends: Positions, sample: int, state: NDArray[np.uint64]
) -> None:
    """Put the labels in a random order.

    Each tie is shuffled, then rotated until every document has been at every rank: a measure that
    adds up something for each document has its exact mean after each round.
    """
    begin = 0
    while begin < len(labels):
        end = ends[begin]
        if sample % (end - begin) == 0:
            for last in range(end - 1, begin, -1):
                other = begin + int(_random(state) % np.uint64(last - begin + 1))
                labels[last], labels[other] = labels[other], labels[last]
        else:
            first = labels[begin]
            for position in range(begin, end - 1):
                labels[position] = labels[position + 1]
            labels[end - 1] = first
        begin = end


@kernel
def seed() -> NDArray[np.uint64]:
    """Return the state of a generator of random numbers that is the same for every query."""
    return np.full(1, _SEED)


@inner
def _random(state: NDArray[np.uint64]) -> np.uint64:
    """Draw 64 random bits (SplitMix64): NumPy's generators cannot be seeded within a kernel."""
    state[0] += _STEP
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST_FACTOR
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_FACTOR
    return np.uint64(bits ^ (bits >> np.uint64(31)))


@inner
def _before(label: float, other: float) -> bool:
    return bool(label < other or (np.isnan(other) and not np.isnan(label)))


@inner
def _next_permutation(labels: NDArray[np.floating], begin: int, end: int) -> bool:
    """Make the next permutation in lexicographic order; False after the last, which is reversed."""
    pivot = end - 2
    while pivot >= begin and not _before(labels[pivot], labels[pivot + 1]):
        pivot -= 1
    if pivot >= begin:
        successor = end - 1
        while not _before(labels[pivot], labels[successor]):
            successor -= 1
        labels[pivot], labels[successor] = labels[successor], labels[pivot]
    low, high = pivot + 1, end - 1
    while low < high:
        labels[low], labels[high] = labels[high], labels[low]
        low += 1
        high -= 1
    return bool(pivot >= begin)

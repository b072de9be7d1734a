"""Labels in ranked order, and the labels of the pool in their best order."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Floats, Ints, inner, lazy_kernel
from podium.measures.compiled import Positions
from podium.measures.compiled.ranking import sort_by_score

REFUSE, AS_ZERO, AS_UNJUDGED, KEEP = range(4)
"""What to do with a label below 0."""

# Integer labels below this are sorted by counting.
_GRADES = 64


@inner
def _read(label: float, negative: int) -> float:
    if label < 0.0 and negative == AS_ZERO:
        return 0.0
    if label < 0.0 and negative == AS_UNJUDGED:
        return np.nan
    return label


@lazy_kernel
def drop_unjudged(
    labels: Floats, offsets: Ints, first: int, order: Positions, kept: Ints, negative: int
) -> None:
    """Remove unjudged documents from the rankings."""
    base = offsets[first]
    for query in range(len(kept)):
        begin = offsets[first + query]
        count = 0
        for at in range(begin - base, begin - base + kept[query]):
            if not np.isnan(_read(labels[begin + order[at]], negative)):
                order[begin - base + count] = order[at]
                count += 1
        kept[query] = count


@lazy_kernel
def take_labels(
    labels: Floats,
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    negative: int,
    ranked: Floats,
) -> float:
    """Write the labels of ranked documents, best first; return the least label met."""
    base = offsets[first]
    least = np.float32(0.0)
    for query in range(len(kept)):
        begin = offsets[first + query]
        for at in range(begin - base, begin - base + kept[query]):
            label = np.float32(_read(labels[begin + order[at]], negative))
            ranked[at] = label
            least = min(least, label) if label < least else least
    return float(least)


def sort_pool(
    labels: Floats,
    offsets: Ints,
    first: int,
    last: int,
    negative: int,
    ideal: Floats,
    judged: Ints,
) -> tuple[float, float, bool]:
    """Write the known labels of each query, largest first, and how many there are.

    Returns:
        The least and the largest label met, and whether all are integers.
    """
    largest, unsorted = _count_grades(labels, offsets, first, last, ideal, judged)
    if unsorted == 0:
        return 0.0, largest, True
    # A separate kernel, so that plain grades do not wait for it to compile.
    least, other, integral = _sort_labels(labels, offsets, first, last, negative, ideal, judged)
    return least, max(largest, other), integral


@lazy_kernel
def _count_grades(
    labels: Floats, offsets: Ints, first: int, last: int, ideal: Floats, judged: Ints
) -> tuple[float, int]:
    """Sort labels that are small integers by counting them.

    Returns:
        The largest, and how many queries are left to sort, whose ``judged`` is -1.
    """
    base = offsets[first]
    largest = unsorted = 0
    counts = np.zeros(_GRADES, np.int64)
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        highest = 0
        row = begin
        while row < end:
            label = labels[row]
            if not (label >= 0.0 and label < _GRADES and int(label) == label):
                break
            counts[int(label)] += 1
            highest = max(highest, int(label))
            row += 1
        if row == end:
            at = begin - base
            for grade in range(highest, -1, -1):
                for _ in range(counts[grade]):
                    ideal[at] = grade
                    at += 1
                counts[grade] = 0
            judged[query - first] = end - begin
            largest = max(largest, highest)
        else:
            for grade in range(highest + 1):  # assigning to a slice takes long to compile
                counts[grade] = 0
            judged[query - first] = -1
            unsorted += 1
    return float(largest), unsorted


@lazy_kernel
def _sort_labels(
    labels: Floats,
    offsets: Ints,
    first: int,
    last: int,
    negative: int,
    ideal: Floats,
    judged: Ints,
) -> tuple[float, float, bool]:
    """Sort the labels of the remaining queries."""
    base = offsets[first]
    least = largest = 0.0
    integral = True
    for query in range(first, last):
        if judged[query - first] >= 0:
            continue
        begin, end = offsets[query], offsets[query + 1]
        known = np.empty(end - begin, np.float32)
        size = 0
        for row in range(begin, end):
            label = _read(labels[row], negative)
            if not np.isnan(label):
                known[size] = label
                size += 1
                least, largest = min(least, label), max(largest, label)
                integral = integral and label == np.floor(label)
        order = np.arange(size, dtype=np.int32)
        sort_by_score(known, order, size, np.empty(size, np.int32))
        for at in range(size):
            ideal[begin - base + at] = known[order[at]]
        judged[query - first] = size
    return least, largest, integral


@lazy_kernel
def sort_by_gain(ideal: Floats, starts: Ints, judged: Ints, gains: Doubles) -> None:
    """Sort the labels of each query, integers with a gain each, by descending gain."""
    for query in range(len(judged)):
        labels = ideal[starts[query] : starts[query] + judged[query]]
        for at in range(1, len(labels)):
            label = labels[at]
            position = at
            while position > 0 and gains[int(labels[position - 1])] < gains[int(label)]:
                labels[position] = labels[position - 1]
                position -= 1
            labels[position] = label

"""Orders inside compiled losses: the first documents of a query by some key, and its top k.

The top k of a query are the k documents with the largest labels. Documents tied with the k-th are
included, since the labels prefer none of them; those with the lowest label are not, since they
are preferred to nothing. So the top k of grades 2, 1, 1, 0, 0 are the first three, for k = 2 and
for k = 5.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from podium.kernels import Doubles, Ints, inner, kernel
from podium.losses.compiled import top

# Numba would compile a function once more for a literal 0.
ROOT = cast(int, np.int64(0))


@inner
def _before(keys: Doubles, ties: Doubles, one: int, other: int) -> bool:
    """Whether a row comes first: by key, then by tie-breaker (larger first), then as given."""
    if keys[one] != keys[other]:
        return bool(keys[one] > keys[other])
    if ties[one] != ties[other]:
        return bool(ties[one] > ties[other])
    return one < other


@inner
def _sink(keys: Doubles, ties: Doubles, rows: Ints, index: int, size: int) -> None:
    """Restore a heap whose root is the last row of the order, after ``rows[index]`` changed."""
    row = rows[index]
    while True:
        child = 2 * index + 1
        if child >= size:
            break
        if child + 1 < size and _before(keys, ties, rows[child], rows[child + 1]):
            child += 1
        if not _before(keys, ties, row, rows[child]):
            break
        rows[index] = rows[child]
        index = child
    rows[index] = row


@inner
def _gather(keys: Doubles, ties: Doubles, count: int, rows: Ints) -> None:
    """Write the first ``count`` rows to ``rows`` as a heap, the last of them at its root."""
    for row in range(count):
        rows[row] = row
    for index in range(count // 2 - 1, -1, -1):
        _sink(keys, ties, rows, index, count)
    for row in range(count, len(keys)):
        if _before(keys, ties, row, rows[0]):
            rows[0] = row
            _sink(keys, ties, rows, ROOT, count)


@inner
def first_rows(keys: Doubles, ties: Doubles, count: int, rows: Ints) -> None:
    """Write the first ``count`` rows, in order, to ``rows``; equal keys are ordered by ``ties``.

    A heap of ``count`` rows: O(n log count), and for rows in no particular order, few of which
    enter the heap, O(n + count log count log n).
    """
    if count > 0:
        _gather(keys, ties, count, rows)
    for size in range(count - 1, 0, -1):
        rows[0], rows[size] = rows[size], rows[0]
        _sink(keys, ties, rows, ROOT, size)


@inner
def count_from(labels: Doubles, edge: float) -> int:
    """Count the labels of at least ``edge``."""
    count = 0
    for label in labels:
        count += label >= edge
    return count


@inner
def top_edge(labels: Doubles, k: int, rows: Ints) -> float:
    """The smallest label of the top k, infinite if no label is above another; no order needed."""
    lowest = labels[0]
    edge = math.inf
    for label in labels:
        if label < lowest:
            lowest, edge = label, lowest
        elif label > lowest:
            edge = min(edge, label)
    if k >= count_from(labels, edge):
        return edge
    _gather(labels, labels, k, rows)
    return float(labels[rows[0]])


@inner
def top_rows(labels: Doubles, k: int, rows: Ints) -> int:
    """Write the top k to ``rows``, best first, and return how many they are."""
    count = count_from(labels, top_edge(labels, k, rows))
    first_rows(labels, labels, count, rows)
    return count


@inner
def top_targets(labels: Doubles, k: int, rows: Ints, targets: Doubles) -> bool:
    """Write target scores: labels of the top k, less that of the best document below it; else 0.

    Returns:
        Whether any target is above another.
    """
    edge = top_edge(labels, k, rows)
    base = -math.inf
    for label in labels:
        if label < edge:
            base = max(base, label)
    for row in range(len(labels)):
        targets[row] = labels[row] - base if labels[row] >= edge else 0.0
    return edge < math.inf


def top_documents(labels: Doubles, offsets: Ints, k: int | None) -> tuple[Ints, Ints]:
    """Return the rows of each query's top k, best first, and the offsets of the queries.

    Documents tied with the k-th are included, those with the query's lowest label are not.

    Example:
        >>> labels, offsets = np.array([0.0, 2.0, 1.0, 1.0, 1.0]), np.array([0, 3, 5])
        >>> rows, starts = top_documents(labels, offsets, k=1)
        >>> rows.tolist(), starts.tolist()
        ([1], [0, 1, 1])
    """
    chosen, starts = np.empty(len(labels), np.int64), np.empty_like(offsets)
    _choose(labels, offsets, top(k), chosen, starts)
    return chosen[: starts[-1]], starts


@kernel
def _choose(labels: Doubles, offsets: Ints, k: int, chosen: Ints, starts: Ints) -> None:
    total = 0
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        starts[query] = total
        if end > begin:
            count = top_rows(labels[begin:end], k, chosen[total:])
            for index in range(total, total + count):
                chosen[index] += begin
            total += count
    starts[-1] = total

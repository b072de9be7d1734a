"""Ranking the documents of each query by score: the hot loop behind every measure.

All buffers are of one block of queries, aligned with its rows: the documents of a query are at
``order[start:start + kept]``, best first, as row numbers within the query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Ints, inner, lazy_kernel
from podium.measures.compiled import Booleans, Positions

# Up to this many documents it is fastest to count, for each, those with larger scores.
_COUNTED = 512


def rank_rows(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    last: int,
    cut: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
) -> int:
    """Rank the queries ``first`` up to ``last`` by descending score, ties in input order.

    Args:
        scores: The scores of all rows.
        offsets: Where each query's rows begin.
        first: The first query of the block.
        last: The query after the last.
        cut: How many documents of a query must be ranked; with them come all that are tied.
        order: Filled with the documents of each query, best first.
        kept: Filled with how many documents of each query were ranked.
        tied: Filled with whether there are equal scores among them.

    Returns:
        The first query that has a score which is not a number, or -1.
    """
    unranked = _count(scores, offsets, first, last, order, kept, tied)
    # A separate kernel, so that short lists without ties do not wait for it to compile.
    return _sort(scores, offsets, first, last, cut, order, kept, tied) if unranked else -1


@lazy_kernel
def _count(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    last: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
) -> int:
    """Rank short lists without ties by counting, for each document, those with larger scores.

    Returns:
        How many queries are left to rank, whose ``kept`` is -1.
    """
    base = offsets[first]
    unranked = 0
    rounded = np.empty(_COUNTED + 8, np.float32)
    for query in range(first, last):
        begin, size = offsets[query], offsets[query + 1] - offsets[query]
        tied[query - first] = False
        kept[query - first] = size
        if size <= _COUNTED:
            # Rounding to 32 bits keeps the order of scores that stay different, and the processor
            # compares twice as many of them at once; padding to a multiple of 8 spares it the
            # remainders. A separate function for this loop would be three times as slow.
            for row in range(size):
                rounded[row] = scores[begin + row]
            padded = (size + 7) // 8 * 8
            for row in range(size, padded):
                rounded[row] = -np.inf
            others = rounded[:padded]
            total = np.int64(0)
            for row in range(size):
                score = rounded[row]
                larger = np.uint32(0)
                for other in others:
                    larger = np.uint32(larger + np.uint32(other > score))
                order[begin - base + np.int64(larger)] = np.int32(row)
                total += np.int64(larger)
            # Ranks add up to this only if all are different; with NaN they do not.
            if total == size * (size - 1) // 2 and (size != 1 or rounded[0] == rounded[0]):
                continue
        kept[query - first] = -1
        unranked += 1
    return unranked


@lazy_kernel
def _sort(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    last: int,
    cut: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
) -> int:
    """Rank the remaining queries by sorting them."""
    base = offsets[first]
    widest = 0
    for query in range(first, last):
        widest = max(widest, offsets[query + 1] - offsets[query])
    spare = np.empty(widest, np.int32)
    for query in range(first, last):
        if kept[query - first] >= 0:
            continue
        begin, size = offsets[query], offsets[query + 1] - offsets[query]
        query_scores = scores[begin : begin + size]
        rows = order[begin - base : begin - base + size]
        for index in range(size):
            rows[index] = index
            if np.isnan(query_scores[index]):
                return query
        if cut <= size // 8:
            size = _candidates(query_scores, cut, rows)
        sort_by_score(query_scores, rows, size, spare)
        kept[query - first] = size
        for index in range(1, size):
            if query_scores[rows[index]] == query_scores[rows[index - 1]]:
                tied[query - first] = True
                break
    return -1


@inner
def _candidates(scores: NDArray[np.floating], cut: int, rows: Positions) -> int:
    """Find the documents with the ``cut`` largest scores, and those tied with the last of them."""
    largest = np.full(cut, -np.inf, scores.dtype)  # smallest first
    for index in range(len(scores)):
        score = scores[index]
        if score > largest[0]:
            at = 1
            while at < cut and largest[at] < score:
                largest[at - 1] = largest[at]
                at += 1
            largest[at - 1] = score
    count = 0
    for index in range(len(scores)):
        if scores[index] >= largest[0]:
            rows[count] = index
            count += 1
    return count


@inner
def sort_by_score(
    scores: NDArray[np.floating], rows: Positions, size: int, spare: Positions
) -> None:
    """Merge sort by descending score, stable: runs of 16 by insertion, then merged."""
    for begin in range(0, size, 16):
        for at in range(begin + 1, min(begin + 16, size)):
            row = rows[at]
            target = at
            while target > begin and scores[rows[target - 1]] < scores[row]:
                rows[target] = rows[target - 1]
                target -= 1
            rows[target] = row
    width = 16
    while width < size:
        for begin in range(0, size - width, 2 * width):
            middle, end = begin + width, min(begin + 2 * width, size)
            for at in range(begin, middle):
                spare[at - begin] = rows[at]
            left, right, target = 0, middle, begin
            while left < width and right < end:
                if scores[rows[right]] > scores[spare[left]]:
                    rows[target] = rows[right]
                    right += 1
                else:
                    rows[target] = spare[left]
                    left += 1
                target += 1
            while left < width:
                rows[target] = spare[left]
                left += 1
                target += 1
        width *= 2

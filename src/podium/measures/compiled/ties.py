"""Rules for documents with equal scores, on rankings that have them in input order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Bytes, Floats, Ints, inner, kernel, lazy_kernel
from podium.measures.compiled import Booleans, Positions


@inner
def _end_of_tie(scores: NDArray[np.floating], rows: Positions, at: int) -> int:
    end = at + 1
    while end < len(rows) and scores[rows[end]] == scores[rows[at]]:
        end += 1
    return end


@inner
def _comes_before(starts: Ints, text: Bytes, one: int, other: int) -> bool:
    """Whether the bytes of one id come before those of another."""
    here, there = starts[one], starts[other]
    length = min(starts[one + 1] - here, starts[other + 1] - there)
    for index in range(length):
        if text[here + index] != text[there + index]:
            return bool(text[here + index] < text[there + index])
    return bool(starts[one + 1] - here < starts[other + 1] - there)


@lazy_kernel
def order_ties_by_id(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
    starts: Ints,
    text: Bytes,
    descending: bool,
) -> None:
    """Order documents with equal scores by the bytes of their ids."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        query_scores = scores[begin : offsets[first + query + 1]]
        rows = order[begin - base : begin - base + kept[query]]
        at = 0
        while at < len(rows):
            end = _end_of_tie(query_scores, rows, at)
            for here in range(at + 1, end):
                row = rows[here]
                target = here
                while target > at:
                    above, below = begin + rows[target - 1], begin + row
                    if descending:
                        above, below = below, above
                    if not _comes_before(starts, text, below, above):
                        break
                    rows[target] = rows[target - 1]
                    target -= 1
                rows[target] = row
            at = end


@lazy_kernel
def order_ties_by_label(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
    labels: Floats,
    best_first: bool,
) -> None:
    """Order documents with equal scores by their labels; not judged counts as 0."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        query_scores = scores[begin : offsets[first + query + 1]]
        rows = order[begin - base : begin - base + kept[query]]
        sign = 1.0 if best_first else -1.0
        at = 0
        while at < len(rows):
            end = _end_of_tie(query_scores, rows, at)
            for here in range(at + 1, end):
                row = rows[here]
                key = sign * _known(labels[begin + row])
                target = here
                while target > at and sign * _known(labels[begin + rows[target - 1]]) < key:
                    rows[target] = rows[target - 1]
                    target -= 1
                rows[target] = row
            at = end


@inner
def _known(label: float) -> float:
    return 0.0 if np.isnan(label) else label


@kernel
def order_by_quicksort(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
) -> None:
    """Rank again with Numba's quicksort, which leaves ties in an arbitrary order."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin, end = offsets[first + query], offsets[first + query + 1]
        sorted_rows = np.argsort(-scores[begin:end])
        for position in range(len(sorted_rows)):
            order[begin - base + position] = sorted_rows[position]
        kept[query] = end - begin


@lazy_kernel
def mark_ties(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
    ties: Positions,
) -> None:
    """Write, for each position of a query with ties, the position after the last of its score."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        query_scores = scores[begin : offsets[first + query + 1]]
        rows = order[begin - base : begin - base + kept[query]]
        at = 0
        while at < len(rows):
            end = _end_of_tie(query_scores, rows, at)
            ties[begin - base + at : begin - base + end] = end
            at = end


@lazy_kernel
def fill_ranks(
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    ties: Positions,
    tied: Booleans,
    ranks: NDArray[np.float64],
) -> None:
    """Write the rank, from 1, of each row; marked ties share the mean of their ranks."""
    base = offsets[first]
    for query in range(len(kept)):
        start = offsets[first + query] - base
        at = 0
        while at < kept[query]:
            end = ties[start + at] if len(ties) and tied[query] else at + 1
            for position in range(at, end):
                ranks[start + order[start + position]] = (at + end + 1) / 2
            at = end

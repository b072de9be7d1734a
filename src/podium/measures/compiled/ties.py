"""Rules for documents with equal scores, on rankings that have them in input order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Bytes, Floats, Ints, kernel
from podium.measures.compiled.arrays import Booleans, Positions


@kernel
def _end_of_tie(scores: NDArray[np.floating], places: Positions, at: int) -> int:
    end = at + 1
    while end < len(places) and scores[places[end]] == scores[places[at]]:
        end += 1
    return end


@kernel
def _comes_before(starts: Ints, text: Bytes, one: int, other: int) -> bool:
    """Whether the bytes of one id come before those of another."""
    here, there = starts[one], starts[other]
    length = min(starts[one + 1] - here, starts[other + 1] - there)
    for place in range(length):
        if text[here + place] != text[there + place]:
            return bool(text[here + place] < text[there + place])
    return bool(starts[one + 1] - here < starts[other + 1] - there)


@kernel
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
    """Put documents with equal scores in the order of the bytes of their ids."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        own = scores[begin : offsets[first + query + 1]]
        places = order[begin - base : begin - base + kept[query]]
        at = 0
        while at < len(places):
            end = _end_of_tie(own, places, at)
            for here in range(at + 1, end):
                place = places[here]
                to = here
                while to > at:
                    above, below = begin + places[to - 1], begin + place
                    if descending:
                        above, below = below, above
                    if not _comes_before(starts, text, below, above):
                        break
                    places[to] = places[to - 1]
                    to -= 1
                places[to] = place
            at = end


@kernel
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
    """Put documents with equal scores in the order of their labels; not judged counts as 0."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        own = scores[begin : offsets[first + query + 1]]
        places = order[begin - base : begin - base + kept[query]]
        sign = 1.0 if best_first else -1.0
        at = 0
        while at < len(places):
            end = _end_of_tie(own, places, at)
            for here in range(at + 1, end):
                place = places[here]
                worth = sign * _known(labels[begin + place])
                to = here
                while to > at and sign * _known(labels[begin + places[to - 1]]) < worth:
                    places[to] = places[to - 1]
                    to -= 1
                places[to] = place
            at = end


@kernel
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
    """Rank anew with Numba's own quicksort, which leaves ties in an order without meaning."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin, end = offsets[first + query], offsets[first + query + 1]
        found = np.argsort(-scores[begin:end])
        for place in range(len(found)):
            order[begin - base + place] = found[place]
        kept[query] = end - begin


@kernel
def mark_ties(
    scores: NDArray[np.floating],
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    tied: Booleans,
    ties: Positions,
) -> None:
    """For each place of a query with ties, the place after the last document of its score."""
    base = offsets[first]
    for query in range(len(kept)):
        if not tied[query]:
            continue
        begin = offsets[first + query]
        own = scores[begin : offsets[first + query + 1]]
        places = order[begin - base : begin - base + kept[query]]
        at = 0
        while at < len(places):
            end = _end_of_tie(own, places, at)
            ties[begin - base + at : begin - base + end] = end
            at = end


@kernel
def fill_ranks(
    offsets: Ints,
    first: int,
    order: Positions,
    kept: Ints,
    ties: Positions,
    tied: Booleans,
    ranks: NDArray[np.float64],
) -> None:
    """The rank, from 1, of each row; where ties are marked they share the mean of their ranks."""
    base = offsets[first]
    for query in range(len(kept)):
        start = offsets[first + query] - base
        at = 0
        while at < kept[query]:
            end = ties[start + at] if len(ties) and tied[query] else at + 1
            for place in range(at, end):
                ranks[start + order[start + place]] = (at + end + 1) / 2
            at = end

"""The lists that a measure looks at, ranked as its conventions say, some queries at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Floats, Ints, kernel
from podium.measures.compiled.arrays import Booleans, Positions
from podium.measures.compiled.blocks import RankingPlan, blocks
from podium.measures.compiled.prepared import PreparedMeasure
from podium.measures.inputs import Inputs


class Lists(NamedTuple):
    """Ranked and ideal lists of some queries, one after the other.

    Attributes:
        labels: Of the ranked documents, as far as the cut-off and all that are tied with the last;
            NaN where a document was not judged.
        ends: For each of them the position in its list after the last document that it is tied
            with, where ties are averaged over; else the next position.
        starts: Where each query's list begins, and the number of documents last.
        ideal: The labels of the pool, largest first.
        ideal_starts: Where each query's pool begins, and the number of documents last.
        sizes: How many documents were ranked for each query.
        zero: Which queries have a value of 0 because their list is too short.
    """

    labels: Floats
    ends: Positions
    starts: Ints
    ideal: Floats
    ideal_starts: Ints
    sizes: Ints
    zero: Booleans


def ranked_lists(prepared: PreparedMeasure, inputs: Inputs, first: int, last: int) -> Lists:
    """Return the lists of the queries ``first`` up to ``last``."""
    own = prepared.conventions
    plan = RankingPlan(own, prepared.depth, needs_ideal=True)
    labels, ends, ideal, kept, judged, shown = [], [], [], [], [], []
    for block in blocks(plan, inputs, first, last):
        rows, pool = int(block.kept.sum()), int(block.judged.sum())
        packed, packed_ends = np.empty(rows, np.float32), np.empty(rows, np.int32)
        packed_ideal = np.empty(pool, np.float32)
        _pack(block.ranked, block.starts, block.kept, block.ties, block.tied, packed, packed_ends)
        _pack_ideal(block.ideal, block.ideal_starts, block.judged, packed_ideal)
        labels.append(packed)
        ends.append(packed_ends)
        ideal.append(packed_ideal)
        kept.append(block.kept.copy())
        judged.append(block.judged.copy())
        sizes = np.diff(inputs.offsets[block.first : block.last + 1])
        shown.append(block.kept.copy() if own.unjudged == "drop" else sizes)
    sizes = np.concatenate(shown)
    cut = prepared.cut_off
    short = own.short_list == "zero" and cut is not None
    return Lists(
        np.concatenate(labels),
        np.concatenate(ends),
        _starts(kept),
        np.concatenate(ideal),
        _starts(judged),
        sizes,
        sizes < cut if short and cut is not None else np.zeros(len(sizes), np.bool_),
    )


def _starts(counts: list[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.concatenate(counts))))


@kernel
def _pack(
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    ties: Positions,
    tied: Booleans,
    labels: Floats,
    ends: Positions,
) -> None:
    target = 0
    for query in range(len(starts)):
        for position in range(kept[query]):
            labels[target] = ranked[starts[query] + position]
            ends[target] = ties[starts[query] + position] if tied[query] else position + 1
            target += 1


@kernel
def _pack_ideal(ideal: Floats, starts: Ints, judged: Ints, labels: NDArray[np.float32]) -> None:
    target = 0
    for query in range(len(starts)):
        for position in range(judged[query]):
            labels[target] = ideal[starts[query] + position]
            target += 1

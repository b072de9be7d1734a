"""Ranking queries block by block, and calling every measure on a block while it is in cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from podium.data.ids import string_buffers
from podium.errors import DataError
from podium.kernels import Floats, Ints
from podium.measures.compiled import Positions
from podium.measures.compiled.ideal import (
    AS_UNJUDGED,
    AS_ZERO,
    KEEP,
    REFUSE,
    drop_unjudged,
    sort_by_gain,
    sort_pool,
    take_labels,
)
from podium.measures.compiled.ranking import rank_rows
from podium.measures.compiled.ties import (
    mark_ties,
    order_by_quicksort,
    order_ties_by_id,
    order_ties_by_label,
)
from podium.measures.conventions import Conventions, Ties
from podium.measures.inputs import Inputs

# Rows of a block: its buffers stay in cache, and calls from Python, which take the GIL, are rare.
_ROWS = 1 << 18

_NEGATIVE = {"refuse": REFUSE, "irrelevant": AS_ZERO, "unjudged": AS_UNJUDGED}


@dataclass(frozen=True)
class RankingPlan:
    """What measures must have in common to be computed on one ranking.

    Attributes:
        conventions: The conventions; those on ties, labels and the pool matter here.
        depth: How many documents of a query must be ranked; None means all.
        needs_ideal: Whether the pool's labels must be sorted.
        by_gains: The gains by which to sort them, if not by themselves.
        keeps_pooled: Whether a label below 0, where it means pooled and not judged, stays as it is.
    """

    conventions: Conventions
    depth: int | None
    needs_ideal: bool
    by_gains: tuple[float, ...] = ()
    keeps_pooled: bool = False

    @property
    def averages_ties(self) -> bool:
        """Whether measures must know which documents are tied."""
        return self.conventions.ties in ("expected", "together")


@dataclass
class Block:
    """Some queries, ranked. Arrays of rows and of queries begin at the block's first."""

    first: int
    last: int
    starts: Ints
    order: Positions
    kept: Ints
    tied: Any
    ties: Positions
    ranked: Floats
    ideal: Floats
    ideal_starts: Ints
    judged: Ints
    highest: float = 0.0
    whole: bool = True


def blocks(plan: RankingPlan, inputs: Inputs, first: int, last: int) -> Iterator[Block]:
    """Rank queries in blocks; the arrays of a block are those of the next one again."""
    edges = _edges(inputs.offsets, first, last)
    labels, offsets = _pool(plan, inputs)
    rows = max(int(inputs.offsets[b] - inputs.offsets[a]) for a, b in edges)
    pool = max(int(offsets[b] - offsets[a]) for a, b in edges) if plan.needs_ideal else 0
    queries = max(b - a for a, b in edges)
    order, ranked = np.empty(rows, np.int32), np.empty(rows, np.float32)
    ties = np.empty(rows if plan.averages_ties else 0, np.int32)
    ideal = np.empty(pool, np.float32)
    kept, judged = np.empty(queries, np.int64), np.zeros(queries, np.int64)
    tied = np.empty(queries, np.bool_)
    for begin, end in edges:
        count = end - begin
        block = Block(
            first=begin,
            last=end,
            starts=inputs.offsets[begin:end] - inputs.offsets[begin],
            order=order,
            kept=kept[:count],
            tied=tied[:count],
            ties=ties,
            ranked=ranked,
            ideal=ideal,
            ideal_starts=offsets[begin:end] - offsets[begin],
            judged=judged[:count],
        )
        _rank(plan, inputs, block)
        _take(plan, inputs, block, labels, offsets)
        yield block


def _edges(offsets: Ints, first: int, last: int) -> list[tuple[int, int]]:
    edges = [first]
    while edges[-1] < last:
        reach = int(np.searchsorted(offsets, offsets[edges[-1]] + _ROWS, side="right")) - 1
        edges.append(min(max(reach, edges[-1] + 1), last))
    return list(pairwise(edges))


def _pool(plan: RankingPlan, inputs: Inputs) -> tuple[Floats | None, Ints]:
    if plan.conventions.pool == "retrieved":
        return inputs.labels, inputs.offsets
    return inputs.judged_labels, inputs.judged_offsets


def _rank(plan: RankingPlan, inputs: Inputs, block: Block) -> None:
    """Rank by score, and apply the rule for ties."""
    choice = plan.conventions
    scores, offsets, first = inputs.scores, inputs.offsets, block.first
    order, kept, tied = block.order, block.kept, block.tied
    # A list without its unjudged documents may need any number of ranks to reach the depth.
    depth = plan.depth if plan.depth and choice.unjudged != "drop" else 1 << 40
    wrong = rank_rows(scores, offsets, first, block.last, depth, order, kept, tied)
    if wrong >= 0:
        query = inputs.query_ids[wrong].as_py()
        raise DataError(f"a score of query {query!r} is NaN", hint="Give numbers, or drop the row.")
    if tied.any():
        _break_ties(choice.ties, inputs, block)
    if choice.unjudged == "drop" and inputs.labels is not None:
        negative = _NEGATIVE[choice.negative]
        drop_unjudged(inputs.labels, offsets, first, order, kept, negative)
    if not plan.averages_ties:
        tied[:] = False
    elif tied.any():
        mark_ties(scores, offsets, first, order, kept, tied, block.ties)


def _break_ties(rule: Ties, inputs: Inputs, block: Block) -> None:
    """Put documents with equal scores, which are in input order, in that of the rule."""
    ranking = (inputs.scores, inputs.offsets, block.first, block.order, block.kept, block.tied)
    if rule in ("id descending", "id ascending"):
        if inputs.document_ids is None:
            raise DataError(
                "scores are tied, and ties go by document ids, which are unknown",
                hint="Give documents ids, or choose conventions with ties='input order'.",
            )
        order_ties_by_id(*ranking, *string_buffers(inputs.document_ids), rule == "id descending")
    elif rule in ("worst", "best") and inputs.labels is not None:
        order_ties_by_label(*ranking, inputs.labels, rule == "best")
    elif rule == "quicksort":
        order_by_quicksort(*ranking)


def _take(
    plan: RankingPlan, inputs: Inputs, block: Block, pool: Floats | None, pool_offsets: Ints
) -> None:
    """Put labels in ranked order, and the pool's in their best order."""
    if inputs.labels is None or pool is None:
        return
    negative = _NEGATIVE[plan.conventions.negative]
    if negative == AS_UNJUDGED and plan.keeps_pooled:
        negative = KEEP
    least = take_labels(
        inputs.labels, inputs.offsets, block.first, block.order, block.kept, negative, block.ranked
    )
    if plan.needs_ideal:
        lower, block.highest, block.whole = sort_pool(
            pool, pool_offsets, block.first, block.last, negative, block.ideal, block.judged
        )
        if plan.by_gains and block.whole and block.highest < len(plan.by_gains):
            gains = np.array(plan.by_gains, np.float64)
            sort_by_gain(block.ideal, block.ideal_starts, block.judged, gains)
        least = min(least, lower)
        if block.highest == np.inf:
            raise DataError("a label is infinite", hint="Give finite labels; NaN is not judged.")
    if least < 0 and negative != KEEP:
        raise DataError(
            f"there is a label of {least:g}",
            hint="Choose conventions with negative='irrelevant' or negative='unjudged'.",
        )

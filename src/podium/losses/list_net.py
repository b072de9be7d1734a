"""ListNet: the cross entropy between the distributions that labels and scores define."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from podium.errors import DataError
from podium.kernels import Doubles, Ints, inner
from podium.kernels.intrinsics import trailing_zeros
from podium.losses.base import Batch, normalize_k
from podium.losses.compiled import CompiledLoss, index_memory, spread, top, work
from podium.losses.orders import first_rows, top_targets

MOST = 12
"""Documents whose orders are summed over: 2^12 subsets."""


def _top_one(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    rows: Ints,
    memory: Doubles,
) -> float:
    targets, powers = memory[0], memory[1]
    if not top_targets(labels, k, rows[0], targets):
        return 0.0
    size = len(scores)
    _, peak = spread(scores)
    _, most = spread(targets[:size])
    total = target_total = 0.0
    rest = math.exp(-most)
    for row in range(size):
        powers[row] = math.exp(scores[row] - peak)
        total += powers[row]
        targets[row] = math.exp(targets[row] - most) if targets[row] > 0.0 else rest
        target_total += targets[row]
    level = peak + math.log(total)
    value = 0.0
    for row in range(size):
        target, share = targets[row] / target_total, powers[row] / total
        value += target * (level - scores[row])
        gradient[row] = share - target
        curvature[row] = share * (1.0 - share)
    return value


@dataclass(frozen=True)
class ListNet(CompiledLoss):
    """The cross entropy of ``softmax(scores)`` against ``softmax(labels)``.

    With ``k`` the labels keep the order of the top k and give every other document the largest
    label below (Xia et al. 2009, 4.3.3). By default the probabilities are those of being drawn
    first. With ``permutations`` they are those of whole orders of the query's documents, summed
    exactly by subsets, for queries of at most 12: the list term of FocusedNet (Niu et al. 2012),
    whose lists are the top k.

    Smooth and convex; the curvature is exact. O(n log k) for n documents; with permutations
    O(n 2^n).

    Attributes:
        k: How many documents are the top, or None for labels as they are.
        permutations: Whether to compare whole orders instead of first draws.

    Example:
        >>> import math
        >>> value = ListNet().evaluate([0.0, 0.0, 0.0, 0.0], [3, 2, 1, 0], [0, 4]).total
        >>> math.isclose(value, math.log(4))
        True
    """

    k: int | None = None
    permutations: bool = False

    smooth = True
    convex = True

    @property
    def query(self) -> Callable[..., float]:
        """The compiled function."""
        return whole_orders if self.permutations else _top_one

    def __post_init__(self) -> None:
        normalize_k(self)

    def check(self, batch: Batch) -> None:
        """Reject permutations of more than 12 documents."""
        largest = batch.largest(0, len(batch.offsets) - 1)
        if self.permutations and largest > MOST:
            raise DataError(
                f"a query has {largest} documents, too many for all permutations",
                hint=f"At most {MOST}: use it in Focused with labels of a top-k order, "
                "or ListNet without permutations.",
            )

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """K and work memory."""
        shared = top(self.k), index_memory(1, largest)
        if self.permutations:
            subsets = 1 << largest
            return *shared, work(1 + 2 * MOST, MOST), index_memory(1, subsets)[0], work(3, subsets)
        return *shared, work(2, largest)

    def values_at_zero(self, batch: Batch) -> Doubles:
        """Return the values for scores of 0, where all orders are equally likely."""
        if not self.permutations:
            return super().values_at_zero(batch)
        begin, end = batch.offsets[:-1], batch.offsets[1:]
        changes = np.concatenate(([0], np.cumsum(np.diff(batch.labels) != 0), [0]))
        ordered = (end > begin) & (changes[np.maximum(end - 1, 0)] > changes[begin])
        return np.where(ordered, gammaln(end - begin + 1.0), 0.0)


def whole_orders(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    rows: Ints,
    memory: Doubles,
    likeliest: Ints,
    sums: Doubles,
) -> float:
    """The cross entropy of whole orders, by subsets instead of permutations.

    Documents are drawn by the labels until none is left. With ``chances[S]`` the probability that
    the subset S is what remains at some point, the cross entropies of the next draw weighted by it
    add up to that of whole orders. Bits of S are documents in order of score.

    Args:
        scores: The scores of the documents.
        labels: The labels of the documents.
        gradient: Arrives as zeros.
        curvature: Arrives as zeros.
        k: The top whose labels count.
        rows: Work memory.
        memory: Work memory.
        likeliest: Work memory: of each subset, the document with the largest target.
        sums: Work memory: of each subset, the sum of ``exp(score)`` relative to its largest, the
            same of targets, and its chance.
    """
    order, targets = rows[0], memory[0]
    if not top_targets(labels, k, order, targets):
        return 0.0
    size = len(scores)
    first_rows(scores, scores, size, order)
    score_odds, target_odds = memory[1 : 1 + MOST], memory[1 + MOST :]
    for one in range(size):
        for other in range(size):
            score_odds[one, other] = math.exp(min(scores[order[other]] - scores[order[one]], 0.0))
            target_odds[one, other] = math.exp(
                min(targets[order[other]] - targets[order[one]], 0.0)
            )
    totals, target_totals, chances = sums[0], sums[1], sums[2]
    _add_up(score_odds, target_odds, size, likeliest, totals, target_totals)
    full = (1 << size) - 1
    chances[:full] = 0.0
    chances[full] = 1.0
    value = 0.0
    for subset in range(full, 0, -1):
        chance = chances[subset]
        if chance == 0.0:
            continue
        first, likely = trailing_zeros(np.uint64(subset)), likeliest[subset]
        level = scores[order[first]] + math.log(totals[subset])
        by_score, by_target = 1.0 / totals[subset], 1.0 / target_totals[subset]
        remaining = subset
        while remaining:
            bit = trailing_zeros(np.uint64(remaining))
            remaining &= remaining - 1
            row = order[bit]
            share = score_odds[first, bit] * by_score
            target = chance * target_odds[likely, bit] * by_target
            value += target * (level - scores[row])
            gradient[row] += chance * share - target
            curvature[row] += chance * share * (1.0 - share)
            chances[subset ^ (1 << bit)] += target
    return value


@inner
def _add_up(
    score_odds: Doubles,
    target_odds: Doubles,
    size: int,
    likeliest: Ints,
    totals: Doubles,
    targets: Doubles,
) -> None:
    """Sums of each subset from that without its first document, relative to the largest term."""
    for subset in range(1, 1 << size):
        first = trailing_zeros(np.uint64(subset))
        others = subset & (subset - 1)
        likeliest[subset], totals[subset], targets[subset] = first, 1.0, 1.0
        if others:
            totals[subset] += score_odds[first, trailing_zeros(np.uint64(others))] * totals[others]
            likely = likeliest[others]
            if target_odds[likely, first] < 1.0:
                likeliest[subset] = likely
                targets[subset] = targets[others] + target_odds[likely, first]
            else:
                targets[subset] += target_odds[first, likely] * targets[others]

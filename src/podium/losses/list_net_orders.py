"""ListNet over permutations, computed exactly without enumerating all n! of them."""

from __future__ import annotations

import math

import numpy as np

from podium.kernels import Doubles, Ints, inner
from podium.kernels.intrinsics import trailing_zeros
from podium.losses.orders import first_rows, top_targets

MOST = 12
"""Documents whose orders are summed over: 2^12 subsets."""


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

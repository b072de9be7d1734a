"""The structural hinge of measures that discount positions: NDCG and Precision."""

from __future__ import annotations

import math

from podium.data.gains import relative_gains
from podium.kernels import Doubles, Ints, inner
from podium.losses.orders import first_rows, top_edge
from podium.losses.slack_search import BEST_PENALTY, begin_search, next_penalty


def position_hinge(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    graded: bool,
    slack: bool,
    mean_ties: bool,
    discounts: Doubles,
    rows: Ints,
    memory: Doubles,
) -> float:
    """One query's structural hinge: ``discounts[p]`` is what position p counts."""
    size = len(scores)
    right, found = rows[0, : min(size, len(discounts))], rows[1, : min(size, len(discounts))]
    gains, asked, keys = memory[0, :size], memory[1, :size], memory[2, :size]
    edge = top_edge(labels, k, rows[0])
    if edge == math.inf:
        return 0.0
    if graded:
        relative_gains(labels, gains)
    else:
        for row in range(size):
            gains[row] = 1.0 if labels[row] >= edge else 0.0
    first_rows(gains, scores, len(right), right)
    ideal = 0.0
    for place in range(len(right)):
        ideal += discounts[place] * gains[right[place]]
    if ideal <= 0.0:
        return 0.0
    for row in range(size):
        gains[row] /= ideal
        asked[row] = 0.0
    if mean_ties:
        _share_positions(gains, discounts, right, asked)
    else:
        for place in range(len(right)):
            asked[right[place]] = discounts[place]
    wanted = 0.0
    for row in range(size):
        wanted += asked[row] * scores[row]
    if slack:
        state, penalty = begin_search(), 0.0
        while penalty >= 0.0:
            loss, lead = _most_violated(scores, gains, penalty, discounts, wanted, keys, found)
            penalty = next_penalty(state, penalty, loss, lead)
        penalty = state[BEST_PENALTY]
    else:
        penalty = 1.0
    loss, lead = _most_violated(scores, gains, penalty, discounts, wanted, keys, found)
    value = loss * lead if slack else loss + lead - 1.0
    if value <= 0.0:
        return 0.0
    factor = loss if slack else 1.0
    for place in range(len(found)):
        gradient[found[place]] = factor * discounts[place]
    for row in range(size):
        gradient[row] -= factor * asked[row]
        curvature[row] = abs(gradient[row])
    return value


@inner
def _most_violated(
    scores: Doubles,
    gains: Doubles,
    penalty: float,
    discounts: Doubles,
    wanted: float,
    keys: Doubles,
    found: Ints,
) -> tuple[float, float]:
    """The order with the largest ``lead + penalty * loss``: by ``score - penalty * gain``."""
    for row in range(len(scores)):
        keys[row] = scores[row] - penalty * gains[row]
    first_rows(keys, keys, len(found), found)
    loss, lead = 1.0, 1.0 - wanted
    for place in range(len(found)):
        loss -= discounts[place] * gains[found[place]]
        lead += discounts[place] * scores[found[place]]
    return max(loss, 0.0), lead


@inner
def _share_positions(gains: Doubles, discounts: Doubles, right: Ints, asked: Doubles) -> None:
    """Give documents with equal gains the mean discount of the positions they hold together."""
    begin = 0
    while begin < len(right):
        gain = gains[right[begin]]
        end, total = begin, 0.0
        while end < len(right) and gains[right[end]] == gain:
            total += discounts[end]
            end += 1
        for place in range(begin, end):
            asked[right[place]] = total / (end - begin)
        begin = end
    # Of the last group some may be left beyond the cut-off.
    members = 0
    for row in range(len(gains)):
        members += gains[row] == gain
    for row in range(len(gains)):
        if gains[row] == gain:
            asked[row] = total / members

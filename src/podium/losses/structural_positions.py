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
    """One query's structural hinge: ``discounts[p]`` is the weight of position p."""
    size = len(scores)
    correct, violating = rows[0, : min(size, len(discounts))], rows[1, : min(size, len(discounts))]
    gains, target_weights, keys = memory[0, :size], memory[1, :size], memory[2, :size]
    edge = top_edge(labels, k, rows[0])
    if edge == math.inf:
        return 0.0
    if graded:
        relative_gains(labels, gains)
    else:
        for row in range(size):
            gains[row] = 1.0 if labels[row] >= edge else 0.0
    first_rows(gains, scores, len(correct), correct)
    ideal = 0.0
    for index in range(len(correct)):
        ideal += discounts[index] * gains[correct[index]]
    if ideal <= 0.0:
        return 0.0
    for row in range(size):
        gains[row] /= ideal
        target_weights[row] = 0.0
    if mean_ties:
        _share_positions(gains, discounts, correct, target_weights)
    else:
        for index in range(len(correct)):
            target_weights[correct[index]] = discounts[index]
    target_score = 0.0
    for row in range(size):
        target_score += target_weights[row] * scores[row]
    if slack:
        state, penalty = begin_search(), 0.0
        while penalty >= 0.0:
            loss, lead = _most_violated(
                scores, gains, penalty, discounts, target_score, keys, violating
            )
            penalty = next_penalty(state, penalty, loss, lead)
        penalty = state[BEST_PENALTY]
    else:
        penalty = 1.0
    loss, lead = _most_violated(scores, gains, penalty, discounts, target_score, keys, violating)
    value = loss * lead if slack else loss + lead - 1.0
    if value <= 0.0:
        return 0.0
    factor = loss if slack else 1.0
    for index in range(len(violating)):
        gradient[violating[index]] = factor * discounts[index]
    for row in range(size):
        gradient[row] -= factor * target_weights[row]
        curvature[row] = abs(gradient[row])
    return value


@inner
def _most_violated(
    scores: Doubles,
    gains: Doubles,
    penalty: float,
    discounts: Doubles,
    target_score: float,
    keys: Doubles,
    violating: Ints,
) -> tuple[float, float]:
    """The order with the largest ``lead + penalty * loss``: by ``score - penalty * gain``."""
    for row in range(len(scores)):
        keys[row] = scores[row] - penalty * gains[row]
    first_rows(keys, keys, len(violating), violating)
    loss, lead = 1.0, 1.0 - target_score
    for index in range(len(violating)):
        loss -= discounts[index] * gains[violating[index]]
        lead += discounts[index] * scores[violating[index]]
    return max(loss, 0.0), lead


@inner
def _share_positions(
    gains: Doubles, discounts: Doubles, correct: Ints, target_weights: Doubles
) -> None:
    """Give documents with equal gains the mean discount of the positions they share."""
    begin = 0
    while begin < len(correct):
        gain = gains[correct[begin]]
        end, total = begin, 0.0
        while end < len(correct) and gains[correct[end]] == gain:
            total += discounts[end]
            end += 1
        for index in range(begin, end):
            target_weights[correct[index]] = total / (end - begin)
        begin = end
    # Of the last group some may be left beyond the cut-off.
    members = 0
    for row in range(len(gains)):
        members += gains[row] == gain
    for row in range(len(gains)):
        if gains[row] == gain:
            target_weights[row] = total / members

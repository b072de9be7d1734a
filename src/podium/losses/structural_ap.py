"""The structural hinge of average precision, SVM-MAP's."""

from __future__ import annotations

import math

from podium.kernels import Doubles, Ints, inner
from podium.losses.orders import first_rows, top_edge
from podium.losses.slack_search import BEST_PENALTY, begin_search, next_penalty


def average_precision_hinge(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    slack: bool,
    rows: Ints,
) -> float:
    """One query's structural hinge, where the top k are relevant and the rest are not.

    An order scores ``sum over i relevant, j not, of +-(s_i - s_j)``, plus if i comes first, over
    the number of such pairs (Yue et al. 2007). Within both groups the order does not matter.
    """
    size = len(scores)
    order, relevant, other, slots = rows[0], rows[1], rows[2], rows[3]
    edge = top_edge(labels, k, order)
    if edge == math.inf:
        return 0.0
    first_rows(scores, scores, size, order)
    good = bad = 0
    for row in order[:size]:
        if labels[row] >= edge:
            relevant[good] = row
            good += 1
        else:
            other[bad] = row
            bad += 1
    relevant, other, slots = relevant[:good], other[:bad], slots[:bad]
    if slack:
        state, penalty = begin_search(), 0.0
        while penalty >= 0.0:
            loss, lead = _most_violated(scores, relevant, other, penalty, slots)
            penalty = next_penalty(state, penalty, loss, lead)
        penalty = state[BEST_PENALTY]
    else:
        penalty = 1.0
    loss, lead = _most_violated(scores, relevant, other, penalty, slots)
    value = loss * lead if slack else loss + lead - 1.0
    if value <= 0.0:
        return 0.0
    step = 2.0 * (loss if slack else 1.0) / (good * bad)
    passed = 0
    for index in range(good):
        while passed < bad and slots[passed] <= index:
            passed += 1
        gradient[relevant[index]] = -step * passed
    for index in range(bad):
        gradient[other[index]] = step * (good - slots[index])
    for row in range(size):
        curvature[row] = abs(gradient[row])
    return value


@inner
def _most_violated(
    scores: Doubles, relevant: Ints, other: Ints, penalty: float, slots: Ints
) -> tuple[float, float]:
    """The order with the largest ``lead + penalty * loss``.

    Both groups stay in order of score. Each document that is not relevant finds its own best slot
    (the number of relevant documents above it), and the slots come out in order.
    """
    good, bad = len(relevant), len(other)
    pairs = float(good * bad)
    lead, slot = 1.0, 0
    for index in range(bad):
        best, best_gain, best_lead = good, 0.0, 0.0
        gain = crossed = 0.0
        for above in range(good - 1, slot - 1, -1):
            crossed += 2.0 * (scores[other[index]] - scores[relevant[above]]) / pairs
            rank = above + 1.0 + index
            gain += penalty * (above + 1.0) / (rank * (rank + 1.0)) / good
            if gain + crossed > best_gain:
                best, best_gain, best_lead = above, gain + crossed, crossed
        slots[index] = slot = best
        lead += best_lead
    loss, passed = 1.0, 0
    for index in range(good):
        while passed < bad and slots[passed] <= index:
            passed += 1
        loss -= (index + 1.0) / (index + 1.0 + passed) / good
    return max(loss, 0.0), lead

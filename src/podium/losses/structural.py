"""The structural hinge: SVM-MAP, TopMargin and TopSlack as losses on scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.data.gains import log2_discounts, relative_gains
from podium.errors import ArgumentError
from podium.kernels import Doubles, Ints, inner
from podium.losses.base import normalize_k
from podium.losses.compiled import CompiledLoss, index_memory, top, work
from podium.losses.orders import first_rows, top_edge

CHOICES = {
    "measure": ("ndcg", "precision", "ap"),
    "scaling": ("margin", "slack"),
    "equal_labels": ("scores", "mean"),
}

STEPS, LEFT_LOSS, LEFT_LEAD, RIGHT_LOSS, RIGHT_LEAD, BEST_VALUE, BEST_PENALTY = range(7)
MOST_STEPS = 64
DONE = -1.0


@dataclass(frozen=True)
class StructuralHinge(CompiledLoss):
    """The margin by which the correct order fails to beat every other one, scaled by its loss.

    An order scores ``sum a_p s``, over positions p, of the document there, where ``a_p`` is the
    weight of position p in the measure; its loss is 1 minus the measure, 0 for a right order. With
    margin scaling the value is the largest ``loss + score - score of the right order`` (Cheng et
    al.'s TopMargin, and SVM-MAP), with slack scaling the largest ``loss * (1 + score - score of
    the right order)`` (TopSlack). Slack scaling takes the best order on the hull of all, whose
    value is a lower bound of the exact one, rarely less.

    - ``"ndcg"``: gains ``2^label - 1``, ``a_p = 1 / log2(1 + p)`` up to position k.
    - ``"precision"``: the top k are relevant, ``a_p = 1 / k``. A query with fewer than k is
      measured against the best it can reach.
    - ``"ap"``: the top k are relevant; orders score by pairs, as in SVM-MAP.

    Not smooth. The curvature is a substitute for one that is 0: the size of the gradient, so that a
    Newton step is at most a margin of 1. O(n log k) for n documents, O(n k + n log n) for AP; with
    slack scaling that times the steps of the search, about eight.

    Attributes:
        measure: What the loss of an order is measured by.
        scaling: How it enters: as the margin to reach, or as a factor.
        k: The cut-off for NDCG and Precision, and how many documents are relevant for Precision
            and AP, or None for all (all above the lowest label).
        equal_labels: Which of several correct orders is the reference if labels are equal:
            the one that the ``"scores"`` prefer, which asks for no order that the labels do not ask
            for but is convex only if the labels order the first k positions fully; or the
            ``"mean"`` of all, always convex, which pulls the scores of equal labels together. (It
            makes no difference for AP.)

    Example:
        >>> value = StructuralHinge("precision", k=1).evaluate([0.0, 0.0], [1, 0], [0, 2]).total
        >>> value
        1.0
    """

    measure: Literal["ndcg", "precision", "ap"] = "ndcg"
    scaling: Literal["margin", "slack"] = "margin"
    k: int | None = None
    equal_labels: Literal["scores", "mean"] = "scores"

    smooth = False

    @property
    def convex(self) -> bool:
        """Whether it is convex whatever the labels: for AP, and if ties are taken as the mean."""
        return self.measure == "ap" or self.equal_labels == "mean"

    def __post_init__(self) -> None:
        normalize_k(self)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                allowed = " or ".join(map(repr, choices))
                raise ArgumentError(f"{name} is {getattr(self, name)!r}. Give {allowed}.")
        if self.measure == "precision" and self.k is None:
            raise ArgumentError("Precision has no cut-off. Give k.")

    @property
    def query(self) -> Callable[..., float]:
        """The compiled function."""
        return average_precision_hinge if self.measure == "ap" else position_hinge

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, the choices, what positions count, and work memory."""
        slack = self.scaling == "slack"
        if self.measure == "ap":
            return top(self.k), slack, index_memory(4, largest)
        graded = self.measure == "ndcg"
        discounts = self._discounts(largest)
        choices = (graded, slack, self.equal_labels == "mean")
        return top(self.k), *choices, discounts, index_memory(2, largest), work(3, largest)

    def _discounts(self, largest: int) -> Doubles:
        positions = np.arange(1.0, 1.0 + min(top(self.k), largest))
        if self.measure == "ndcg":
            return log2_discounts(positions)
        return np.full(len(positions), 1.0 / top(self.k))


def average_precision_hinge(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    slack: bool,
    rows: Ints,
) -> float:
    """One query's structural hinge of average precision (SVM-MAP's): the top k are relevant.

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
            loss, lead = _most_violated_pairs(scores, relevant, other, penalty, slots)
            penalty = next_penalty(state, penalty, loss, lead)
        penalty = state[BEST_PENALTY]
    else:
        penalty = 1.0
    loss, lead = _most_violated_pairs(scores, relevant, other, penalty, slots)
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
def _most_violated_pairs(
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
    """One query's structural hinge of NDCG or Precision: ``discounts[p]`` weights position p."""
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
            loss, lead = _most_violated_positions(
                scores, gains, penalty, discounts, target_score, keys, violating
            )
            penalty = next_penalty(state, penalty, loss, lead)
        penalty = state[BEST_PENALTY]
    else:
        penalty = 1.0
    loss, lead = _most_violated_positions(
        scores, gains, penalty, discounts, target_score, keys, violating
    )
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
def _most_violated_positions(
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
    # Some of the last group may be left beyond the cut-off.
    members = 0
    for row in range(len(gains)):
        members += gains[row] == gain
    for row in range(len(gains)):
        if gains[row] == gain:
            target_weights[row] = total / members


@inner
def begin_search() -> Doubles:
    """Return the state of a new search for the order that violates a slack-scaled margin most.

    An order has a loss (how wrong it is) and a lead (1 plus how much more it scores than the right
    order); slack scaling looks for the largest product of the two. Orders with the largest ``lead +
    penalty * loss`` are easy to find, and for every penalty they lie on the upper hull of all
    orders' points (loss, lead). Along that hull loss rises and lead falls with the penalty, and the
    product is largest where ``lead = penalty * loss``. Two orders that enclose this point are moved
    towards each other along the chord between them, until no order lies above it. So the best order
    on the hull is found exactly, in a few steps; it takes the place of the golden-section search by
    Cheng et al. (2014), which minimizes the same bound but can stop short on its plateaus.

    The first penalty to try is 0.
    """
    state = np.zeros(7)
    state[RIGHT_LOSS] = -1.0  # no right end yet
    return state


@inner
def next_penalty(state: Doubles, penalty: float, loss: float, lead: float) -> float:
    """Add the order that a penalty gave, and return the next penalty to try, or DONE.

    The penalty of the best order is then ``state[BEST_PENALTY]``.
    """
    state[STEPS] += 1.0
    if loss * lead > state[BEST_VALUE]:
        state[BEST_VALUE] = loss * lead
        state[BEST_PENALTY] = penalty
    if state[STEPS] > MOST_STEPS:
        return DONE
    if penalty == 0.0:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
        return lead / loss if loss > 0.0 else 1.0
    beyond = lead <= penalty * loss
    if state[RIGHT_LOSS] < 0.0 and not beyond:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
        return 8.0 * penalty
    if state[RIGHT_LOSS] >= 0.0:
        chord = state[LEFT_LEAD] + penalty * state[LEFT_LOSS]
        if lead + penalty * loss <= chord + 1e-12 * abs(chord):
            return DONE
    if beyond:
        state[RIGHT_LOSS], state[RIGHT_LEAD] = loss, lead
    else:
        state[LEFT_LOSS], state[LEFT_LEAD] = loss, lead
    width = state[RIGHT_LOSS] - state[LEFT_LOSS]
    if width <= 0.0:
        return DONE
    return float((state[LEFT_LEAD] - state[RIGHT_LEAD]) / width)

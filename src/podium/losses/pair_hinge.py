"""The hinge loss of pairs, the ranking SVM's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from podium.kernels import Doubles, Ints, inner
from podium.losses.base import Loss
from podium.losses.compiled import PairLoss, index_memory, top
from podium.losses.orders import count_from, first_rows, top_edge
from podium.losses.pair_rounded import PairRounded

FEW = 256
"""Up to this many top documents, looking at every pair is faster than counting in order."""


def _pair_hinge(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    across: bool,
    memory: Ints,
) -> float:
    edge = top_edge(labels, k, memory[0])
    count = count_from(labels, edge)
    if count <= FEW:
        pairs = _count_pairs(scores, labels, gradient, curvature, across, edge)
    else:
        pairs = _count_in_order(scores, labels, gradient, curvature, across, count, memory)
    # Every violated pair adds 1 - s_i + s_j, and -1 and +1 to the gradient.
    value = float(pairs)
    for row in range(len(scores)):
        value += gradient[row] * (scores[row] - scores[0])
    return max(value, 0.0)


@inner
def _count_pairs(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    across: bool,
    edge: float,
) -> int:
    pairs = 0
    for better in range(len(scores)):
        if labels[better] < edge:
            continue
        below = edge if across else labels[better]
        margin = scores[better] - 1.0
        violated = 0
        for worse in range(len(scores)):
            wrong = (labels[worse] < below) & (scores[worse] > margin)
            violated += wrong
            gradient[worse] += wrong
        curvature[better] = violated
        pairs += violated
    for row in range(len(scores)):
        ahead, behind = gradient[row], curvature[row]
        gradient[row] = ahead - behind
        curvature[row] = ahead + behind
    return pairs


@inner
def _count_in_order(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    across: bool,
    count: int,
    memory: Ints,
) -> int:
    """Count violated pairs in O(n log n), in two sweeps over the documents in order of score.

    A Fenwick tree over the levels of the labels holds how many documents of each level the sweep
    has passed: first, for a document of the top, those less than 1 behind it; then, for any
    document, those of the top less than 1 ahead.
    """
    best, order, level = memory[0], memory[1], memory[2]
    size = len(scores)
    first_rows(labels, labels, count, best)
    first_rows(scores, scores, size, order)
    level[:size] = 0
    levels = 0
    for index in range(count - 1, -1, -1):
        row = best[index]
        if index == count - 1 or (labels[row] > labels[best[index + 1]] and not across):
            levels += 1
        level[row] = levels
    tree = memory[3, : levels + 1]
    tree[:] = 0
    passed = pairs = 0
    for row in order[:size]:
        if level[row] > 0:
            while passed < size and scores[order[passed]] > scores[row] - 1.0:
                _add(tree, level[order[passed]])
                passed += 1
            violated = _up_to(tree, level[row] - 1)
            gradient[row] -= violated
            curvature[row] += violated
            pairs += violated
    tree[:] = 0
    passed, inserted = size - 1, 0
    for index in range(size - 1, -1, -1):
        row = order[index]
        while passed >= 0 and scores[order[passed]] - 1.0 < scores[row]:
            if level[order[passed]] > 0:
                _add(tree, level[order[passed]])
                inserted += 1
            passed -= 1
        violated = inserted - _up_to(tree, level[row])
        gradient[row] += violated
        curvature[row] += violated
    return pairs


@inner
def _add(tree: Ints, level: int) -> None:
    node = level + 1
    while node <= len(tree):
        tree[node - 1] += 1
        node += node & -node


@inner
def _up_to(tree: Ints, level: int) -> int:
    total = 0
    node = level + 1
    while node > 0:
        total += tree[node - 1]
        node -= node & -node
    return total


def _scaled_hinge(
    scores: Doubles,
    labels: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    k: int,
    across: bool,
    memory: Ints,
) -> float:
    edge = top_edge(labels, k, memory[0])
    value = 0.0
    for better in range(len(scores)):
        if labels[better] < edge:
            continue
        below = edge if across else labels[better]
        for worse in range(len(scores)):
            if labels[worse] < below:
                factor = labels[better] - labels[worse]
                short = 1.0 - factor * (scores[better] - scores[worse])
                if short > 0.0:
                    value += short
                    gradient[better] -= factor
                    gradient[worse] += factor
                    curvature[better] += factor * factor
                    curvature[worse] += factor * factor
    return value


@dataclass(frozen=True)
class PairHinge(PairLoss):
    """The ranking SVM's loss: ``max(0, 1 - (s_i - s_j))`` for each document i preferred to j.

    Convex, with kinks; at a kink the pair counts as right. The curvature is that of a squared
    hinge, the number of violated pairs that a document is in (times the squared factor if
    scaled), for a hinge's own is 0. O(n k) for n documents while the top is at most 256
    documents, O(n log n) above, whatever k; O(n k) always if scaled.

    Attributes:
        k: Pairs of the k best documents only, or None for every pair.
        pairs: ``"all"`` of them, or only those ``"across"`` the edge of the top k.
        scaled: Multiply a pair's difference of scores by its difference of labels, as Niu et al.
            (2012) do in FocusedSVM: the better the document, the less lead it needs.

    Example:
        >>> PairHinge(k=1).evaluate([0.0, 0.0, 0.0], [2, 1, 0], [0, 3]).total
        2.0
    """

    scaled: bool = False

    smooth = False
    convex = True

    @property
    def query(self) -> Callable[..., float]:
        """The compiled function."""
        return _scaled_hinge if self.scaled else _pair_hinge

    def rounded(self, width: float) -> tuple[Loss, Loss] | None:
        """The hinge with its kink rounded, and its planes; there is none for scaled pairs."""
        if self.scaled:
            return None
        smooth = PairRounded(k=self.k, pairs=self.pairs, width=width)
        return smooth, replace(smooth, plane=True)

    def arguments(self, largest: int) -> tuple[Any, ...]:
        """k, whether only pairs across count, and work memory."""
        return top(self.k), self.pairs == "across", index_memory(4, largest + 1)

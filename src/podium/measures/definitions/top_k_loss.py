"""Top-k true loss."""

from __future__ import annotations

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import TopK
from podium.measures.registration import measure


@inner
def _label_at(labels: Floats, position: int) -> float:
    """Return a label; 0 for a document that is not judged or does not exist."""
    return float(labels[position]) if position < len(labels) and labels[position] > 0.0 else 0.0


def _expected(labels: Floats, ideal: Floats, ties: Positions, k: int) -> float:
    probability = 1.0
    for position in range(k):
        target = _label_at(ideal, position)
        end = ties[position] if position < len(labels) else position + 1
        begin = position
        while begin > 0 and position < len(labels) and ties[begin - 1] == end:
            begin -= 1
        left = 0  # documents of the tie that fit here, less those at positions before
        for other in range(begin, end):
            if _label_at(labels, other) == target:
                left += 1
        for other in range(begin, position):
            if _label_at(ideal, other) == target:
                left -= 1
        probability *= left / (end - position)
    return 1.0 - probability


@measure(expected=_expected, larger_is_better=False, monotone=True)
def TopKLoss(labels: Floats, ideal: Floats, k: TopK = 10) -> float:  # noqa: N802
    r"""Top-k true loss: 0 if the first k ranks are exactly right, else 1 (Xia et al. 2009).

    $$l_k = 1 - \prod_{i=1}^{k} [y_i = y^*_i]$$

    where $y^*$ are the labels in their best order; which of two documents with equal labels comes
    first does not matter. Smaller is better.
    """
    for position in range(k):
        if _label_at(labels, position) != _label_at(ideal, position):
            return 1.0
    return 0.0

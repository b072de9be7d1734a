"""Top-k true loss."""

from __future__ import annotations

from podium.kernels import Floats, kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import K
from podium.measures.registry import measure


@kernel
def _label_at(labels: Floats, place: int) -> float:
    """The label at a place; 0 for a document that is not judged or not there."""
    return float(labels[place]) if place < len(labels) and labels[place] > 0.0 else 0.0


def _expected(query: Ranked, settings: Settings) -> float:
    chance = 1.0
    for place in range(settings.k):
        wanted = _label_at(query.ideal, place)
        end = query.ties[place] if place < len(query.labels) else place + 1
        begin = place
        while begin > 0 and place < len(query.labels) and query.ties[begin - 1] == end:
            begin -= 1
        left = 0  # documents of the tie that fit here, less those that took a place before
        for other in range(begin, end):
            if _label_at(query.labels, other) == wanted:
                left += 1
        for other in range(begin, place):
            if _label_at(query.ideal, other) == wanted:
                left -= 1
        chance *= left / (end - place)
    return 1.0 - chance


@measure(
    "TopKLoss",
    parameters=(K,),
    expected=_expected,
    takes_cut_off=False,
    larger_is_better=False,
)
def TopKLoss(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Top-k true loss: 0 if the first k places are exactly right, else 1 (Xia et al. 2009).

    $$l_k = 1 - \prod_{i=1}^{k} [y_i = y^*_i]$$

    where $y^*$ are the labels in their best order; which of two documents with equal labels comes
    first does not matter. Smaller is better.
    """
    for place in range(settings.k):
        if _label_at(query.labels, place) != _label_at(query.ideal, place):
            return 1.0
    return 0.0

"""Binary preference."""

from __future__ import annotations

from math import nan

from podium.kernels import kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, hits_between, relevant_in
from podium.measures.registry import measure


@kernel
def _share_below(above: int, relevant: int, irrelevant: int) -> float:
    """What share of the irrelevant documents that count is below, if so many are above."""
    return 1.0 - min(above, relevant) / min(relevant, irrelevant) if above and relevant else 1.0


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ties, rel = query.labels, query.ties, settings.rel
    relevant = relevant_in(query.ideal, rel)
    irrelevant = len(query.ideal) - relevant
    total, above = 0.0, 0
    place = 0
    while place < len(labels):
        end = ties[place]
        inside = hits_between(labels, rel, place, end)
        wrong = 0
        for other in range(place, end):
            if labels[other] < rel:
                wrong += 1
        # Above a relevant document of the tie are 0 to all of its irrelevant ones, alike likely.
        for more in range(wrong + 1):
            total += inside * _share_below(above + more, relevant, irrelevant) / (wrong + 1)
        above += wrong
        place = end
    return total / relevant if relevant else nan


@measure("bpref", parameters=(REL,), expected=_expected, takes_cut_off=False)
def bpref(query: Ranked, settings: Settings) -> float:
    r"""Binary preference: how few judged irrelevant documents are above relevant ones.

    $$\mathrm{bpref} = \frac{1}{R} \sum_{r} \left(1 -
    \frac{\min(\text{irrelevant above } r,\ R)}{\min(R, N)}\right)$$

    over the relevant documents r of the list, with R relevant and N irrelevant judgments. Documents
    that were not judged do not matter (Buckley and Voorhees 2004, as trec_eval has it).
    """
    labels, rel = query.labels, settings.rel
    relevant = relevant_in(query.ideal, rel)
    irrelevant = len(query.ideal) - relevant
    total, above = 0.0, 0
    for place in range(len(labels)):
        if labels[place] >= rel:
            total += _share_below(above, relevant, irrelevant)
        elif labels[place] < rel:
            above += 1
    return total / relevant if relevant else nan

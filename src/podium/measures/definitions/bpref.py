"""Binary preference."""

from __future__ import annotations

from math import nan

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Rel, count_relevant, count_tied_hits
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _share_below(above: int, relevant: int, irrelevant: int) -> float:
    """Return the share of the irrelevant documents that are below, given how many are above."""
    return 1.0 - min(above, relevant) / min(relevant, irrelevant) if above and relevant else 1.0


def _expected(labels: Floats, ideal: Floats, ties: Positions, rel: float) -> float:
    relevant = count_relevant(ideal, rel)
    irrelevant = len(ideal) - relevant
    total, above = 0.0, 0
    begin = 0
    while begin < len(labels):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        misses = 0
        for position in range(begin, end):
            if labels[position] < rel:
                misses += 1
        # Above a relevant document of the tie are 0 to all of its irrelevant ones, equally likely.
        for more in range(misses + 1):
            total += hits * _share_below(above + more, relevant, irrelevant) / (misses + 1)
        above += misses
        begin = end
    return total / relevant if relevant else nan


@inner
def _binary_preference(labels: Floats, ideal: Floats, rel: float) -> float:
    relevant = count_relevant(ideal, rel)
    irrelevant = len(ideal) - relevant
    total, above = 0.0, 0
    for position in range(len(labels)):
        if labels[position] >= rel:
            total += _share_below(above, relevant, irrelevant)
        elif labels[position] < rel:
            above += 1
    return total / relevant if relevant else nan


@measure(expected=_expected, monotone=True)
def bpref(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:
    r"""Binary preference: how few judged irrelevant documents are above relevant ones.

    $$\mathrm{bpref} = \frac{1}{R} \sum_{r} \left(1 -
    \frac{\min(\text{irrelevant above } r,\ R)}{\min(R, N)}\right)$$

    over the relevant documents r of the list, with R relevant and N irrelevant judgments. Documents
    that were not judged do not matter (Buckley and Voorhees 2004, as trec_eval has it).
    """
    return _binary_preference(labels, ideal, rel)


@measure(aliases=("gm_bpref",), expected=_expected, aggregate="geometric mean")
def GMbpref(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Binary preference, of which the geometric mean is taken over queries.

    $$\mathrm{GMbpref} = \sqrt[|Q|]{\prod_{q \in Q} \max(\mathrm{bpref}, 10^{-5})}$$
    """
    return _binary_preference(labels, ideal, rel)

"""Measures of preferences between two documents: given ones, and those that labels imply."""

from __future__ import annotations

from math import nan

from podium.data.gains import log2_discount
from podium.kernels import Doubles, Floats, inner
from podium.measures.compiled import Positions
from podium.measures.definitions._shared import Rel, count_relevant, count_tied_hits
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _correct(better: float, worse: float) -> float:
    """Return 1 if a pair is ranked correctly, 1/2 if its ranks are equal, else 0."""
    if better == worse:
        return 0.5
    return 1.0 if better < worse else 0.0


@measure(aliases=("prefs_simp_imp",))
def ppref(better: Doubles, worse: Doubles, cut: int) -> float:
    r"""Precision of preferences (Carterette and Bennett 2008).

    $$\mathrm{ppref@}k = \frac{\text{correct pairs}}{\text{pairs ranked}}$$

    A pair is ranked if at least one of its documents is among the first k; the other one, if the
    list does not have it, is below.
    """
    correct = ranked = 0.0
    for pair in range(len(better)):
        if min(better[pair], worse[pair]) <= cut:
            ranked += 1.0
            correct += _correct(better[pair], worse[pair])
    if len(better) == 0:
        return nan
    return correct / ranked if ranked else 0.0


@measure(aliases=("prefs_simp",))
def rpref(better: Doubles, worse: Doubles, cut: int) -> float:
    r"""Recall of preferences (Carterette and Bennett 2008).

    $$\mathrm{rpref@}k = \frac{\text{correct pairs}}{\text{pairs}}$$

    with pairs ranked as in ppref.
    """
    correct = 0.0
    for pair in range(len(better)):
        if min(better[pair], worse[pair]) <= cut:
            correct += _correct(better[pair], worse[pair])
    return correct / len(better) if len(better) else nan


@measure
def wpref(better: Doubles, worse: Doubles, cut: int) -> float:
    r"""Weighted precision of preferences (Carterette and Bennett 2008).

    $$\mathrm{wpref@}k = \frac{\sum_{\text{correct pairs}} w}{\sum_{\text{pairs ranked}} w},
    \quad w = \frac{1}{\log_2(1 + \min(\text{rank of one},\ \text{rank of the other}))}$$

    with pairs ranked as in ppref: a pair counts the more the higher its higher document is.
    """
    correct = ranked = 0.0
    for pair in range(len(better)):
        first = min(better[pair], worse[pair])
        if first <= cut:
            weight = log2_discount(first)
            ranked += weight
            correct += weight * _correct(better[pair], worse[pair])
    if len(better) == 0:
        return nan
    return correct / ranked if ranked else 0.0


@inner
def _share_below(above: int, relevant: int, irrelevant: int) -> float:
    """Return the share of the irrelevant documents that are below, given how many are above."""
    return 1.0 - min(above, relevant) / min(relevant, irrelevant) if above and relevant else 1.0


def _expected_binary_preference(
    labels: Floats, ideal: Floats, ties: Positions, rel: float
) -> float:
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


@measure(expected=_expected_binary_preference, monotone=True)
def bpref(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:
    r"""Binary preference: how few judged irrelevant documents are above relevant ones.

    $$\mathrm{bpref} = \frac{1}{R} \sum_{r} \left(1 -
    \frac{\min(\text{irrelevant above } r,\ R)}{\min(R, N)}\right)$$

    over the relevant documents r of the list, with R relevant and N irrelevant judgments. Documents
    that were not judged do not matter (Buckley and Voorhees 2004, as trec_eval has it).
    """
    return _binary_preference(labels, ideal, rel)


@measure(aliases=("gm_bpref",), expected=_expected_binary_preference, aggregate="geometric mean")
def GMbpref(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Binary preference, of which the geometric mean is taken over queries.

    $$\mathrm{GMbpref} = \sqrt[|Q|]{\prod_{q \in Q} \max(\mathrm{bpref}, 10^{-5})}$$
    """
    return _binary_preference(labels, ideal, rel)

"""Measures of preferences between two documents."""

from __future__ import annotations

from math import nan

from podium.data.gains import log2_discount
from podium.kernels import Doubles, inner
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

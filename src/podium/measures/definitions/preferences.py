"""Measures whose truth is preferences between two documents."""

from __future__ import annotations

from math import nan

from podium.data.gains import log2_discount
from podium.kernels import kernel
from podium.measures.compiled.ranked import RankedPairs, Settings
from podium.measures.registry import measure


@kernel
def _right(better: float, worse: float) -> float:
    """Whether a pair is ranked right; half if the ranking does not tell the two apart."""
    if better == worse:
        return 0.5
    return 1.0 if better < worse else 0.0


@measure("ppref", aliases=("prefs_simp_imp",), on_pairs=True)
def ppref(query: RankedPairs, settings: Settings) -> float:
    r"""Precision of preferences (Carterette and Bennett 2008).

    $$\mathrm{ppref@}k = \frac{\text{pairs ranked right}}{\text{pairs ranked}}$$

    A pair is ranked if at least one of its documents is among the first k; the other one, if the
    list does not have it, is below.
    """
    right = ranked = 0.0
    for pair in range(len(query.better)):
        if min(query.better[pair], query.worse[pair]) <= settings.cut:
            ranked += 1.0
            right += _right(query.better[pair], query.worse[pair])
    if len(query.better) == 0:
        return nan
    return right / ranked if ranked else 0.0


@measure("rpref", aliases=("prefs_simp",), on_pairs=True)
def rpref(query: RankedPairs, settings: Settings) -> float:
    r"""Recall of preferences (Carterette and Bennett 2008).

    $$\mathrm{rpref@}k = \frac{\text{pairs ranked right}}{\text{pairs}}$$

    with pairs ranked as in ppref.
    """
    right = 0.0
    for pair in range(len(query.better)):
        if min(query.better[pair], query.worse[pair]) <= settings.cut:
            right += _right(query.better[pair], query.worse[pair])
    return right / len(query.better) if len(query.better) else nan


@measure("wpref", on_pairs=True)
def wpref(query: RankedPairs, settings: Settings) -> float:
    r"""Weighted precision of preferences (Carterette and Bennett 2008).

    $$\mathrm{wpref@}k = \frac{\sum_{\text{pairs ranked right}} w}{\sum_{\text{pairs ranked}} w},
    \quad w = \frac{1}{\log_2(1 + \min(\text{rank of one},\ \text{rank of the other}))}$$

    with pairs ranked as in ppref: a pair counts the more the higher its higher document is.
    """
    right = ranked = 0.0
    for pair in range(len(query.better)):
        first = min(query.better[pair], query.worse[pair])
        if first <= settings.cut:
            weight = log2_discount(first)
            ranked += weight
            right += weight * _right(query.better[pair], query.worse[pair])
    if len(query.better) == 0:
        return nan
    return right / ranked if ranked else 0.0

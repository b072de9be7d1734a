"""What is not known of a ranking, because its documents were not judged."""

from __future__ import annotations

from math import isnan

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Persistence
from podium.measures.registration import measure


@inner
def _count_unjudged(labels: Floats, begin: int, end: int) -> int:
    count = 0
    for position in range(begin, end):
        if isnan(labels[position]):
            count += 1
    return count


def _expected_unjudged(
    labels: Floats, ties: Positions, size: int, cut: int, has_cut: bool
) -> float:
    total = 0.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        share = (min(end, cut) - begin) / (end - begin)
        total += _count_unjudged(labels, begin, end) * share
        begin = end
    shown = cut if has_cut else size
    return total / shown if shown else 0.0


@measure(aliases=("unj",), expected=_expected_unjudged, larger_is_better=False)
def Unjudged(labels: Floats, size: int, cut: int, has_cut: bool) -> float:  # noqa: N802
    r"""The share of the first k ranks whose documents were not judged.

    $$\mathrm{Unjudged@}k = \frac{1}{k} \sum_{i=1}^{k} [y_i \text{ is not known}]$$

    Without a cut-off, k is the length of the list.
    """
    shown = cut if has_cut else size
    return _count_unjudged(labels, 0, min(len(labels), cut)) / shown if shown else 0.0


@measure(aliases=("rbp_resid",), larger_is_better=False)
def RBPResidual(labels: Floats, p: Persistence = 0.9) -> float:  # noqa: N802
    r"""How much rank-biased precision could gain if everything that was not judged were relevant.

    $$\mathrm{RBPResidual} = p^n + (1 - p) \sum_{i : y_i \text{ is not known}} p^{i-1}$$

    for a list of n documents, and 0 if all of them were judged.
    """
    total, weight = 0.0, 1.0
    for position in range(len(labels)):
        if isnan(labels[position]):
            total += weight
        weight *= p
    return weight + (1.0 - p) * total if total > 0.0 else 0.0

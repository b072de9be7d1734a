"""Precision and recall of the first documents or of a set, and shares of judged documents."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Annotated

from podium.kernels import Floats, inner
from podium.measures.compiled import Positions
from podium.measures.definitions._shared import Rel, count_hits, count_relevant, expected_hits
from podium.measures.parameters import BY_CONVENTION, Parameter, number_between
from podium.measures.registration import measure


@inner
def _divisor(size: int, cut: int, divide_by_size: bool) -> int:
    return max(size, 1) if cut > size and divide_by_size else cut


def _expected_precision(
    labels: Floats, ties: Positions, size: int, cut: int, divide_by_size: bool, rel: float
) -> float:
    return expected_hits(labels, ties, rel, cut) / _divisor(size, cut, divide_by_size)


@measure(aliases=("precision", "pre", "set_P", "SetP"), expected=_expected_precision, monotone=True)
def P(  # noqa: N802
    labels: Floats, size: int, cut: int, divide_by_size: bool, rel: Rel = BY_CONVENTION
) -> float:
    r"""Precision: the share of relevant documents among the first k.

    $$\mathrm{P@}k = \frac{1}{k} \sum_{i=1}^{k} [y_i \ge rel]$$

    Without a cut-off, k is the length of the list.
    """
    return count_hits(labels, rel, cut) / _divisor(size, cut, divide_by_size)


def _expected_recall(labels: Floats, ideal: Floats, ties: Positions, cut: int, rel: float) -> float:
    relevant = count_relevant(ideal, rel)
    return expected_hits(labels, ties, rel, cut) / relevant if relevant else nan


@measure(aliases=("recall", "set_recall", "SetR"), expected=_expected_recall, monotone=True)
def R(  # noqa: N802
    labels: Floats, ideal: Floats, cut: int, rel: Rel = BY_CONVENTION
) -> float:
    r"""Recall: the share of the relevant documents that are among the first k.

    $$\mathrm{R@}k = \frac{\sum_{i=1}^{k} [y_i \ge rel]}{\sum_{d} [y_d \ge rel]}$$
    """
    relevant = count_relevant(ideal, rel)
    return count_hits(labels, rel, cut) / relevant if relevant else nan


@inner
def _multiple_of(relevant: int, multiple: float) -> int:
    return int(multiple * relevant + 0.9)  # as trec_eval rounds


def _expected_r_precision(
    labels: Floats, ideal: Floats, ties: Positions, multiple: float, rel: float
) -> float:
    relevant = count_relevant(ideal, rel)
    cut = _multiple_of(relevant, multiple)
    if not relevant:
        return nan
    return expected_hits(labels, ties, rel, cut) / cut if cut else 0.0


@measure(
    aliases=("r_precision", "r-precision", "rprec_mult"),
    expected=_expected_r_precision,
    monotone=True,
)
def Rprec(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    multiple: Annotated[
        float,
        Parameter(
            "How many times the number of relevant documents.",
            number_between(0.0, 1e6),
            suffix_of=("rprec_mult",),
        ),
    ] = 1.0,
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""R-precision: precision at as many documents as there are relevant ones, or a multiple of it.

    $$\mathrm{Rprec} = \frac{1}{R} \sum_{i=1}^{R} [y_i \ge rel], \quad R = \sum_{d} [y_d \ge rel]$$
    """
    relevant = count_relevant(ideal, rel)
    cut = _multiple_of(relevant, multiple)
    if not relevant:
        return nan
    return count_hits(labels, rel, cut) / cut if cut else 0.0


def _expected_judged(labels: Floats, ties: Positions, size: int, cut: int) -> float:
    shown = min(size, cut)
    return expected_hits(labels, ties, -inf, shown) / shown if shown else 0.0


@measure(expected=_expected_judged, monotone=True)
def Judged(labels: Floats, size: int, cut: int) -> float:  # noqa: N802
    r"""Share of judged documents among the first k: how far the other measures can be trusted.

    $$\mathrm{Judged@}k = \frac{\sum_{i=1}^{\min(k, n)} [y_i \text{ is known}]}{\min(k, n)}$$
    """
    shown = min(size, cut)
    return count_hits(labels, -inf, shown) / shown if shown else 0.0


def _expected_relative_precision(
    labels: Floats, ideal: Floats, ties: Positions, size: int, cut: int, has_cut: bool, rel: float
) -> float:
    best = min(count_relevant(ideal, rel), cut if has_cut else size)
    if not count_relevant(ideal, rel):
        return nan
    return expected_hits(labels, ties, rel, cut) / best if best else 0.0


@measure(
    aliases=("relative_P", "set_relative_P"), expected=_expected_relative_precision, monotone=True
)
def RelP(  # noqa: N802
    labels: Floats, ideal: Floats, size: int, cut: int, has_cut: bool, rel: Rel = BY_CONVENTION
) -> float:
    r"""Relative precision: precision as a share of the largest that is possible.

    $$\mathrm{RelP@}k = \frac{\sum_{i=1}^{k} [y_i \ge rel]}{\min(k, R)}$$

    with R relevant documents. Without a cut-off, k is the length of the list.
    """
    best = min(count_relevant(ideal, rel), cut if has_cut else size)
    if not count_relevant(ideal, rel):
        return nan
    return count_hits(labels, rel, cut) / best if best else 0.0


@measure(aliases=("set_map",), expected=True, monotone=True)
def SetAP(  # noqa: N802
    labels: Floats, ideal: Floats, size: int, rel: Rel = BY_CONVENTION
) -> float:
    r"""Precision times recall of all documents that were ranked.

    $$\mathrm{SetAP} = \mathrm{P} \cdot \mathrm{R}$$
    """
    hits, relevant = count_hits(labels, rel, len(labels)), count_relevant(ideal, rel)
    if not relevant:
        return nan
    return hits * hits / (size * relevant) if size else 0.0


@measure(aliases=("set_F",), expected=True, monotone=True)
def SetF(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    size: int,
    beta: Annotated[
        float, Parameter("How much more recall counts than precision.", number_between(0.0, inf))
    ] = 1.0,
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""The weighted harmonic mean of precision and recall of all documents that were ranked.

    $$\mathrm{SetF} = \frac{(1 + \beta^2)\, \mathrm{P}\, \mathrm{R}}{\beta^2\, \mathrm{P} +
    \mathrm{R}}$$
    """
    hits, relevant = count_hits(labels, rel, len(labels)), count_relevant(ideal, rel)
    if not relevant:
        return nan
    return (1.0 + beta * beta) * hits / (beta * beta * relevant + size)


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

"""Precision, recall, R-precision, and the share of judged documents."""

from __future__ import annotations

from math import inf, nan
from typing import Annotated

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
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

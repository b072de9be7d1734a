"""Measures of a ranking as a set of documents, or relative to the best set of its size."""

from __future__ import annotations

from math import inf, nan
from typing import Annotated

from podium.kernels import Floats
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Rel, count_hits, count_relevant, expected_hits
from podium.measures.parameters import BY_CONVENTION, Parameter, number_between
from podium.measures.registration import measure


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

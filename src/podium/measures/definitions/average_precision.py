"""Average precision."""

from __future__ import annotations

from math import log, nan

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Rel, count_relevant, count_tied_hits
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _divisor(relevant: int, cut: int, divide_by_cut: bool) -> int:
    return min(relevant, cut) if divide_by_cut else relevant


def _expected(
    labels: Floats,
    ideal: Floats,
    ties: Positions,
    cut: int,
    divide_by_cut: bool,
    ties_share_last_rank: bool,
    rel: float,
) -> float:
    divisor = _divisor(count_relevant(ideal, rel), cut, divide_by_cut)
    total = above = 0.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        if ties_share_last_rank:
            total += hits * (above + hits) / end if end <= cut else 0.0
        else:
            # A document of the tie is relevant with probability hits / size, and then each of the
            # tie's documents above it with probability (hits - 1) / (size - 1).
            size = end - begin
            others = (hits - 1) / (size - 1) if size > 1 else 0.0
            for position in range(begin, min(end, cut)):
                hits_above = above + 1.0 + (position - begin) * others
                total += hits / size * hits_above / (position + 1)
        above += hits
        begin = end
    return total / divisor if divisor else nan


@inner
def _sum_of_precisions(labels: Floats, cut: int, rel: float) -> float:
    total = hits = 0.0
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            hits += 1.0
            total += hits / (position + 1)
    return total


@measure(aliases=("map", "map_cut", "average_precision"), expected=_expected, monotone=True)
def AP(  # noqa: N802
    labels: Floats, ideal: Floats, cut: int, divide_by_cut: bool, rel: Rel = BY_CONVENTION
) -> float:
    r"""Average precision: the mean, over the relevant documents, of the precision at each.

    $$\mathrm{AP@}k = \frac{1}{R} \sum_{i=1}^{k} [y_i \ge rel]\, \mathrm{P@}i, \quad
    R = \sum_{d} [y_d \ge rel]$$

    Some tools divide by $\min(R, k)$ instead: see the conventions.
    """
    divisor = _divisor(count_relevant(ideal, rel), cut, divide_by_cut)
    return _sum_of_precisions(labels, cut, rel) / divisor if divisor else nan


@measure(aliases=("gm_map",), expected=_expected, aggregate="geometric mean")
def GMAP(  # noqa: N802
    labels: Floats, ideal: Floats, cut: int, divide_by_cut: bool, rel: Rel = BY_CONVENTION
) -> float:
    r"""Average precision, of which the geometric mean is taken over queries (Robertson 2006).

    $$\mathrm{GMAP@}k = \sqrt[|Q|]{\prod_{q \in Q} \max(\mathrm{AP@}k, 10^{-5})}$$
    """
    divisor = _divisor(count_relevant(ideal, rel), cut, divide_by_cut)
    return _sum_of_precisions(labels, cut, rel) / divisor if divisor else nan


@measure(aliases=("yaap",), monotone=True)
def YAAP(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Smoothed average precision on the scale of log odds (Robertson 2012).

    $$\mathrm{YAAP} = \ln \frac{1 + s}{1 + R - s}, \quad s = \sum_{i} [y_i \ge rel]\, \mathrm{P@}i$$
    """
    total = _sum_of_precisions(labels, len(labels), rel)
    return log((1.0 + total) / (1.0 + count_relevant(ideal, rel) - total))

"""Average precision, of the whole list, at levels of recall, and from a sample of judgments."""

from __future__ import annotations

from math import floor, isnan, log, nan
from typing import Annotated

from podium.kernels import Doubles, Floats, inner
from podium.measures.compiled import Positions
from podium.measures.definitions._shared import Rel, count_relevant, count_tied_hits
from podium.measures.parameters import BY_CONVENTION, Parameter
from podium.measures.registration import measure


@inner
def _divisor(relevant: int, cut: int, divide_by_cut: bool) -> int:
    return min(relevant, cut) if divide_by_cut else relevant


def _expected_average_precision(
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


@measure(
    aliases=("map", "map_cut", "average_precision"),
    expected=_expected_average_precision,
    monotone=True,
)
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


@measure(aliases=("gm_map",), expected=_expected_average_precision, aggregate="geometric mean")
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


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("Give a number from 0 to 1")
    return int(value) if value == int(value) else value


def _shares(value: object) -> tuple[float, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("Give a list of numbers from 0 to 1")
    return tuple(map(_share, value))


@inner
def _precision_from(
    labels: Floats, relevant: int, recall: float, nearest: bool, rel: float
) -> float:
    """Return the largest precision at any rank that has the recall."""
    share = recall * relevant
    needed = floor(share + 0.5) if nearest else int(share + 0.9)
    hits, best = 0, 0.0
    for position in range(len(labels)):
        if labels[position] >= rel:
            hits += 1
            if hits >= needed:
                best = max(best, hits / (position + 1))
    return best


@measure(aliases=("iprec_at_recall",), monotone=True)
def IPrec(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    nearest_recall: bool,
    recall: Annotated[
        float,
        Parameter(
            "The level of recall, from 0 to 1.", _share, suffix_of=("iprec", "iprec_at_recall")
        ),
    ] = 0.0,
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""Interpolated precision: the largest precision at any rank that reaches a level of recall.

    $$\mathrm{IPrec@}r = \max \{ \mathrm{P@}i : \textstyle\sum_{j \le i} [y_j \ge rel] \ge
    \lceil r R \rceil \}$$

    and 0 if no rank reaches it, with R relevant documents. `IPrec@0.1` is `IPrec(recall=0.1)`. How
    $r R$ is rounded is a convention.
    """
    relevant = count_relevant(ideal, rel)
    return _precision_from(labels, relevant, recall, nearest_recall, rel) if relevant else nan


@measure(aliases=("11pt_avg",), monotone=True)
def AvgIPrec(  # noqa: N802
    labels: Floats,
    ideal: Floats,
    nearest_recall: bool,
    recalls: Annotated[Doubles, Parameter("The levels of recall.", _shares)] = (  # type: ignore[assignment]  # arrives as an array
        *(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    ),
    rel: Rel = BY_CONVENTION,
) -> float:
    r"""The mean of the interpolated precision over levels of recall, by default 11 of them.

    $$\mathrm{AvgIPrec} = \frac{1}{11} \sum_{r = 0, 0.1, \ldots, 1} \mathrm{IPrec@}r$$
    """
    relevant = count_relevant(ideal, rel)
    if not relevant:
        return nan
    total = 0.0
    for level in range(len(recalls)):
        total += _precision_from(labels, relevant, recalls[level], nearest_recall, rel)
    return total / len(recalls)


@measure(aliases=("infAP",), knows_the_pool=True, monotone=True)
def InfAP(labels: Floats, ideal: Floats, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Inferred average precision (Yilmaz and Aslam 2006), for a pool of which a sample was judged.

    $$\mathrm{InfAP} = \frac{1}{R} \sum_{i : y_i \ge rel} \left(\frac{1}{i} + \frac{i - 1}{i} \cdot
    \frac{\text{pooled above } i}{i - 1} \cdot \frac{\text{relevant above } i + \varepsilon}
    {\text{judged above } i + 2 \varepsilon}\right), \quad \varepsilon = 10^{-5}$$

    A document of the pool that was not judged has a label below 0, where conventions take such
    labels as unjudged.
    """
    relevant = count_relevant(ideal, rel)
    if not relevant:
        return nan
    epsilon = 1e-5
    total = 0.0
    hits = misses = unjudged = 0
    for position in range(len(labels)):
        label = labels[position]
        if isnan(label):
            continue
        if label < 0.0:
            unjudged += 1
        elif label < rel:
            misses += 1
        else:
            pooled = hits + misses + unjudged
            total += (1.0 + pooled * (hits + epsilon) / (hits + misses + 2.0 * epsilon)) / (
                position + 1
            )
            hits += 1
    return total / relevant

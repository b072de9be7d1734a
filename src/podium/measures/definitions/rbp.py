"""Rank-biased precision."""

from __future__ import annotations

from math import nan

from podium.kernels import Floats, inner
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Persistence, Rel
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


@inner
def _gain(label: float, rel: float, graded: bool) -> float:
    if not label >= rel:
        return 0.0
    return label if graded else 1.0


def _expected(
    labels: Floats, ties: Positions, cut: int, graded: bool, p: float, rel: float
) -> float:
    total, weight = 0.0, 1.0 - p
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        gains = 0.0
        for position in range(begin, end):
            gains += _gain(labels[position], rel, graded)
        for _ in range(begin, min(end, cut)):
            total += weight * gains / (end - begin)
            weight *= p
        begin = end
    return total


@measure(expected=_expected, monotone=True)
def RBP(  # noqa: N802
    labels: Floats, cut: int, graded: bool, p: Persistence = 0.8, rel: Rel = BY_CONVENTION
) -> float:
    r"""Rank-biased precision (Moffat and Zobel 2008).

    $$\mathrm{RBP} = (1 - p) \sum_{i} p^{i-1}\, [y_i \ge rel]$$
    """
    total, weight = 0.0, 1.0 - p
    for position in range(min(len(labels), cut)):
        total += weight * _gain(labels[position], rel, graded)
        weight *= p
    return total


def _expected_graded(labels: Floats, ideal: Floats, ties: Positions, cut: int, p: float) -> float:
    highest = ideal[0] if len(ideal) else 0.0
    if not highest > 0.0:
        return nan
    total, weight = 0.0, 1.0 - p
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        gains = 0.0
        for position in range(begin, end):
            gains += _gain(labels[position], 0.0, True)
        for _ in range(begin, min(end, cut)):
            total += weight * gains / (end - begin) / highest
            weight *= p
        begin = end
    return total


@measure(expected=_expected_graded, monotone=True)
def GradedRBP(labels: Floats, ideal: Floats, cut: int, p: Persistence = 0.8) -> float:  # noqa: N802
    r"""Rank-biased precision with grades, relative to the highest of the query.

    $$\mathrm{GradedRBP} = (1 - p) \sum_{i} p^{i-1}\, \frac{y_i}{\max_d y_d}$$

    trec_eval's rbp, with p of 0.9.
    """
    highest = ideal[0] if len(ideal) else 0.0
    if not highest > 0.0:
        return nan
    total, weight = 0.0, 1.0 - p
    for position in range(min(len(labels), cut)):
        total += weight * _gain(labels[position], 0.0, True) / highest
        weight *= p
    return total

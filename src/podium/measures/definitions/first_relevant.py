"""Measures of the first relevant document: reciprocal rank and success."""

from __future__ import annotations

from podium.kernels import Floats
from podium.measures.compiled.arrays import Positions
from podium.measures.definitions._shared import Rel, count_tied_hits
from podium.measures.parameters import BY_CONVENTION
from podium.measures.registration import measure


def _expected_reciprocal_rank(labels: Floats, ties: Positions, cut: int, rel: float) -> float:
    total, none_yet = 0.0, 1.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        for position in range(begin, min(end, cut)):
            # The most documents of the tie that can come before its first relevant one.
            if position > end - max(hits, 1):
                none_yet = 0.0
            total += none_yet * hits / (end - position) / (position + 1)
            none_yet *= 1.0 - hits / (end - position)
        begin = end
    return total


@measure(
    aliases=("recip_rank", "MRR", "reciprocal_rank"),
    expected=_expected_reciprocal_rank,
    monotone=True,
)
def RR(labels: Floats, cut: int, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Reciprocal rank: one over the rank of the first relevant document, 0 without one.

    $$\mathrm{RR} = \frac{1}{\min \{ i : y_i \ge rel \}}$$
    """
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            return 1.0 / (position + 1)
    return 0.0


def _expected_success(labels: Floats, ties: Positions, cut: int, rel: float) -> float:
    none_yet = 1.0
    begin = 0
    while begin < min(len(labels), cut):
        end = ties[begin]
        hits = count_tied_hits(labels, rel, begin, end)
        for position in range(begin, min(end, cut)):
            none_yet *= max(0.0, 1.0 - hits / (end - position))
        begin = end
    return 1.0 - none_yet


@measure(aliases=("hit_rate",), expected=_expected_success, monotone=True)
def Success(labels: Floats, cut: int, rel: Rel = BY_CONVENTION) -> float:  # noqa: N802
    r"""Success: 1 if there is a relevant document among the first k, else 0.

    $$\mathrm{Success@}k = \max_{i \le k} [y_i \ge rel]$$
    """
    for position in range(min(len(labels), cut)):
        if labels[position] >= rel:
            return 1.0
    return 0.0

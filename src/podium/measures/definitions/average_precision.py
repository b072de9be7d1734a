"""Average precision."""

from __future__ import annotations

from math import nan

from podium.kernels import kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, hits_between, relevant_in
from podium.measures.registry import measure


@kernel
def _divisor(relevant: int, cut: int, at_most_cut: bool) -> int:
    return min(relevant, cut) if at_most_cut else relevant


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ties, rel, cut = query.labels, query.ties, settings.rel, settings.cut
    divisor = _divisor(relevant_in(query.ideal, rel), cut, settings.at_most_cut)
    total = above = 0.0
    place = 0
    while place < min(len(labels), cut):
        end = ties[place]
        inside = hits_between(labels, rel, place, end)
        if settings.together:
            total += inside * (above + inside) / end if end <= cut else 0.0
        else:
            # A place of the tie is relevant with chance inside / size, and then each place of the
            # tie above it with chance (inside - 1) / (size - 1).
            size = end - place
            others = (inside - 1) / (size - 1) if size > 1 else 0.0
            for at in range(place, min(end, cut)):
                total += inside / size * (above + 1.0 + (at - place) * others) / (at + 1)
        above += inside
        place = end
    return total / divisor if divisor else nan


@measure(
    "AP",
    parameters=(REL,),
    aliases=("map", "map_cut", "average_precision"),
    expected=_expected,
    knows_together=True,
)
def AP(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Average precision: the mean, over the relevant documents, of the precision at each.

    $$\mathrm{AP@}k = \frac{1}{R} \sum_{i=1}^{k} [y_i \ge rel]\, \mathrm{P@}i, \quad
    R = \sum_{d} [y_d \ge rel]$$

    Some tools divide by $\min(R, k)$ instead: see the conventions.
    """
    labels, rel, cut = query.labels, settings.rel, settings.cut
    divisor = _divisor(relevant_in(query.ideal, rel), cut, settings.at_most_cut)
    total = hits = 0.0
    for place in range(min(len(labels), cut)):
        if labels[place] >= rel:
            hits += 1.0
            total += hits / (place + 1)
    return total / divisor if divisor else nan

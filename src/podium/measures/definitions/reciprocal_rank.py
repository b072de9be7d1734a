"""Reciprocal rank."""

from __future__ import annotations

from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, hits_between
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ties, rel, cut = query.labels, query.ties, settings.rel, settings.cut
    total, none_yet = 0.0, 1.0
    place = 0
    while place < min(len(labels), cut):
        end = ties[place]
        inside = hits_between(labels, rel, place, end)
        for at in range(place, min(end, cut)):
            # At most so many places of the tie come before its first relevant document.
            if at > end - max(inside, 1):
                none_yet = 0.0
            total += none_yet * inside / (end - at) / (at + 1)
            none_yet *= 1.0 - inside / (end - at)
        place = end
    return total


@measure(
    "RR",
    parameters=(REL,),
    aliases=("recip_rank", "MRR", "reciprocal_rank"),
    expected=_expected,
    needs_ideal=False,
)
def RR(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Reciprocal rank: one over the rank of the first relevant document, 0 without one.

    $$\mathrm{RR} = \frac{1}{\min \{ i : y_i \ge rel \}}$$
    """
    labels, rel = query.labels, settings.rel
    for place in range(min(len(labels), settings.cut)):
        if labels[place] >= rel:
            return 1.0 / (place + 1)
    return 0.0

"""Success."""

from __future__ import annotations

from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, hits_between
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ties, rel, cut = query.labels, query.ties, settings.rel, settings.cut
    none_yet = 1.0
    place = 0
    while place < min(len(labels), cut):
        end = ties[place]
        inside = hits_between(labels, rel, place, end)
        for at in range(place, min(end, cut)):
            none_yet *= max(0.0, 1.0 - inside / (end - at))
        place = end
    return 1.0 - none_yet


@measure(
    "Success",
    parameters=(REL,),
    aliases=("hit_rate",),
    expected=_expected,
    needs_ideal=False,
)
def Success(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Success: 1 if there is a relevant document among the first k, else 0.

    $$\mathrm{Success@}k = \max_{i \le k} [y_i \ge rel]$$
    """
    labels, rel = query.labels, settings.rel
    for place in range(min(len(labels), settings.cut)):
        if labels[place] >= rel:
            return 1.0
    return 0.0

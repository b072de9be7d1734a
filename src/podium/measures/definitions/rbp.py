"""Rank-biased precision."""

from __future__ import annotations

from podium.kernels import kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, persistence
from podium.measures.registry import measure


@kernel
def _worth(label: float, rel: float, graded: bool) -> float:
    if not label >= rel:
        return 0.0
    return label if graded else 1.0


def _expected(query: Ranked, settings: Settings) -> float:
    labels, ties, rel, cut = query.labels, query.ties, settings.rel, settings.cut
    total, weight = 0.0, 1.0 - settings.p
    place = 0
    while place < min(len(labels), cut):
        end = ties[place]
        inside = 0.0
        for other in range(place, end):
            inside += _worth(labels[other], rel, settings.graded)
        for _ in range(place, min(end, cut)):
            total += weight * inside / (end - place)
            weight *= settings.p
        place = end
    return total


@measure("RBP", parameters=(persistence(0.8), REL), expected=_expected, needs_ideal=False)
def RBP(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Rank-biased precision (Moffat and Zobel 2008).

    $$\mathrm{RBP} = (1 - p) \sum_{i} p^{i-1}\, [y_i \ge rel]$$
    """
    labels, rel = query.labels, settings.rel
    total, weight = 0.0, 1.0 - settings.p
    for place in range(min(len(labels), settings.cut)):
        total += weight * _worth(labels[place], rel, settings.graded)
        weight *= settings.p
    return total

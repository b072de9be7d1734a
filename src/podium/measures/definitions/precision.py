"""Precision."""

from __future__ import annotations

from podium.kernels import kernel
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, expected_hits_in, hits_in
from podium.measures.registry import measure


@kernel
def _divisor(cut: int, size: int, divide_by_size: bool) -> int:
    return max(size, 1) if cut > size and divide_by_size else cut


def _expected(query: Ranked, settings: Settings) -> float:
    hits = expected_hits_in(query.labels, query.ties, settings.rel, settings.cut)
    return hits / _divisor(settings.cut, query.size, settings.divide_by_size)


@measure(
    "P",
    parameters=(REL,),
    aliases=("precision", "pre", "set_P"),
    expected=_expected,
    needs_ideal=False,
)
def P(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Precision: the share of relevant documents among the first k.

    $$\mathrm{P@}k = \frac{1}{k} \sum_{i=1}^{k} [y_i \ge rel]$$

    Without a cut-off, k is the length of the list.
    """
    hits = hits_in(query.labels, settings.rel, settings.cut)
    return hits / _divisor(settings.cut, query.size, settings.divide_by_size)

"""R-precision."""

from __future__ import annotations

from math import nan

from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import REL, expected_hits_in, hits_in, relevant_in
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    relevant = relevant_in(query.ideal, settings.rel)
    hits = expected_hits_in(query.labels, query.ties, settings.rel, relevant)
    return hits / relevant if relevant else nan


@measure(
    "Rprec",
    parameters=(REL,),
    aliases=("r_precision", "r-precision"),
    expected=_expected,
    takes_cut_off=False,
)
def Rprec(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""R-precision: precision at as many documents as there are relevant ones.

    $$\mathrm{Rprec} = \frac{1}{R} \sum_{i=1}^{R} [y_i \ge rel], \quad R = \sum_{d} [y_d \ge rel]$$
    """
    relevant = relevant_in(query.ideal, settings.rel)
    return hits_in(query.labels, settings.rel, relevant) / relevant if relevant else nan

"""Discounted cumulative gain."""

from __future__ import annotations

from podium.measures.compiled.dcg_sums import dcg_of, expected_dcg_of
from podium.measures.compiled.ranked import Ranked, Settings
from podium.measures.definitions._shared import DISCOUNTS, GAINS
from podium.measures.registry import measure


def _expected(query: Ranked, settings: Settings) -> float:
    gains, discounts, curve = settings.gains, settings.discounts, settings.curve
    return expected_dcg_of(query.labels, query.ties, 0.0, gains, discounts, curve)


@measure(
    "DCG",
    parameters=(GAINS, DISCOUNTS),
    aliases={"dcg_burges": {"gains": "exponential"}},
    expected=_expected,
    needs_ideal=False,
)
def DCG(query: Ranked, settings: Settings) -> float:  # noqa: N802
    r"""Discounted cumulative gain, with any gains and discounts.

    $$\mathrm{DCG@}k = \sum_{i=1}^{k} g(y_i)\, d(i)$$

    with gain $g(y) = 2^y - 1$ and discount $d(i) = 1 / \log_2(1 + i)$ unless others are given, for
    instance those learned from preferences between rankings (Zhou et al. 2012).
    """
    return dcg_of(query.labels, 0.0, settings.gains, settings.discounts, settings.curve)

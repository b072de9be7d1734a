"""What a system must be shown to reach before it ships, as a value that text stands for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from podium.errors import ArgumentError
from podium.measures.names import parse_measure
from podium.measures.registry import Measure

_LONGEST = 500
_NUMBER = r"\d{0,30}\.?\d{1,30}(?:[eE][+-]?\d{1,3})?"
_SIGN = "[-+\u2212\u2013]"
_PLAIN = str.maketrans({"\u2212": "-", "\u2013": "-", "\u2265": ">=", "\u2264": "<="})
"""Signs of a text processor, as they are typed."""
_TEXT = re.compile(
    r"\s*(?P<measure>[^<>\u2264\u2265]+?)\s*(?P<relation>[<>]=?|[\u2264\u2265])\s*"
    rf"(?:(?P<baseline>baseline)(?:\s*(?P<sign>{_SIGN})\s*(?P<offset>{_NUMBER})\s*(?P<percent>%)?)?"
    rf"|(?P<bound>{_SIGN}?{_NUMBER}))"
    r"(?:\s+in\s+(?:each\s+(?P<each>.+?)|(?P<column>[^=]+?)\s*=\s*(?P<value>.+?)))?\s*",
    re.DOTALL,
)
_HINT = (
    "Write 'nDCG@10 >= baseline - 0.005', 'nDCG@10 > baseline', 'nDCG@10 >= baseline - 1%' or "
    "'nDCG@10 >= 0.4', and for some queries 'in each COLUMN' or 'in COLUMN=VALUE' after it"
)


@dataclass(frozen=True)
class Requirement:
    """A bound that a system's mean must be shown to be on the right side of.

    The bound is ``factor`` times the baseline's mean plus ``offset``. A requirement is shown by a
    test, so the bound itself is not enough: ``>`` and ``>=`` ask for the same.

    Attributes:
        text: As it was written.
        name: The measure as it was written, which may name a tool's conventions.
        measure: The measure.
        factor: 1 for the baseline, 0 for a bound of its own, 0.99 for ``baseline - 1%``.
        offset: Added to it; its negative is the margin of a test for non-inferiority.
        column: The column of the queries whose slices are meant; empty for all queries.
        value: The slice; empty for each slice of the column.

    Example:
        >>> requirement = Requirement.parse("nDCG@10 >= baseline - 0.005")
        >>> requirement.measure, requirement.factor, requirement.offset
        (nDCG@10, 1.0, -0.005)
        >>> Requirement.parse("TopKLoss(k=3) <= baseline + 2% in each language").column
        'language'
    """

    text: str
    name: str
    measure: Measure
    factor: float
    offset: float
    column: str = ""
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a requirement as it is written; signs may be those of a text processor."""
        if not isinstance(text, str):
            raise ArgumentError(
                f"a requirement is a {type(text).__name__}", hint=f"Give text. {_HINT}."
            )
        match = _TEXT.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ArgumentError(f"{text[:80]!r} is not a requirement", hint=f"{_HINT}.")
        measure = parse_measure(match["measure"])
        relation = match["relation"].translate(_PLAIN)
        smaller = relation.startswith("<")
        if smaller == measure.larger_is_better:
            better = "larger" if measure.larger_is_better else "smaller"
            right = ">=" if measure.larger_is_better else "<="
            raise ArgumentError(
                f"{text.strip()!r}: of {measure!r} {better} values are better",
                hint=f"Write {right} instead of {relation}.",
            )
        factor, offset = _bound(match)
        if relation.endswith("=") and (factor, offset) == (1.0, 0.0):
            margin, strict = ("+", "<") if smaller else ("-", ">")
            raise ArgumentError(
                f"{text.strip()!r} has no margin: that two systems are equal cannot be shown",
                hint=f"Allow for a loss that does not matter ('{match['measure']} "
                f"{relation} baseline {margin} 0.005'), or ask for a gain "
                f"('{match['measure']} {strict} baseline').",
            )
        return cls(
            text=" ".join(text.split()),
            name=match["measure"],
            measure=measure,
            factor=factor,
            offset=offset,
            column=match["each"] or match["column"] or "",
            value=match["value"] or "",
        )

    @property
    def against_baseline(self) -> bool:
        """Whether the bound depends on the baseline."""
        return self.factor != 0.0


def _bound(match: re.Match[str]) -> tuple[float, float]:
    if match["baseline"] is None:
        factor, offset = 0.0, float(match["bound"].translate(_PLAIN))
    else:
        change = float(f"{(match['sign'] or '+').translate(_PLAIN)}{match['offset'] or 0}")
        factor, offset = (1.0 + change / 100, 0.0) if match["percent"] else (1.0, change)
    if not (math.isfinite(factor) and math.isfinite(offset)):
        raise ArgumentError(f"the bound of {match[0].strip()[:80]!r} is infinite", hint=f"{_HINT}.")
    if match["baseline"] is not None and factor <= 0.0:
        raise ArgumentError(
            f"{match[0].strip()[:80]!r} leaves nothing of the baseline",
            hint="Give a percentage below 100.",
        )
    return factor, offset

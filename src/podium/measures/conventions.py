"""Conventions: every choice on which evaluation tools disagree, by name."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from podium.data.gains import DiscountsName, GainsName
from podium.errors import ArgumentError
from podium.measures.names import parse_measure
from podium.measures.registry import Measure, definition_of

Ties: TypeAlias = Literal[
    "expected",
    "input order",
    "id descending",
    "id ascending",
    "worst",
    "best",
    "quicksort",
    "together",
]


@dataclass(frozen=True)
class Conventions:
    """How measures are computed where tools disagree.

    Every value depends on its own query alone, so shards and streams give what the whole gives.
    A measure's own parameters (``nDCG(gains="linear")``) go before its conventions.

    Attributes:
        gains: The gain of a label: ``2^y - 1`` (exponential) or ``y`` (linear).
        discounts: The weight of a rank: ``1 / log2(1 + rank)`` (log2); 1 for ranks 1 and 2, then
            ``1 / log2(rank)`` (letor); ``1 / rank`` (reciprocal).
        ties: Which of two documents with equal scores comes first. *expected* takes the mean over
            all their orders and so needs no answer; *input order*; *id descending* and *id
            ascending*, by the bytes of document ids; *worst* and *best*, by label; *quicksort*,
            wherever Numba's unstable sort leaves them; *together*, all at the rank of the last.
            Measures of preferences take the mean of the ranks instead of the mean over orders.
        nothing_relevant: The value of a measure that divides by the number of relevant documents,
            where there are none: a number (for a loss, 1 minus it), or *skip* to leave the query
            out of every measure.
        short_list: A list shorter than the cut-off: *pad* it with irrelevant documents; divide
            precision by its *length*; or *zero*, no credit for any measure with a cut-off.
        missing: A judged query that the run does not have: an *empty* list, or *skip* it.
        pool: What the ideal ranking and all totals are made of: the *judged* documents, or only
            the *retrieved* ones.
        unjudged: A ranked document without a judgment is *irrelevant*, or *drop* it from the list.
        negative: A label below 0: *refuse* it; take it as 0, *irrelevant*; or as *unjudged*.
        relevant_from: The least label that counts as relevant where only that is asked.
        highest_grade: The highest grade of ERR: a number, or *query* for the query's own highest.
        satisfaction: The chance that a document satisfies in ERR: ``(2^y - 1) / 2^highest``
            (graded), or the label itself (label).
        ap_divisor: AP at a cut-off divides by all *relevant* documents, or by no more of
            them than the *cut-off* lets in.
        rbp_gain: Rank-biased precision adds up 1 for a relevant document (binary), or its *label*.
        recall_rounding: How many of R relevant documents a level of recall r takes: ``rR`` rounded
            *up*, from 0.1 on, or to the *nearest* integer.
        score_precision: Scores are compared as 64-bit or as 32-bit numbers.
        cut_off: The cut-off of a measure that is written without one; None means the whole list.
        exceptions: Choices that differ for one measure, made by ``except_for``: its name, the
            choice and its value.

    Example:
        >>> Conventions().ties
        'expected'
        >>> mine = Conventions(ties="input order", nothing_relevant=1)
        >>> mine.except_for("AP", nothing_relevant=0).of("AP").nothing_relevant
        0
        >>> Conventions(ties="alphabetical")
        Traceback (most recent call last):
        podium.errors.ArgumentError: ties is 'alphabetical'. Choose one of: expected, ...
    """

    gains: GainsName = "exponential"
    discounts: DiscountsName = "log2"
    ties: Ties = "expected"
    nothing_relevant: float | Literal["skip"] = 0.0
    short_list: Literal["pad", "length", "zero"] = "pad"
    missing: Literal["empty", "skip"] = "empty"
    pool: Literal["judged", "retrieved"] = "judged"
    unjudged: Literal["irrelevant", "drop"] = "irrelevant"
    negative: Literal["refuse", "irrelevant", "unjudged"] = "refuse"
    relevant_from: float = 1.0
    highest_grade: float | Literal["query"] = "query"
    satisfaction: Literal["graded", "label"] = "graded"
    ap_divisor: Literal["relevant", "cut-off"] = "relevant"
    rbp_gain: Literal["binary", "label"] = "binary"
    recall_rounding: Literal["up", "nearest"] = "up"
    score_precision: Literal["float64", "float32"] = "float64"
    cut_off: int | None = None
    exceptions: tuple[tuple[str, str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name, (words, numbers) in _allowed().items():
            value = getattr(self, name)
            good = (
                value in words if isinstance(value, str) else numbers and _is_number_or_none(value)
            )
            if not good:
                offer = [*words, "a number"] if numbers else words
                raise ArgumentError(f"{name} is {value!r}. Choose one of: {', '.join(offer)}.")
        named = tuple((_name_of(measure), *choice) for measure, *choice in self.exceptions)
        object.__setattr__(self, "exceptions", named)

    def except_for(self, measure: str | Measure, **choices: object) -> Conventions:
        """Return the same conventions with other choices for one measure, by any of its names.

        An exception applies to the measure with any parameters and at any cut-off.
        """
        if "exceptions" in choices:
            raise ArgumentError(
                "an exception cannot have exceptions", hint="Call except_for again."
            )
        replace(self, exceptions=(), **choices)  # type: ignore[arg-type]  # checks them
        measure = _name_of(measure)
        others = tuple((measure, name, value) for name, value in choices.items())
        return replace(self, exceptions=(*self.exceptions, *others))

    def of(self, measure: str | Measure) -> Conventions:
        """Return the conventions for one measure, with its exceptions applied."""
        if not self.exceptions:
            return self
        measure_name = measure.name if isinstance(measure, Measure) else _name_of(measure)
        choices = {name: value for other, name, value in self.exceptions if other == measure_name}
        return replace(self, exceptions=(), **choices)

    def cut_off_of(self, measure: Measure) -> int | None:
        """Return how many documents count for a measure; None means all of them."""
        if measure.cut_off is None and definition_of(measure).takes_cut_off:
            return self.cut_off
        return measure.cut_off


def _name_of(measure: str | Measure) -> str:
    """Return the name under which a measure is registered."""
    parsed = parse_measure(measure)
    if parsed != Measure(parsed.name):
        raise ArgumentError(
            f"{measure!r} is one form of {parsed.name}, and exceptions are for all of them",
            hint=f"Write {parsed.name}.",
        )
    return parsed.name


@cache
def _allowed() -> dict[str, tuple[list[str], bool]]:
    """Return, for each field, the strings it may be and whether it may be a number."""
    allowed = {}
    hints = get_type_hints(Conventions)
    for each in fields(Conventions):
        hint = hints[each.name]
        parts = [hint] if get_origin(hint) is Literal else list(get_args(hint)) or [hint]
        words = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        allowed[each.name] = (words, int in parts or float in parts)
    del allowed["exceptions"]
    return allowed


def _is_number_or_none(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)

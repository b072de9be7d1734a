"""A measure is a value: ``nDCG@10`` is an expression, a text and a dictionary key at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from podium.errors import ArgumentError

Value: TypeAlias = "int | float | str | tuple[float, ...]"
"""What a parameter of a measure may be; all of these are hashable and have a text form."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a measure.

    Attributes:
        name: As it is written in ``nDCG(gains="linear")``.
        doc: One sentence for the reference page.
        check: Takes what the user gave and returns it in its one form, or raises ``ValueError``.
        default: What it is when not given; None leaves it to the conventions.
        decimals: Whether ``rbp.95`` sets it to 0.95.
    """

    name: str
    doc: str
    check: Callable[[object], Value]
    default: Value | None = None
    decimals: bool = False


@dataclass(frozen=True, repr=False)
class Measure:
    """A measure with its parameters and its cut-off, equal to any other written alike.

    Call it to set parameters, and ``@`` a number to look at the first documents only.

    Attributes:
        name: Under which the measure is registered.
        parameters: The parameters that were set, in the order the measure lists them.
        cut_off: How many documents from the top are looked at; None means all of them.

    Example:
        >>> from podium.measures import P, kNDCG, nDCG
        >>> nDCG@10, P(rel=2)@5, kNDCG(k=10)@5
        (nDCG@10, P(rel=2)@5, kNDCG(k=10)@5)
        >>> nDCG@10 == nDCG(gains="linear")@10
        False
    """

    name: str
    parameters: tuple[tuple[str, Value], ...] = ()
    cut_off: int | None = None

    def __call__(self, **parameters: object) -> Measure:
        """The same measure with parameters set."""
        from podium.measures.registry import kind_of

        kind = kind_of(self)
        given: dict[str, Value] = dict(self.parameters)
        for name, value in parameters.items():
            parameter = kind.parameter(name)
            try:
                given[name] = parameter.check(value)
            except (TypeError, ValueError) as error:
                raise ArgumentError(
                    f"{self.name} does not take {name}={value!r}", hint=f"{error}."
                ) from error
        chosen = tuple(
            (each.name, given[each.name]) for each in kind.parameters if each.name in given
        )
        return replace(self, parameters=chosen)

    def __matmul__(self, cut_off: int) -> Measure:
        """The same measure of the first documents only."""
        from podium.measures.registry import kind_of

        if not kind_of(self).takes_cut_off:
            raise ArgumentError(f"{self.name} has no cut-off", hint=f"Write {self!r} alone.")
        if isinstance(cut_off, bool) or not isinstance(cut_off, int) or cut_off < 1:
            raise ArgumentError(
                f"the cut-off of {self.name} is {cut_off!r}", hint="Give a whole number from 1 on."
            )
        return replace(self, cut_off=cut_off)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters)
        arguments = f"({given})" if given else ""
        cut_off = "" if self.cut_off is None else f"@{self.cut_off}"
        return f"{self.name}{arguments}{cut_off}"

    def __getitem__(self, name: str) -> Value | None:
        """The value of a parameter: as set, else its default, else None."""
        from podium.measures.registry import kind_of

        default = kind_of(self).parameter(name).default
        return dict(self.parameters).get(name, default)

    @property
    def larger_is_better(self) -> bool:
        """False for losses."""
        from podium.measures.registry import kind_of

        return kind_of(self).larger_is_better


def whole_from(least: int) -> Callable[[object], Value]:
    """A check for whole numbers from some number on."""

    def check(value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"Give a whole number from {least} on")
        return value

    return check


def number_between(least: float, most: float) -> Callable[[object], Value]:
    """A check for numbers strictly between two others."""

    def check(value: object) -> Value:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not least < value < most
        ):
            raise ValueError(f"Give a number above {least:g} and below {most:g}")
        return _shortest(value)

    return check


def word_or_numbers(*words: str) -> Callable[[object], Value]:
    """A check for one of some words, or for a list of numbers."""

    def check(value: object) -> Value:
        if isinstance(value, str):
            if value in words:
                return value
        elif (
            isinstance(value, list | tuple)
            and value
            and all(isinstance(each, int | float) and abs(each) < 1e300 for each in value)
        ):
            return tuple(_shortest(each) for each in value)
        raise ValueError(f"Give {' or '.join(map(repr, words))}, or a list of numbers")

    return check


def _shortest(value: float) -> float:
    """2 rather than 2.0, so that equal measures have one text."""
    return int(value) if value == int(value) else value

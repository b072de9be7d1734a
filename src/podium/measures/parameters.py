"""Parameters of measures, and checks of the values that users give them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

Value: TypeAlias = "int | float | str | tuple[float, ...]"
"""What a parameter of a measure may be; all of these are hashable and have a text form."""

Check: TypeAlias = Callable[[object], Value]
"""Takes what the user gave and returns it in its one form, or raises ``ValueError``."""

BY_CONVENTION: Any = None
"""The default of a parameter that the conventions have a value for, such as ``rel``."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a measure, in the annotation of its function's parameter.

    Name and default come from the function, and so do a check and a type by default:
    ``fade: Annotated[float, Parameter("How fast.", number_between(0, 1))] = 0.8``.

    Attributes:
        doc: One sentence for the reference page.
        check: The check of values; by default any value of the annotated type is fine.
        decimals: Whether ``rbp.95`` sets it to 0.95.
        suffix_of: Names of the measure, in lower case, after which a number is this parameter and
            not a cut-off: ``IPrec@0.1``.
        name: As it is written in ``nDCG(gains="linear")``.
        default: What it is when not given; None leaves it to the conventions.
        value_type: What its function gets; a tuple arrives as an array.
    """

    doc: str = ""
    check: Check | None = None
    decimals: bool = False
    suffix_of: tuple[str, ...] = ()
    name: str = ""
    default: Value | None = None
    value_type: type = float

    def checked(self, value: object) -> Value:
        """Return a value in its one form, or raise ``ValueError``."""
        return (self.check or CHECKS[self.value_type])(value)


def integer_from(minimum: int) -> Check:
    """Make a check for integers of at least a minimum.

    Example:
        >>> integer_from(1)(10)
        10
    """

    def check(value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise ValueError(f"Give an integer of at least {minimum}")
        return value

    return check


def number_between(low: float, high: float) -> Check:
    """Make a check for numbers strictly between two others.

    Example:
        >>> number_between(0, 1)(0.8)
        0.8
    """

    def check(value: object) -> Value:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
            raise ValueError(f"Give a number above {low:g} and below {high:g}")
        return _shortest(value)

    return check


def word_or_numbers(*words: str) -> Check:
    """Make a check for one of some words, or for a list of numbers."""

    def check(value: object) -> Value:
        if isinstance(value, str):
            if value in words:
                return value
        elif _are_numbers(value):
            return tuple(map(_shortest, value))
        raise ValueError(f"Give {' or '.join(map(repr, words))}, or a list of numbers")

    return check


def _integer(value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("Give an integer")
    return value


def _number(value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("Give a finite number")
    return _shortest(value)


def _boolean(value: object) -> Value:
    if not isinstance(value, bool):
        raise ValueError("Give True or False")
    return value


def _numbers(value: object) -> Value:
    if not _are_numbers(value):
        raise ValueError("Give a list of numbers")
    return tuple(map(_shortest, value))


CHECKS: dict[type, Check] = {bool: _boolean, int: _integer, float: _number, tuple: _numbers}
"""The check of each type that a parameter may have."""


def _are_numbers(value: object) -> TypeGuard[Sequence[float]]:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(each, int | float) and abs(each) < 1e300 for each in value)
    )


def _shortest(value: float) -> float:
    """Make 2.0 2, so that equal measures have one text."""
    return int(value) if value == int(value) else value

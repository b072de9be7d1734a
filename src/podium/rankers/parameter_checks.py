"""Checks of a ranker's parameters, made before any data are read."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from podium.errors import ArgumentError


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise an ArgumentError unless a value is a finite number of at least 0, or above 0.

    Example:
        >>> check_number("alpha", float("nan"))
        Traceback (most recent call last):
        podium.errors.ArgumentError: alpha is nan. Give a number of at least 0.
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = number and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        number = False
    if not number or value < 0 or (positive and value == 0):
        bound = "above 0" if positive else "of at least 0"
        raise ArgumentError(f"{name} is {value!r}", hint=f"Give a number {bound}.")


def check_integer(name: str, value: Any, *, minimum: int = 1, optional: bool = False) -> None:
    """Raise an ArgumentError unless a value is an integer of at least the minimum.

    ``optional`` accepts None as well.

    Example:
        >>> check_integer("max_iter", 0)
        Traceback (most recent call last):
        podium.errors.ArgumentError: max_iter is 0. Give an integer of at least 1.
    """
    if optional and value is None:
        return
    try:
        valid = not isinstance(value, bool) and operator.index(value) >= minimum
    except TypeError:
        valid = False
    if not valid:
        raise ArgumentError(f"{name} is {value!r}", hint=f"Give an integer of at least {minimum}.")

"""Checks of a ranker's parameters, before any data are read."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

from podium.errors import ArgumentError


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Refuse what is not a finite number from 0, or above 0.

    Example:
        >>> check_number("penalty", float("nan"))
        Traceback (most recent call last):
        podium.errors.ArgumentError: penalty is nan. Give a number from 0.
    """
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0 or (positive and value == 0):
        bound = "above 0" if positive else "from 0"
        raise ArgumentError(f"{name} is {value!r}", hint=f"Give a number {bound}.")


def check_integer(name: str, value: Any, *, least: int = 1) -> None:
    """Refuse what is not an integer, or below the least.

    Example:
        >>> check_integer("max_iter", 0)
        Traceback (most recent call last):
        podium.errors.ArgumentError: max_iter is 0. Give an integer, at least 1.
    """
    try:
        valid = not isinstance(value, bool) and operator.index(value) >= least
    except TypeError:
        valid = False
    if not valid:
        raise ArgumentError(f"{name} is {value!r}", hint=f"Give an integer, at least {least}.")


def check_patience(patience: Any) -> None:
    """Refuse a patience that is neither None nor an integer from 1."""
    if patience is not None:
        check_integer("patience", patience)

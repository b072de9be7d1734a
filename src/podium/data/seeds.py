"""What a seed is, everywhere: a whole number from 0, from which all else that is random follows."""

from __future__ import annotations

import numpy as np

from podium.errors import ArgumentError

_END = 2**63


def checked_seed(seed: int) -> int:
    """A seed as given, or an error that says what one is.

    Example:
        >>> checked_seed(7)
        7
        >>> checked_seed(-1)
        Traceback (most recent call last):
        podium.errors.ArgumentError: seed is -1. Give a whole number from 0, below 2^63.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < _END:
        raise ArgumentError(f"seed is {seed!r}", hint="Give a whole number from 0, below 2^63.")
    return int(seed)


def generator(seed: int, *streams: int) -> np.random.Generator:
    """Random numbers by a seed, and by further numbers that tell streams of one seed apart.

    Example:
        >>> int(generator(0).integers(10)) == int(generator(0).integers(10))
        True
    """
    checked = checked_seed(seed)
    return np.random.default_rng([checked, *streams] if streams else checked)

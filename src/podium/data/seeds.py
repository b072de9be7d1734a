"""What a seed is, everywhere: a whole number from 0, from which all else that is random follows."""

from __future__ import annotations

from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

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


def hashed_numbers(count: int, *key: object) -> NDArray[np.uint64]:
    """Numbers that depend on a key alone: the same on any machine and with any version of NumPy.

    They are the output of SHAKE-256, a hash function whose output has any length.

    Example:
        >>> hashed_numbers(2, 7, "a").tolist() == hashed_numbers(3, 7, "a")[:2].tolist()
        True
    """
    text = "\x1f".join(map(str, key)).encode()
    return np.frombuffer(shake_256(text).digest(8 * count), "<u8").astype(np.uint64)

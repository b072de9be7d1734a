"""Seeds and random numbers: a seed is a non-negative integer below 2^63."""

from __future__ import annotations

from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from podium.errors import ArgumentError

_END = 2**63


def checked_seed(seed: int) -> int:
    """Return a valid seed as an int, or raise an ArgumentError.

    Example:
        >>> checked_seed(7)
        7
        >>> checked_seed(-1)
        Traceback (most recent call last):
        podium.errors.ArgumentError: seed is -1. Give an integer from 0 to 2^63 - 1.
    """
    is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_integer or not 0 <= seed < _END:
        raise ArgumentError(f"seed is {seed!r}", hint="Give an integer from 0 to 2^63 - 1.")
    return int(seed)


def generator(seed: int, *streams: int) -> np.random.Generator:
    """Make a random generator from a seed and, optionally, stream numbers.

    Example:
        >>> int(generator(0).integers(10)) == int(generator(0).integers(10))
        True
    """
    checked = checked_seed(seed)
    return np.random.default_rng([checked, *streams] if streams else checked)


def hashed_numbers(count: int, *key: object) -> NDArray[np.uint64]:
    """Hash a key to numbers that are the same on any machine and with any version of NumPy.

    They are the output of SHAKE-256, a hash function whose output has any length.

    Example:
        >>> hashed_numbers(2, 7, "a").tolist() == hashed_numbers(3, 7, "a")[:2].tolist()
        True
    """
    text = "\x1f".join(map(str, key)).encode()
    return np.frombuffer(shake_256(text).digest(8 * count), "<u8").astype(np.uint64)

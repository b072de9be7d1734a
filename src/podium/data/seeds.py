"""Seeds and random numbers: a seed is a non-negative integer below 2^63.

Numbers hashed from a key depend on what is drawn for, not on when: they are the same in any process
and any order.
"""

from __future__ import annotations

from hashlib import blake2b, shake_256

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


def hashed_uniform(*key: object) -> float:
    """A number from 0 up to 1 that looks random and depends on the key alone.

    Example:
        >>> hashed_uniform(0, "a", "b") == hashed_uniform(0, "a", "b"), 0 <= hashed_uniform(7) < 1
        (True, True)
    """
    text = "\x1f".join(map(str, key)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest()) / 2**64


def hashed_permutation(count: int, *key: object) -> list[int]:
    """The numbers 0, 1, …, count - 1 in an order that depends on the key alone.

    Example:
        >>> sorted(hashed_permutation(5, "seed 7"))
        [0, 1, 2, 3, 4]
    """
    order: list[int] = np.argsort(hashed_numbers(count, *key), kind="stable").tolist()
    return order

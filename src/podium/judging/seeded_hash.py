"""Draws that depend on what is drawn for, not on when: the same in any process and any order."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from podium.data.seeds import hashed_numbers


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

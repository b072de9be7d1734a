"""Machine instructions that Numba has no function for, in plain Python.

In compiled code they are what ``podium.kernels.instructions`` makes of them.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Bytes

_Value = TypeVar("_Value")


def eight_bytes(text: Bytes, start: int) -> np.uint64:
    """Load eight bytes of a byte array as one unsigned integer, unchecked (in kernels).

    Numba has no unaligned load of its own. The caller makes sure that the bytes exist.
    """
    return np.uint64(int.from_bytes(text[start : start + 8].tobytes(), sys.byteorder))


def trailing_zeros(word: np.uint64) -> int:
    """Count the low zero bits of an unsigned integer other than 0 (in kernels)."""
    return (int(word) & -int(word)).bit_length() - 1


def prefetch(_array: NDArray[Any], _index: int) -> None:
    """Begin to fetch one entry of a C-contiguous array from memory (in kernels)."""


def borrow(value: _Value) -> _Value:
    """Return an array, or a tuple with arrays, without a counted reference (in kernels).

    Counting references to slices is most of the cost of calling a function on a short list. The
    caller makes sure that the arrays outlive the result: arguments of a kernel do.

    Plain Python gets single precision as double, as compiled code computes: next to Python's own
    numbers Numba makes float32 a double, and NumPy would stay in single precision.
    """
    is_single = isinstance(value, np.ndarray) and value.dtype == np.float32
    return value.astype(np.float64) if is_single else value  # type: ignore[attr-defined]

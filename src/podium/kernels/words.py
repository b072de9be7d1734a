"""Machine instructions that Numba has no name for, and the same in plain Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from podium.kernels import PLAIN, Bytes


@intrinsic
def _eight_bytes(_context: Any, text: Any, _at: Any) -> Any:
    """The eight bytes from a place of a byte array as one unsigned number, unchecked (in kernels).

    Numba has no unaligned load of its own. The caller makes sure that the bytes exist.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = context.get_value_type(types.uint64)
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, word.as_pointer()), align=1)

    return types.uint64(text, types.intp), generate


@intrinsic
def _trailing_zeros(_context: Any, _word: Any) -> Any:
    """How many low bits of an unsigned number, not 0, are 0 (in kernels)."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], builder.trunc(never_zero, never_zero.type))

    return types.int64(types.uint64), generate


@intrinsic
def _prefetch(_context: Any, array: Any, _at: Any) -> Any:
    """Begin to fetch the entry at a place of a C-contiguous array from memory (in kernels)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(builder.gep(found.data, [arguments[1]]), byte)
        to_read, into_second_level, data = number(0), number(2), number(1)
        builder.call(fetch, [place, to_read, into_second_level, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _plain_eight_bytes(text: Bytes, at: int) -> np.uint64:
    return np.uint64(int.from_bytes(text[at : at + 8].tobytes(), sys.byteorder))


def _plain_trailing_zeros(word: np.uint64) -> int:
    return (int(word) & -int(word)).bit_length() - 1


def _plain_prefetch(_array: NDArray[Any], _at: int) -> None:
    pass


# Intrinsics take a typing context first that callers do not see, which mypy cannot know.
eight_bytes = cast(Callable[[Bytes, int], np.uint64], _plain_eight_bytes if PLAIN else _eight_bytes)
trailing_zeros = cast(
    Callable[[np.uint64], int], _plain_trailing_zeros if PLAIN else _trailing_zeros
)
prefetch = cast(Callable[[NDArray[Any], int], None], _plain_prefetch if PLAIN else _prefetch)

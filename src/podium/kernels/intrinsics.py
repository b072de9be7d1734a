"""Machine instructions that Numba has no function for, and the same in plain Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from podium.kernels import PLAIN, Bytes

_Value = TypeVar("_Value")
_types: Any = types  # Numba's stubs leave it untyped


@intrinsic
def _eight_bytes(_context: Any, text: Any, _start: Any) -> Any:
    """Load eight bytes of a byte array as one unsigned integer, unchecked (in kernels).

    Numba has no unaligned load of its own. The caller makes sure that the bytes exist.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word = context.get_value_type(_types.uint64)
        address = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(address, word.as_pointer()), align=1)

    return _types.uint64(text, _types.intp), generate


@intrinsic
def _trailing_zeros(_context: Any, _word: Any) -> Any:
    """Count the low zero bits of an unsigned integer other than 0 (in kernels)."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        never_zero = context.get_constant(_types.boolean, True)
        return builder.cttz(arguments[0], builder.trunc(never_zero, never_zero.type))

    return _types.int64(_types.uint64), generate


@intrinsic
def _prefetch(_context: Any, array: Any, _index: Any) -> Any:
    """Begin to fetch one entry of a C-contiguous array from memory (in kernels)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        entries = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], fetch_type)
        address = builder.bitcast(builder.gep(entries.data, [arguments[1]]), byte)
        to_read, into_second_level, data = number(0), number(2), number(1)
        builder.call(fetch, [address, to_read, into_second_level, data])
        return context.get_dummy_value()

    return _types.void(array, _types.intp), generate


@intrinsic
def _borrow(_context: Any, value: Any) -> Any:
    """Return an array, or a tuple with arrays, without a counted reference (in kernels).

    Counting references to slices is most of the cost of calling a function on a short list. The
    caller makes sure that the arrays outlive the result: arguments of a kernel do.
    """

    def uncounted(context: Any, builder: Any, kind: Any, held: Any) -> Any:
        if isinstance(kind, _types.Array):
            array = context.make_array(kind)(context, builder, held)
            array.meminfo = array.meminfo.type(None)
            array.parent = array.parent.type(None)
            return array._getvalue()
        if isinstance(kind, _types.BaseTuple):
            for index, item_kind in enumerate(kind.types):
                item = builder.extract_value(held, index)
                item = uncounted(context, builder, item_kind, item)
                held = builder.insert_value(held, item, index)
        return held

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return uncounted(context, builder, signature.args[0], arguments[0])

    return value(value), generate


def _plain_eight_bytes(text: Bytes, start: int) -> np.uint64:
    return np.uint64(int.from_bytes(text[start : start + 8].tobytes(), sys.byteorder))


def _plain_trailing_zeros(word: np.uint64) -> int:
    return (int(word) & -int(word)).bit_length() - 1


def _plain_prefetch(_array: NDArray[Any], _index: int) -> None:
    pass


def _plain_borrow(value: Any) -> Any:
    return value


# Intrinsics take a typing context first that callers do not see, which mypy cannot know.
eight_bytes = cast(Callable[[Bytes, int], np.uint64], _plain_eight_bytes if PLAIN else _eight_bytes)
trailing_zeros = cast(
    Callable[[np.uint64], int], _plain_trailing_zeros if PLAIN else _trailing_zeros
)
prefetch = cast(Callable[[NDArray[Any], int], None], _plain_prefetch if PLAIN else _prefetch)
borrow = cast(Callable[[_Value], _Value], _plain_borrow if PLAIN else _borrow)

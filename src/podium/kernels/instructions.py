"""What compiled code has for the functions of ``podium.kernels.intrinsics``."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import lower_builtin, type_callable

from podium.kernels.intrinsics import borrow, eight_bytes, prefetch, trailing_zeros

_types: Any = types  # Numba's stubs leave them untyped
_lower: Any = lower_builtin


@type_callable(eight_bytes)
def _eight_bytes_type(_context: Any) -> Any:
    return lambda text, _start: _types.uint64(text, _types.intp)


def _eight_bytes(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    word = context.get_value_type(_types.uint64)
    address = builder.gep(array.data, [arguments[1]])
    return builder.load(builder.bitcast(address, word.as_pointer()), align=1)


@type_callable(trailing_zeros)
def _trailing_zeros_type(_context: Any) -> Any:
    return lambda _word: _types.int64(_types.uint64)


def _trailing_zeros(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    never_zero = context.get_constant(_types.boolean, True)
    return builder.cttz(arguments[0], builder.trunc(never_zero, never_zero.type))


@type_callable(prefetch)
def _prefetch_type(_context: Any) -> Any:
    return lambda _array, _index: _types.void(_array, _types.intp)


def _prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    entries = context.make_array(signature.args[0])(context, builder, arguments[0])
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], fetch_type)
    address = builder.bitcast(builder.gep(entries.data, [arguments[1]]), byte)
    to_read, into_second_level, data = number(0), number(2), number(1)
    builder.call(fetch, [address, to_read, into_second_level, data])
    return context.get_dummy_value()


@type_callable(borrow)
def _borrow_type(_context: Any) -> Any:
    return lambda value: value(value)


def _borrow(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    def uncounted(kind: Any, held: Any) -> Any:
        if isinstance(kind, _types.Array):
            array = context.make_array(kind)(context, builder, held)
            array.meminfo = array.meminfo.type(None)
            array.parent = array.parent.type(None)
            return array._getvalue()
        if isinstance(kind, _types.BaseTuple):
            for index, item_kind in enumerate(kind.types):
                item = uncounted(item_kind, builder.extract_value(held, index))
                held = builder.insert_value(held, item, index)
        return held

    return uncounted(signature.args[0], arguments[0])


_lower(eight_bytes, _types.Array, _types.Integer)(_eight_bytes)
_lower(trailing_zeros, _types.Integer)(_trailing_zeros)
_lower(prefetch, _types.Array, _types.Integer)(_prefetch)
_lower(borrow, _types.Any)(_borrow)

"""The one loop over queries that calls every measure's function.

All functions have one signature, ``(Ranked, Settings) -> float``, so one compiled loop calls any of
them by address: a new measure compiles its own few lines and nothing else, and what it compiled is
cached on disk like any other kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj
from numpy.typing import NDArray

from podium.kernels import PLAIN, Doubles, Floats, Ints, kernel
from podium.measures.compiled.ranked import (
    Flags,
    MeasureFunction,
    Places,
    Ranked,
    RankedPairs,
    Settings,
)

_Array = TypeVar("_Array")


class Compiled(NamedTuple):
    """A compiled function, which must be kept, and the address of its machine code.

    Where ``NUMBA_DISABLE_JIT`` is set there is no machine code: the function stands for it.
    """

    function: Any
    address: Any


# Numba's stubs leave these untyped.
_types: Any = types
_arrays: Any = arrayobj
_code: Any = cgutils

_FLOATS = _types.Array(_types.float32, 1, "C")
_DOUBLES = _types.Array(_types.float64, 1, "C")
_PLACES = _types.Array(_types.int32, 1, "C")
_RANKED = _types.NamedTuple([_FLOATS, _FLOATS, _PLACES, _types.int64], Ranked)
_PAIRS = _types.NamedTuple([_DOUBLES, _DOUBLES, _types.int64], RankedPairs)
_SETTINGS = _types.NamedTuple(
    [_types.int64, _types.float64, _types.int64, _types.float64, _types.float64, _types.int64]
    + [_types.boolean] * 5
    + [_DOUBLES] * 4,
    Settings,
)
_PLACEHOLDER = "<object type:"
"""What Numba takes for the text of a number that it cannot write, without an error."""

_ON_LABELS = _types.float64(_RANKED, _SETTINGS)
_ON_PAIRS = _types.float64(_PAIRS, _SETTINGS)


def compile_function(function: MeasureFunction, *, on_pairs: bool) -> Compiled:
    """A measure's function compiled for its one signature, from the disk if it was before.

    A function that has no file (typed at a prompt, or in a docstring) compiles each time.
    """
    signature = _ON_PAIRS if on_pairs else _ON_LABELS
    compiled: Any = kernel(function)
    if PLAIN:
        return Compiled(compiled, compiled)
    result = compiled.get_compile_result(signature)
    if _PLACEHOLDER in str(result.type_annotation):
        raise TypingError("str() and f-strings do not write floats in compiled code")
    address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    return Compiled(compiled, address)


@intrinsic
def _call(_context: Any, _address: Any, query: Any, settings: Any) -> Any:
    """Call the function at an address.

    As Numba calls functions that are arguments, but without looking their address up each time.
    """
    if settings != _SETTINGS or query not in (_RANKED, _PAIRS):
        raise TypingError(f"a measure's function does not take ({query}, {settings})")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, returned, kinds = context.call_conv, signature.return_type, signature.args[1:]
        kind = convention.get_function_type(returned, kinds).as_pointer()
        function = builder.inttoptr(arguments[0], kind)
        status, value = convention.call_function(builder, function, returned, kinds, arguments[1:])
        with _code.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return value

    return _types.float64(_types.int64, query, settings), generate


def _plain_call(function: MeasureFunction, query: Any, settings: Settings) -> float:
    return function(query, settings)


call = cast("Callable[[int, Any, Settings], float]", _plain_call if PLAIN else _call)


@intrinsic
def _lend(_context: Any, array: Any, _begin: Any, _end: Any) -> Any:
    """Part of an array, as ``array[begin:end]`` but without counting a reference to it.

    Counting is most of the cost of calling a measure on a short list, and makes threads that work
    on one array wait for each other. The caller makes sure that the array outlives the call.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        whole = context.make_array(kind)(context, builder, arguments[0])
        part = context.make_array(signature.return_type)(context, builder)
        width = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        step = context.get_constant(_types.intp, width)
        _arrays.populate_array(
            part,
            data=builder.gep(whole.data, [arguments[1]]),
            shape=[builder.sub(arguments[2], arguments[1])],
            strides=[step],
            itemsize=step,
            meminfo=None,
        )
        return part._getvalue()

    return array(array, _types.intp, _types.intp), generate


def _plain_lend(array: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
    return in_double_precision(array[begin:end])


lend = cast("Callable[[_Array, int, int], _Array]", _plain_lend if PLAIN else _lend)


@kernel
def _lent(settings: Settings) -> Settings:
    return Settings(
        settings.cut,
        settings.rel,
        settings.k,
        settings.p,
        settings.highest,
        settings.curve,
        settings.divide_by_size,
        settings.at_most_cut,
        settings.labels_are_chances,
        settings.graded,
        settings.together,
        lend(settings.gains, 0, len(settings.gains)),
        lend(settings.discounts, 0, len(settings.discounts)),
        lend(settings.best_discounts, 0, len(settings.best_discounts)),
        lend(settings.own, 0, len(settings.own)),
    )


@kernel
def over_labels(
    function: int,
    expected: int,
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    sizes: Ints,
    ideal: Floats,
    ideal_starts: Ints,
    judged: Ints,
    ties: Places,
    tied: Flags,
    settings: Settings,
    values: Doubles,
) -> None:
    """Call a measure's function for each query of a block: ``expected`` where scores are tied."""
    own = _lent(settings)
    for query in range(len(values)):
        begin, end = starts[query], starts[query] + kept[query]
        first, last = ideal_starts[query], ideal_starts[query] + judged[query]
        marked = end if tied[query] else begin
        one = Ranked(
            lend(ranked, begin, end),
            lend(ideal, first, last),
            lend(ties, begin, marked),
            sizes[query],
        )
        values[query] = call(expected if tied[query] else function, one, own)


def in_double_precision(array: NDArray[Any]) -> NDArray[Any]:
    """Labels as compiled code computes with them.

    Next to Python's own numbers Numba makes float32 a double; NumPy would stay in single precision.
    """
    return array.astype(np.float64) if array.dtype == np.float32 else array


def over_labels_in_python(
    function: MeasureFunction,
    expected: MeasureFunction,
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    sizes: Ints,
    ideal: Floats,
    ideal_starts: Ints,
    judged: Ints,
    ties: Places,
    tied: Flags,
    settings: Settings,
    values: Doubles,
) -> None:
    """``over_labels`` for functions that Numba cannot compile."""
    ends, lasts = starts + kept, ideal_starts + judged
    for query in range(len(values)):
        own = slice(starts[query], ends[query])
        labels = in_double_precision(ranked[own])
        best = in_double_precision(ideal[ideal_starts[query] : lasts[query]])
        one = Ranked(labels, best, ties[own] if tied[query] else ties[:0], int(sizes[query]))
        values[query] = (expected if tied[query] else function)(one, settings)


@kernel
def over_pairs(
    function: int,
    better: Doubles,
    worse: Doubles,
    starts: Ints,
    sizes: Ints,
    settings: Settings,
    values: Doubles,
) -> None:
    """Call a measure's function for each query whose truth is pairs."""
    own = _lent(settings)
    for query in range(len(values)):
        begin, end = starts[query], starts[query + 1]
        one = RankedPairs(lend(better, begin, end), lend(worse, begin, end), sizes[query])
        values[query] = call(function, one, own)

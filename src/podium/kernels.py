"""The one decorator behind every compiled loop.

Kernels release the GIL and run over a range of rows or queries; ``podium.threads`` spreads
ranges over threads. ``parallel=True`` is never used: it compiles longer and brings a
threading layer of its own. Compiled code is cached beside the source (or in Numba's user-wide
cache where that is read-only), so a kernel compiles once per machine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile a function over arrays with Numba, without the GIL, cached on disk.

    Example:
        >>> import numpy as np
        >>> @kernel
        ... def total(values, start, stop):
        ...     result = 0.0
        ...     for row in range(start, stop):
        ...         result += values[row]
        ...     return result
        >>> total(np.arange(4.0), 1, 3)
        3.0
    """
    return _compiled(function, fastmath=False)


def fast_kernel(function: _Function) -> _Function:
    """Like ``kernel``, for plain sums of finite numbers, which may be added in any order.

    That lets the compiler add several at once. Never for code that looks for NaN or infinities.
    """
    return _compiled(function, fastmath={"reassoc", "contract"})


def _compiled(function: _Function, fastmath: bool | set[str]) -> _Function:
    compiled = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    # Code typed at a prompt has no file to keep a cache beside, a read-only system no folder for
    # one, and functions that NUMBA_DISABLE_JIT left alone need none: they do without.
    with suppress(RuntimeError, AttributeError):
        compiled.enable_caching()
    return cast(_Function, compiled)


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


# Intrinsics take a typing context first that callers do not see, which mypy cannot know.
eight_bytes = cast(Callable[[Bytes, int], np.uint64], _eight_bytes)
trailing_zeros = cast(Callable[[np.uint64], int], _trailing_zeros)

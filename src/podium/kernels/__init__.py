"""The one decorator behind every compiled loop.

Kernels release the GIL and run over a range of rows or queries; ``podium.threads`` spreads
ranges over threads. ``parallel=True`` is never used: it compiles longer and brings a
threading layer of its own. Compiled code is cached beside the source (or in Numba's user-wide
cache where that is read-only), so a kernel compiles once per machine, and again when its file
or one of those whose functions it calls changes (``podium.kernels.cache``).

With ``NUMBA_DISABLE_JIT=1`` in the environment all of them run as plain Python: slowly, but a
debugger stops in them, coverage sees their lines, and a change needs no compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from podium.kernels.cache import keep_on_disk

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_Function = TypeVar("_Function", bound=Callable[..., object])

_config: Any = numba.config  # which sets its names when it is loaded
PLAIN = bool(_config.DISABLE_JIT)
"""Whether Numba compiles nothing, because ``NUMBA_DISABLE_JIT`` is set."""


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


def inner(function: _Function) -> _Function:
    """Compile a function for kernels alone to call: it is cached as part of them.

    That spares the first call machine code and a file for each.
    """
    return cast(_Function, numba.njit(error_model="numpy")(function))


def _compiled(function: _Function, fastmath: bool | set[str]) -> _Function:
    if PLAIN:
        return _without_warnings(function)
    compiled = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    # Code typed at a prompt has no file to keep a cache beside, and a read-only system no folder
    # for one: they do without.
    with suppress(RuntimeError):
        keep_on_disk(compiled)
    return cast(_Function, compiled)


def _without_warnings(function: _Function) -> _Function:
    """Let a function wrap around and divide by zero in silence, as compiled code does."""

    @wraps(function)
    def quiet(*arguments: object, **named: object) -> object:
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return cast(_Function, quiet)

"""The decorators behind every compiled loop.

Kernels release the GIL and run over a range of rows or queries; ``podium.threads`` spreads
ranges over threads. ``parallel=True`` is never used: it compiles longer and brings a
threading layer of its own. Compiled code is cached beside the source (or in Numba's user-wide
cache where that is read-only), so a kernel compiles once per machine, and again when its file
or one of those whose functions it calls changes (``podium.kernels.cache``). Numba itself is
imported when the first of them is compiled.

With ``NUMBA_DISABLE_JIT=1`` in the environment all of them run as plain Python: slowly, but a
debugger stops in them, coverage sees their lines, and a change needs no compilation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from math import inf
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_Function = TypeVar("_Function", bound=Callable[..., object])

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether Numba compiles nothing, because ``NUMBA_DISABLE_JIT`` is set."""

SMALL = 1 << 19
"""How many bytes of arrays a ``lazy_kernel`` takes as plain Python before it is compiled."""

_LOCK = Lock()


class Kernel:
    """A function and what Numba makes of it, which other kernels call as well.

    Args:
        function: The function.
        lazy: Whether calls with few elements run as Python.
        on_disk: Whether its code is kept there.
        options: What Numba's ``njit`` takes.
    """

    def __init__(
        self, function: Callable[..., Any], *, lazy: bool, on_disk: bool, **options: Any
    ) -> None:
        update_wrapper(self, function)
        self.function, self._options, self._on_disk = function, options, on_disk
        self._read = 0.0 if lazy else inf
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher, which compiles the function for each type of arguments."""
        if self._compiled is None:
            from podium.kernels.cache import dispatcher  # imported here: it imports Numba

            with _LOCK:
                self._compiled = self._compiled or dispatcher(
                    self.function, self._options, on_disk=self._on_disk
                )
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        """Run as Python while little was read so far, and compiled from then on."""
        if not PLAIN:
            if self._read > SMALL:
                return self.compiled(*arguments)
            self._read += sum(each.nbytes for each in arguments if isinstance(each, np.ndarray))
            if self._read > SMALL:
                return self.compiled(*arguments)
        with np.errstate(all="ignore"):  # wrap around and divide by zero as compiled code does
            try:
                return self.function(*arguments)
            except (ArithmeticError, ValueError):
                # Python's own numbers raise where compiled code goes on with infinities and NaN.
                if PLAIN:
                    raise
        return self.compiled(*arguments)


class _Inner(Kernel):
    """A part of kernels, which runs as they do."""

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


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
    return _kernel(function, lazy=False)


def lazy_kernel(function: _Function) -> _Function:
    """Like ``kernel``, for a pass over its arrays that gives the same bits as plain Python.

    It is compiled once its calls have taken more than ``SMALL`` bytes of arrays: small files do not
    wait for that, nor for Numba.
    """
    return _kernel(function, lazy=True)


def fast_kernel(function: _Function) -> _Function:
    """Like ``kernel``, for plain sums of finite numbers, which may be added in any order.

    That lets the compiler add several at once. Never for code that looks for NaN or infinities.
    """
    return _kernel(function, lazy=False, fastmath={"reassoc", "contract"})


def inner(function: _Function) -> _Function:
    """Compile a function for kernels alone to call: it is cached as part of them.

    That spares the first call machine code and a file for each.
    """
    return cast(_Function, _Inner(function, lazy=False, on_disk=False))


def _kernel(function: _Function, **options: Any) -> _Function:
    return cast(_Function, Kernel(function, on_disk=True, nogil=True, **options))

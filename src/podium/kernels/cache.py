"""What Numba does for kernels, and what keeps compiled code on disk from going out of date.

Numba recompiles a cached function if its file has changed, but functions of other files that it
calls are compiled into it, and Numba does not notice changes there. So the cache key contains a
digest of everything that went into the code: the files of all compiled functions it
reaches, and the constants it took from elsewhere.

Only what compiles imports this module: Numba takes half a second to import.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.extending import typeof_impl

from podium.kernels import Kernel, instructions

_CONSTANTS = (bool, int, float, str, bytes, np.generic, type(None))


class _GuardedCache(FunctionCache):
    """Numba's on-disk cache of one function, with a digest of all its ingredients in the key."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._function = function

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # Asked for when code is loaded or saved, not when the function is decorated: functions
        # further down in its file are known by then.
        key = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*key, _ingredients_digest(self._function))


def dispatcher(function: Callable[..., Any], options: dict[str, Any], *, on_disk: bool) -> Any:
    """Return what compiles a function when it is called, and may keep its code beside its file."""
    compiled: Any = numba.njit(error_model="numpy", **options)(function)
    if on_disk:
        # Code typed at a prompt has no file to keep a cache beside, and a read-only system no
        # folder for one: they do without.
        with suppress(RuntimeError):
            compiled._cache = _GuardedCache(compiled.py_func)
    return compiled


@typeof_impl.register(Kernel)
def _type_of_kernel(kernel: Kernel, _context: Any) -> Any:
    """Let kernels call a kernel by its name, which stands for a ``Kernel``."""
    return types.Dispatcher(kernel.compiled)


def _ingredients_digest(function: FunctionType) -> str:
    """Return a digest of everything that compiling a function depends on."""
    digest = hashlib.sha256()
    files = {instructions.__file__}
    seen: set[FunctionType] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        files.add(current.__code__.co_filename)
        for name, value in _taken_in(current):
            if isinstance(value, Dispatcher):
                waiting.append(value.py_func)
            elif isinstance(value, Kernel):
                waiting.append(cast(FunctionType, value.function))
            elif isinstance(value, type):
                files.add(_file_of_class(value))
            elif isinstance(value, np.ndarray):
                digest.update(f"{name} {value.dtype} {value.shape}".encode() + value.tobytes())
            elif isinstance(value, _CONSTANTS):
                digest.update(f"{name} {value!r}\n".encode())
    for file in sorted(files):
        digest.update(_file_digest(file))
    return digest.hexdigest()


def _taken_in(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the values that a function refers to, in a fixed order."""
    for name, value in _named(function):
        if isinstance(value, tuple):  # its repr may contain addresses, which differ between runs
            yield from ((f"{name} {index}", each) for index, each in enumerate(value))
        else:
            yield name, value


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        yield f"{code.co_name} code", code.co_code  # a notebook's cells have no file
        for index, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                codes.append(constant)
            else:
                yield f"{code.co_name} {index}", constant
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType):
            for own in sorted(names & vars(value).keys()):
                yield f"{name}.{own}", vars(value)[own]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _file_of_class(class_: type) -> str:
    # A named tuple's functions are made, not written: its module knows the file.
    return getattr(sys.modules.get(class_.__module__), "__file__", None) or ""


@cache
def _file_digest(file: str) -> bytes:
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:  # defined at a prompt: without a file nothing is cached
        return b""

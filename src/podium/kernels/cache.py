"""The guard that keeps compiled code on disk from going out of date.

Numba compiles a cached function again if the file it stands in has changed, but functions of other
files that it calls are compiled into it, and changes there it does not see. So the key of what is
cached holds a digest of everything that went into the code: the files of all compiled functions it
reaches, and the constants it took from elsewhere.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

_CONSTANTS = (bool, int, float, str, bytes, np.generic, type(None))


class _GuardedCache(FunctionCache):
    """Numba's cache of one function on disk, with all that the code was made of in its key."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._function = function

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # Asked for when code is loaded or saved, not when the function is decorated: functions
        # further down in its file are known by then.
        key = super()._index_key(sig, codegen)  # type: ignore[no-untyped-call]
        return (*key, _ingredients_digest(self._function))


def keep_on_disk(compiled: Any) -> None:
    """Keep what a compiled function compiles beside its file; RuntimeError where nothing can be."""
    compiled._cache = _GuardedCache(compiled.py_func)


def _ingredients_digest(function: FunctionType) -> str:
    """A digest of all that compiling a function takes in, wherever that is defined."""
    digest = hashlib.sha256()
    files: set[str] = set()
    seen: set[FunctionType] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        files.add(one.__code__.co_filename)
        for name, value in _taken_in(one):
            if isinstance(value, Dispatcher):
                waiting.append(value.py_func)
            elif isinstance(made_from := getattr(value, "__wrapped__", None), FunctionType):
                waiting.append(made_from)  # an intrinsic
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
    """The values that a function names or holds, in an order that is always the same."""
    for name, value in _named(function):
        if isinstance(value, tuple):  # its own text may hold addresses, which never come again
            yield from ((f"{name} {place}", each) for place, each in enumerate(value))
        else:
            yield name, value


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        for place, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                codes.append(constant)
            else:
                yield f"{code.co_name} {place}", constant
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, ModuleType):
            for own in sorted(names & vars(value).keys()):
                yield f"{name}.{own}", vars(value)[own]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _file_of_class(given: type) -> str:
    # A named tuple's functions are made, not written: its module knows the file.
    return getattr(sys.modules.get(given.__module__), "__file__", None) or ""


@cache
def _file_digest(file: str) -> bytes:
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:  # typed at a prompt: there is no file, and nothing is cached
        return b""

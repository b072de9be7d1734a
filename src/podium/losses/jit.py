"""Compiling losses so that what is cached on disk is never out of date.

Numba compiles a cached function again if the file it stands in has changed, but does not see
changes in other files whose functions it calls. So of the compiled functions of a loss only the
outermost is cached, under a name with a digest of this package's files in it.
"""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numba

from podium.kernels import Doubles, Ints, kernel

_Function = TypeVar("_Function", bound=Callable[..., object])


def inner(function: _Function) -> _Function:
    """Compile a function for others to call, without a cache on disk of its own."""
    return cast(_Function, numba.njit(error_model="numpy")(function))


def outer(function: _Function) -> _Function:
    """Compile a function that Python calls, cached on disk beside its file."""
    plain = cast(FunctionType, function)
    return cast(_Function, _cached(plain, plain.__code__, plain.__globals__))


_ONE_AT_A_TIME = Lock()


def over_range(query: Callable[..., float]) -> Callable[..., None]:
    """Compile a loss of one query into a loop over a range of queries.

    The two are compiled together, so the call is inlined and costs nothing per query. The loop
    takes on the file of the loss, to be cached beside it and compiled again if that is edited.
    """
    with _ONE_AT_A_TIME:  # threads that start together would each compile it
        return _over_range(query)


@cache
def _over_range(query: Callable[..., float]) -> Callable[..., None]:
    one = cast(FunctionType, query)
    # The function is a global of the loop, not a closure: in the key of Numba's cache a closure
    # holds an identity that changes from process to process.
    names = {"query_loss": inner(query), "__name__": one.__module__, "__builtins__": builtins}
    return _cached(one, _loop.__code__, names)


def _loop(
    scores: Doubles,
    labels: Doubles,
    offsets: Ints,
    values: Doubles,
    gradient: Doubles,
    curvature: Doubles,
    first: int,
    last: int,
    arguments: tuple[Any, ...],
) -> None:
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        gradient[begin:end] = 0.0
        curvature[begin:end] = 0.0
        values[query] = 0.0
        if end > begin:
            values[query] = query_loss(  # type: ignore[name-defined]  # noqa: F821
                scores[begin:end],
                labels[begin:end],
                gradient[begin:end],
                curvature[begin:end],
                *arguments,
            )


def _cached(owner: FunctionType, code: CodeType, names: dict[str, Any]) -> Callable[..., Any]:
    name = f"{owner.__qualname__}_{_digest()}"
    place = owner.__code__
    code = code.replace(
        co_filename=place.co_filename, co_firstlineno=place.co_firstlineno, co_name=name
    )
    function = FunctionType(code, names, name)
    function.__qualname__ = name
    return kernel(function)


@cache
def _digest() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]

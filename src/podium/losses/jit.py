"""Compiling a loss of one query into a loop over queries."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import cache
from threading import Lock
from types import FunctionType
from typing import Any, cast

from podium.kernels import Doubles, Ints, inner, kernel

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
    place, name = one.__code__, one.__qualname__
    code = _loop.__code__.replace(
        co_filename=place.co_filename, co_firstlineno=place.co_firstlineno, co_name=name
    )
    loop = FunctionType(code, names, name)
    loop.__qualname__ = name
    return kernel(loop)


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

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
    return around(query, _loop)


def around(query: Callable[..., float], loop: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function in which ``query_loss`` stands for a loss of one query."""
    with _ONE_AT_A_TIME:  # threads that start together would each compile it
        return _around(query, loop)


@cache
def _around(query: Callable[..., float], loop: Callable[..., Any]) -> Callable[..., Any]:
    one, frame = cast(FunctionType, query), cast(FunctionType, loop)
    # The function is a global of the loop, not a closure: in the key of Numba's cache a closure
    # holds an identity that changes from process to process.
    names = {
        **{
            name: frame.__globals__[name]
            for name in frame.__code__.co_names
            if name in frame.__globals__
        },
        "query_loss": inner(query),
        "__name__": one.__module__,
        "__builtins__": builtins,
    }
    place, name = one.__code__, f"{one.__qualname__}{frame.__name__}"
    code = frame.__code__.replace(
        co_filename=place.co_filename, co_firstlineno=place.co_firstlineno, co_name=name
    )
    made = FunctionType(code, names, name)
    made.__qualname__ = name
    return kernel(made)


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

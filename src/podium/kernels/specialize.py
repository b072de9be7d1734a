"""Compiling a function of one query, Podium's or a user's, into a loop over many.

A loop is a template: an ordinary function that calls other functions by names which are filled in
here. Each specialization is compiled as one piece, so the calls are inlined and cost nothing per
query, and it is cached on disk beside the file of the function that it was specialized for.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from types import FunctionType
from typing import Any, cast

from podium.kernels import inner, kernel, lazy_kernel

_LOCK = Lock()


def specialize(
    template: Callable[..., Any],
    functions: Mapping[str, Callable[..., Any]],
    *,
    compiled: bool = True,
    lazy: bool = False,
) -> Callable[..., Any]:
    """Compile a template with the functions that names in it stand for.

    The result is made once for the same arguments, whichever thread asks first.

    Args:
        template: The loop. It may use globals of its module, but neither closures nor defaults.
        functions: The functions, by their names in the template. The compiled loop is cached
            beside the file of the first.
        compiled: Whether to compile at all; False runs the loop as plain Python.
        lazy: Whether it is a ``lazy_kernel``.

    Example:
        >>> import numpy as np
        >>> def total(values):
        ...     result = 0.0
        ...     for row in range(len(values)):
        ...         result += term(values[row])
        ...     return result
        >>> def square(value):
        ...     return value * value
        >>> specialize(total, {"term": square})(np.array([1.0, 2.0]))
        5.0
    """
    with _LOCK:  # threads that start together would each compile it
        return _specialize(template, compiled, lazy, tuple(functions.items()))


@cache
def _specialize(
    template: Callable[..., Any],
    compiled: bool,
    lazy: bool,
    functions: tuple[tuple[str, Callable[..., Any]], ...],
) -> Callable[..., Any]:
    loop, owner = cast(FunctionType, template), cast(FunctionType, functions[0][1])
    # Functions are globals of the loop, not closures: in the key of Numba's cache a closure has an
    # identity that changes from process to process.
    names = {
        name: loop.__globals__[name] for name in loop.__code__.co_names if name in loop.__globals__
    }
    names |= {name: inner(function) if compiled else function for name, function in functions}
    names |= {"__name__": owner.__module__, "__builtins__": builtins}
    # The loop takes on the file and line of the function: Numba caches code beside its file, and
    # compiles it again if that is edited.
    name = f"{owner.__qualname__}.{loop.__name__}"
    code = loop.__code__.replace(
        co_filename=owner.__code__.co_filename,
        co_firstlineno=owner.__code__.co_firstlineno,
        co_name=name,
    )
    specialized = FunctionType(code, names, name)
    specialized.__qualname__ = name
    if not compiled:
        return specialized
    return lazy_kernel(specialized) if lazy else kernel(specialized)

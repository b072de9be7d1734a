"""The loops over the queries of a block that call a measure's function.

They are templates (``podium.kernels.specialize``): ``query_value`` is a measure's function, and
``use_labels`` and the like pass on what the function takes and leave out what it does not.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import PLAIN, Doubles, Floats, Ints
from podium.kernels.intrinsics import borrow
from podium.kernels.specialize import specialize
from podium.measures.compiled import Booleans, Positions
from podium.measures.compiled.tied_orders import (
    ORDERS,
    count_orders,
    first_order,
    next_order,
    next_sample,
    seed,
)

# Filled in by ``specialize``.
query_value: Any = None
use_labels: Any = None
use_ideal: Any = None
use_ties: Any = None
use_size: Any = None
use_better: Any = None
use_worse: Any = None


def over_labels(
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    sizes: Ints,
    ideal: Floats,
    ideal_starts: Ints,
    judged: Ints,
    ties: Positions,
    tied: Booleans,
    of_tied: bool,
    arguments: tuple[Any, ...],
    values: Doubles,
) -> None:
    """Call a measure's function for each query without tied scores, or for each with some."""
    own_ranked, own_ideal, own_ties = borrow(ranked), borrow(ideal), borrow(ties)
    own_arguments = borrow(arguments)
    for query in range(len(values)):
        if tied[query] != of_tied:
            continue
        begin, end = starts[query], starts[query] + kept[query]
        first, last = ideal_starts[query], ideal_starts[query] + judged[query]
        inputs = (
            use_labels(own_ranked[begin:end])
            + use_ideal(own_ideal[first:last])
            + use_ties(own_ties[begin : end if of_tied else begin])
            + use_size(sizes[query])
        )
        values[query] = query_value(*(inputs + own_arguments))


def over_tied_orders(
    ranked: Floats,
    starts: Ints,
    kept: Ints,
    sizes: Ints,
    ideal: Floats,
    ideal_starts: Ints,
    judged: Ints,
    ties: Positions,
    tied: Booleans,
    of_tied: bool,
    arguments: tuple[Any, ...],
    values: Doubles,
) -> None:
    """Take the mean of a measure's function over the orders of tied documents."""
    own_ranked, own_ideal, own_arguments = borrow(ranked), borrow(ideal), borrow(arguments)
    for query in range(len(values)):
        if tied[query] != of_tied:
            continue
        begin, end = starts[query], starts[query] + kept[query]
        first, last = ideal_starts[query], ideal_starts[query] + judged[query]
        labels, ends = own_ranked[begin:end].copy(), ties[begin:end]
        first_order(labels, ends)
        orders = count_orders(labels, ends)
        state = seed()
        total = 0.0
        for order in range(min(orders, ORDERS)):
            if orders > ORDERS:
                next_sample(labels, ends, order, state)
            inputs = (
                use_labels(labels)
                + use_ideal(own_ideal[first:last])
                + use_ties(ends)
                + use_size(sizes[query])
            )
            total += query_value(*(inputs + own_arguments))
            if orders <= ORDERS:
                next_order(labels, ends)
        values[query] = total / min(orders, ORDERS)


def over_pairs(
    better: Doubles,
    worse: Doubles,
    starts: Ints,
    sizes: Ints,
    arguments: tuple[Any, ...],
    values: Doubles,
) -> None:
    """Call a measure's function for each query of preferred pairs."""
    own_better, own_worse, own_arguments = borrow(better), borrow(worse), borrow(arguments)
    for query in range(len(values)):
        begin, end = starts[query], starts[query + 1]
        inputs = (
            use_better(own_better[begin:end])
            + use_worse(own_worse[begin:end])
            + use_size(sizes[query])
        )
        values[query] = query_value(*(inputs + own_arguments))


def use(value: Any) -> tuple[Any]:
    """Pass an input on to the function."""
    return (value,)


def leave_out(_value: Any) -> tuple[()]:
    """Do not pass it on."""
    return ()


_INTS: Ints = np.zeros(1, np.int64)
_FLOATS: Floats = np.zeros(0, np.float32)
_DOUBLES: Doubles = np.zeros(0)
# What each template takes before the arguments of the measure, without any query.
_INPUTS = {
    over_pairs: ("better", "worse", "size"),
    over_labels: ("labels", "ideal", "ties", "size"),
    over_tied_orders: ("labels", "ideal", "ties", "size"),
}
_NO_LABELS = (
    _FLOATS,
    *(_INTS, _INTS, _INTS),
    _FLOATS,
    *(_INTS, _INTS),
    *(np.zeros(0, np.int32), np.zeros(0, np.bool_), False),
)
_NO_PAIRS = (_DOUBLES, _DOUBLES, _INTS, _INTS)

_LOOPS: dict[tuple[Callable[..., Any], Callable[..., float]], Callable[..., None]] = {}


def loop_for(
    template: Callable[..., None],
    function: Callable[..., float],
    inputs: Collection[str],
    arguments: tuple[Any, ...],
    lazy: bool = False,
) -> Callable[..., None]:
    """Return a loop that calls a measure's function, compiled if Numba can compile it.

    Args:
        template: One of the loops above.
        function: The function of one query.
        inputs: What it takes of a query, by name.
        arguments: What it takes besides, whose types the loop is compiled for.
        lazy: Whether a few short lists do not wait for the compiler.
    """
    key = template, function
    if key not in _LOOPS:
        _LOOPS[key] = _loop_for(template, function, inputs, arguments, lazy)
    return _LOOPS[key]


def _loop_for(
    template: Callable[..., None],
    function: Callable[..., float],
    inputs: Collection[str],
    arguments: tuple[Any, ...],
    lazy: bool,
) -> Callable[..., None]:
    functions: dict[str, Callable[..., Any]] = {"query_value": function}
    functions |= {f"use_{name}": use if name in inputs else leave_out for name in _INPUTS[template]}
    if PLAIN:
        return specialize(template, functions, compiled=False)
    if lazy:
        return specialize(template, functions, lazy=True)
    compiled = specialize(template, functions)
    nothing: Any = _NO_PAIRS if template is over_pairs else _NO_LABELS
    try:
        if _writes_text(function):
            raise TypeError("str() and f-strings do not write floats in compiled code")
        compiled(*nothing, arguments, _DOUBLES)
    # Not only NumbaError: what Numba does not expect in a function ends in errors of any type.
    except Exception as error:
        if template is over_pairs:
            raise ArgumentError(
                f"Numba cannot compile {function.__name__}, a measure of pairs. Write it with "
                f"numbers and loops only. {error}"
            ) from error
        return specialize(template, functions, compiled=False)
    return compiled


def _writes_text(function: Callable[..., Any]) -> bool:
    """Whether a function uses ``str()`` or f-strings, which Numba compiles to a placeholder."""
    return any(
        instruction.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
        or instruction.argval in ("str", "repr", "format")
        for instruction in dis.get_instructions(function)
    )

"""User-defined losses: one decorated function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, overload

import numpy as np

from podium.errors import ArgumentError
from podium.kernels import PLAIN
from podium.kernels.specialize import specialize
from podium.losses.base import Batch, plain_numbers
from podium.losses.compiled import CompiledLoss, over_losses

FIXED = ["scores", "labels", "gradient", "curvature"]


@dataclass(frozen=True)
class OwnLoss(CompiledLoss):
    """A loss made by the decorator ``loss``."""

    def __post_init__(self) -> None:
        plain_numbers(self)

    def arguments(self, _largest: int) -> tuple[Any, ...]:
        """The parameters in order; a tuple of numbers as an array."""
        values = (getattr(self, parameter.name) for parameter in fields(self))
        return tuple(
            np.array(value, np.float64) if isinstance(value, tuple) else value for value in values
        )

    def evaluate_range(self, batch: Batch, first: int, last: int) -> None:
        """As of any compiled loss; a function that Numba cannot compile is an ArgumentError."""
        try:
            super().evaluate_range(batch, first, last)
        except Exception as error:
            if PLAIN:
                raise
            from numba.core.errors import NumbaError  # imported here: Numba is loaded by now

            # Numba fails with errors of any type; only a function that was compiled has signatures.
            loop: Any = specialize(over_losses, {"query_loss": self.query})
            if not isinstance(error, NumbaError) and loop.compiled.signatures:
                raise
            raise ArgumentError(
                f"Numba cannot compile the loss {type(self).__name__}",
                hint="Use numbers, arrays and loops only: the error above says what it does not "
                "support.",
            ) from error


@overload
def loss(function: Callable[..., float]) -> type[OwnLoss]: ...


@overload
def loss(
    *, smooth: bool = True, convex: bool = False
) -> Callable[[Callable[..., float]], type[OwnLoss]]: ...


def loss(
    function: Callable[..., float] | None = None, *, smooth: bool = True, convex: bool = False
) -> type[OwnLoss] | Callable[[Callable[..., float]], type[OwnLoss]]:
    """Turn a function of one query into a loss, to use wherever Podium takes a loss.

    The function takes ``scores``, ``labels``, ``gradient`` and ``curvature`` (float64 arrays; the
    last two are zeros, to be written), then any parameters of its own, and returns the value. It is
    compiled by Numba and runs at the speed of Podium's own losses, spread over threads: it may use
    what Numba compiles, in particular loops and ``math`` functions over arrays. Its parameters
    become the fields of the loss: numbers, booleans, None, or tuples of numbers, which it sees as
    arrays. Compiled code is cached beside the file, and recompiled when the file changes.

    Args:
        function: The function, when the decorator is used without arguments.
        smooth: Whether its gradient is continuous, so that L-BFGS may be used.
        convex: Whether it is convex in the scores.

    Example:
        >>> @loss(convex=True)
        ... def squared_error(scores, labels, gradient, curvature, offset=0.0):
        ...     value = 0.0
        ...     for row in range(len(scores)):
        ...         error = scores[row] - labels[row] - offset
        ...         value += error * error
        ...         gradient[row] = 2.0 * error
        ...         curvature[row] = 2.0
        ...     return value
        >>> squared_error(offset=1.0)
        squared_error(offset=1.0)
        >>> squared_error().evaluate([1.0, 0.0], labels=[0, 2], offsets=[0, 2]).total
        5.0
    """
    if function is None:
        return lambda decorated: _loss_class(decorated, smooth, convex)
    return _loss_class(function, smooth, convex)


def _loss_class(function: Callable[..., float], smooth: bool, convex: bool) -> type[OwnLoss]:
    name = function.__name__
    parameters = list(inspect.signature(function).parameters.values())
    if [parameter.name for parameter in parameters[: len(FIXED)]] != FIXED:
        raise ArgumentError(
            f"{name} does not begin with the parameters of a loss. Give it {', '.join(FIXED)} "
            "first, then its own."
        )
    own_fields = []
    for parameter in parameters[len(FIXED) :]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise ArgumentError(f"{name} takes {parameter}. Give its parameters names, without *.")
        if hasattr(OwnLoss, parameter.name):
            raise ArgumentError(
                f"{name} has a parameter {parameter.name}. "
                "Every loss has that attribute: rename it."
            )
        has_default = parameter.default is not parameter.empty
        own_fields.append(
            (parameter.name, Any, field(default=parameter.default) if has_default else field())
        )
    namespace = {
        "query": staticmethod(function),
        "smooth": smooth,
        "convex": convex,
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
    }
    return make_dataclass(name, own_fields, bases=(OwnLoss,), namespace=namespace, frozen=True)

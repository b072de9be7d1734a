"""Integrated gradients of a network of rectified layers, exact up to rounding.

On a straight line the scores of such a network are linear between the points where a unit switches
on or off. So the integral of its gradient is a sum over these pieces rather than an approximation
by steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from podium.kernels import Doubles

Layers: TypeAlias = "Sequence[tuple[Doubles, Doubles]]"
"""The weights (outputs times inputs) and biases of each layer; all but the last are rectified."""


def linear_pieces(layers: Layers, start: Doubles, direction: Doubles) -> Doubles:
    """Return the ends of the linear pieces of ``start + t * direction``, for t from 0 to 1.

    Example:
        >>> hidden = np.array([[1.0], [-2.0]]), np.array([0.0, 1.0])
        >>> layers = [hidden, (np.ones((1, 2)), np.zeros(1))]
        >>> linear_pieces(layers, np.array([-1.0]), np.array([4.0])).tolist()
        [0.0, 0.25, 0.375, 1.0]
    """
    return _pieces(layers, start, direction)[0]


def integrated_gradients(layers: Layers, start: Doubles, ends: Doubles) -> Doubles:
    """Return what each input contributes to the difference of scores between ends and a start.

    Args:
        layers: The network.
        start: The inputs at the start of each path.
        ends: The inputs at the end of each path, one row each.

    Example:
        >>> layers = [(np.array([[1.0, 1.0]]), np.zeros(1)), (np.ones((1, 1)), np.zeros(1))]
        >>> integrated_gradients(layers, np.array([-1.0, -1.0]), np.array([[2.0, 0.0]])).tolist()
        [[1.5, 0.5]]
    """
    return np.stack([_along(layers, start, end - start) for end in ends])


def _along(layers: Layers, start: Doubles, direction: Doubles) -> Doubles:
    times, active = _pieces(layers, start, direction)
    gradient = np.repeat(layers[-1][0], len(times) - 1, axis=0)
    for (weights, _), mask in zip(layers[-2:0:-1], active[:0:-1], strict=True):
        gradient = (gradient * mask) @ weights
    if not active:
        return np.asarray(gradient[0] * direction)
    mean = np.diff(times) @ (gradient * active[0]) @ layers[0][0]
    return np.asarray(mean * direction)


def _pieces(layers: Layers, start: Doubles, direction: Doubles) -> tuple[Doubles, list[Doubles]]:
    """Return the ends of the linear pieces, and which units of each layer are on, piece by piece.

    Within a piece, the inputs of a layer are ``offset + t * slope``.
    """
    times = np.array([0.0, 1.0])
    active: list[Doubles] = []
    offset, slope = start[None], direction[None]
    for weights, biases in layers[:-1]:
        offset, slope = offset @ weights.T + biases, slope @ weights.T
        with np.errstate(divide="ignore", invalid="ignore"):
            switches = -offset / slope
        inside = (switches > times[:-1, None]) & (switches < times[1:, None])
        cut = np.unique(np.concatenate([times, switches[inside]]))
        # Each new piece lies in one of those before.
        middle = (cut[:-1] + cut[1:]) / 2
        parent = np.searchsorted(times, middle) - 1
        active = [mask[parent] for mask in active]
        offset, slope, times = offset[parent], slope[parent], cut
        on = (offset + middle[:, None] * slope > 0).astype(np.float64)
        active.append(on)
        offset, slope = offset * on, slope * on
    return times, active

"""Minimize a small quadratic over non-negative variables.

An active-set method on the normal equations (Lawson and Hanson 1974, chapter 23), started from
variables near the answer. SciPy's ``nnls`` takes no start, and 1.17 returns wrong answers for some
right-hand sides with zeros.
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles

_PRECISION = 1e-12


def minimize_quadratic(matrix: Doubles, pull: Doubles, start: Doubles) -> Doubles:
    """Return the non-negative x that minimizes ``x·matrix·x / 2 - pull·x``.

    Args:
        matrix: Symmetric and positive definite.
        pull: The linear term.
        start: Non-negative; all zeros if nothing is known.

    Example:
        >>> minimize_quadratic(np.array([[2.0, 1], [1, 2]]), np.array([2.0, -1]), np.zeros(2))
        array([1., 0.])
    """
    values = start if start.any() else np.maximum(np.linalg.solve(matrix, pull), 0.0)
    free = values > 0.0
    tolerance = _PRECISION * float(np.abs(pull).max(initial=0.0))
    one_by_one = False
    for _ in range(10 * len(pull) + 100):
        previous = values
        values, free = _among_free(matrix, pull, values, free)
        slopes = np.where(free, -np.inf, pull - matrix @ values)
        best = int(np.argmax(slopes))
        if slopes[best] <= tolerance:
            break
        # Free every variable that would lower the value. If together they do not lower it,
        # free only the steepest: that always lowers it.
        one_by_one = one_by_one or np.array_equal(values, previous)
        if one_by_one:
            free[best] = True
        else:
            free |= slopes > tolerance
    return values


def _among_free(
    matrix: Doubles, pull: Doubles, values: Doubles, free: np.ndarray
) -> tuple[Doubles, np.ndarray]:
    """Minimize over the free variables; those that reach 0 on the way are fixed there."""
    free = free.copy()
    while free.any():
        minimum = np.zeros(len(pull))
        minimum[free] = np.linalg.solve(matrix[np.ix_(free, free)], pull[free])
        below = free & (minimum <= 0.0)
        if not below.any():
            return minimum, free
        gaps = values[below] - minimum[below]
        steps = np.divide(values[below], gaps, out=np.zeros(len(gaps)), where=gaps > 0.0)
        step = float(steps.min())
        values = np.where(free, values + step * (minimum - values), 0.0)
        at_bound = np.flatnonzero(below)[steps <= step]
        values[at_bound] = 0.0
        free[at_bound] = False
    return np.zeros(len(pull)), free

"""The smallest value of a small quadratic whose variables may not be negative.

An active-set method on the normal equations (Lawson and Hanson 1974, chapter 23), started from
variables near the answer. SciPy's ``nnls`` takes no start, and 1.17 returns wrong answers for some
right-hand sides with zeros.
"""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles

_PRECISION = 1e-12


def minimise_quadratic(matrix: Doubles, pull: Doubles, start: Doubles) -> Doubles:
    """The non-negative x with the smallest ``x·matrix·x / 2 - pull·x``.

    Args:
        matrix: Symmetric and positive definite.
        pull: The linear term.
        start: Non-negative; all zeros if nothing is known.

    Example:
        >>> minimise_quadratic(np.array([[2.0, 1], [1, 2]]), np.array([2.0, -1]), np.zeros(2))
        array([1., 0.])
    """
    values = start if start.any() else np.maximum(np.linalg.solve(matrix, pull), 0.0)
    free = values > 0.0
    enough = _PRECISION * float(np.abs(pull).max(initial=0.0))
    one_by_one = False
    for _ in range(10 * len(pull) + 100):
        before = values
        values, free = _among_free(matrix, pull, values, free)
        slopes = np.where(free, -np.inf, pull - matrix @ values)
        best = int(np.argmax(slopes))
        if slopes[best] <= enough:
            break
        # All that would lower the value are let free at once. Should they hold one another back,
        # the best alone is sure to lower it.
        one_by_one = one_by_one or np.array_equal(values, before)
        if one_by_one:
            free[best] = True
        else:
            free |= slopes > enough
    return values


def _among_free(
    matrix: Doubles, pull: Doubles, values: Doubles, free: np.ndarray
) -> tuple[Doubles, np.ndarray]:
    """Minimise over the free variables, and hold those that reach 0 on the way there."""
    free = free.copy()
    while free.any():
        wanted = np.zeros(len(pull))
        wanted[free] = np.linalg.solve(matrix[np.ix_(free, free)], pull[free])
        low = free & (wanted <= 0.0)
        if not low.any():
            return wanted, free
        gaps = values[low] - wanted[low]
        steps = np.divide(values[low], gaps, out=np.zeros(len(gaps)), where=gaps > 0.0)
        step = float(steps.min())
        values = np.where(free, values + step * (wanted - values), 0.0)
        held = np.flatnonzero(low)[steps <= step]
        values[held] = 0.0
        free[held] = False
    return np.zeros(len(pull)), free

"""A projected Newton method for DCGLearn: few variables, any number of pairs.

It minimizes ``w·w + sum of weight * slack^2`` over utilities that a non-negative matrix makes of
non-negative variables. Squared slacks can be left out of the variables, which leaves a
smooth, convex, piecewise quadratic function of a few dozen variables with bounds. Each step
minimizes the quadratic of the current piece under the bounds exactly, then goes as far in that
direction as the true objective falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.utility.pair_kernels import Curvature, PairArrays, slack_sum, slope

_MOST_STEPS = 200
_PRECISION = 1e-13
_LAST_STEPS = 3
_SMALLEST_SLOPE = 1e-12
"""A fraction of the largest linear term: a smaller slope is rounding."""
_SAMPLE = 1 << 12


@dataclass(frozen=True)
class Solution:
    """The minimum of the objective.

    Attributes:
        variables: The non-negative variables.
        utilities: The utility of each grade above the lowest at each position.
        objective: ``w·w`` plus the weighted squared slacks.
        steps: How many Newton steps it took.
    """

    variables: Doubles
    utilities: Doubles
    objective: float
    steps: int


def ridge_of(depth: int, grades: int) -> Doubles:
    """Return ``w·w`` as a quadratic form of utilities relative to the lowest grade.

    A constant added at one position changes no lead, so the smallest ``w`` is that whose
    utilities have mean 0 at each position.
    """
    return np.asarray(np.kron(np.eye(depth), np.eye(grades - 1) - 1.0 / grades), np.float64)


def minimize(
    pairs: PairArrays, ridge: Doubles, shape: Doubles, start: Doubles | None = None
) -> Solution:
    """Minimize the objective.

    Args:
        pairs: The pairs.
        ridge: ``w·w`` as a quadratic form of the utilities.
        shape: Maps variables to utilities: one row per utility, one column per variable.
        start: Variables to start from; they change the speed, not the result.
    """
    if start is None and len(pairs) >= 4 * _SAMPLE:
        start = minimize(pairs.every(len(pairs) // _SAMPLE), ridge, shape).variables
    variables = np.zeros(shape.shape[1]) if start is None else start.copy()
    utilities = shape @ variables
    leads = pairs.leads(utilities)
    curvature = Curvature(pairs)
    penalty = shape.T @ ridge @ shape
    objective = _objective(pairs, ridge, utilities, leads)
    last_steps, step = 0, 0.0
    for steps in range(_MOST_STEPS):  # noqa: B007
        changed = curvature.move(leads)
        if step == 1.0 and not changed:
            break  # the quadratic that was minimized is the objective there
        hessian = penalty + shape.T @ curvature.matrix @ shape
        target = minimize_quadratic(hessian, shape.T @ curvature.pull, variables)
        direction = target - variables
        change = shape @ direction
        lead_change = pairs.leads(change)
        along = float(utilities @ ridge @ change), float(change @ ridge @ change)
        derivative = along[0] + slope(pairs, leads, lead_change, 0.0)
        if derivative >= -_PRECISION * objective:
            # Below the rounding error of sums over all pairs. Full steps still bring the variables
            # closer, but would never end where a pair is exactly at its kink.
            last_steps += 1
            if last_steps > _LAST_STEPS:
                break
            step = 1.0
        else:
            step = _step(pairs, leads, lead_change, along, derivative)
        variables = target if step == 1.0 else np.maximum(variables + step * direction, 0.0)
        utilities = shape @ variables
        leads = leads + step * lead_change
        objective = _objective(pairs, ridge, utilities, leads)
    else:
        raise PodiumError("The solver did not converge. Give a smaller C, or check the weights.")
    objective = _objective(pairs, ridge, utilities, pairs.leads(utilities))  # without rounding
    return Solution(variables, utilities, objective, steps)


def _objective(pairs: PairArrays, ridge: Doubles, utilities: Doubles, leads: Doubles) -> float:
    return float(utilities @ ridge @ utilities) + slack_sum(pairs, leads)


def _step(
    pairs: PairArrays,
    leads: Doubles,
    lead_change: Doubles,
    along: tuple[float, float],
    initial: float,
) -> float:
    """Return the step length: 1, or less where the objective stops falling."""

    def derivative_at(step: float) -> float:
        return along[0] + step * along[1] + slope(pairs, leads, lead_change, step)

    low, high = 0.0, 1.0
    at_low, at_high = initial, derivative_at(1.0)
    if at_high <= 0.0:
        return 1.0
    step = 1.0
    for _ in range(40):
        step = low + (high - low) * min(max(at_low / (at_low - at_high), 0.05), 0.95)
        derivative = derivative_at(step)
        if abs(derivative) <= 1e-4 * -initial:
            break
        if derivative < 0.0:
            low, at_low = step, derivative
        else:
            high, at_high = step, derivative
    return step


def minimize_quadratic(matrix: Doubles, pull: Doubles, start: Doubles) -> Doubles:
    """Return the non-negative x that minimizes ``x·matrix·x / 2 - pull·x``.

    An active-set method on the normal equations (Lawson and Hanson 1974, chapter 23), started from
    variables near the answer. SciPy's ``nnls`` takes no start, and 1.17 returns wrong answers for
    some right-hand sides with zeros.

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
    tolerance = _SMALLEST_SLOPE * float(np.abs(pull).max(initial=0.0))
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

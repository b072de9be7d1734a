"""A bundle method for regularized risks that are convex but not smooth (BMRM, one slack).

Minimizes ``alpha / 2 |w|^2 + R(w)`` for a convex R whose value and subgradient can be computed at
any w. Each step adds the plane ``R(w_t) + g_t . (w - w_t)``, which lies below R, and minimizes the
regularizer plus the highest plane. That minimum is a lower bound of the objective, and the best
value so far an upper bound, so the method stops on a certified gap (Teo et al. 2010; Joachims
2006).

The small quadratic programme over the weights of the planes is solved by Clarabel, the
interior-point solver that CVXPY uses by default: its steps do not depend on the scale of the
planes, whereas first-order solvers (OSQP, SCS) do not reach the accuracy that the gap certifies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.kernels import Doubles

Risk = Callable[[Doubles], tuple[float, Doubles]]
"""A convex function: its value and a subgradient at a point."""

Plane = tuple[Doubles, float]
"""A slope g and an offset b such that ``R(w) >= g . w + b`` for all w."""

_IDLE_STEPS = 30


@dataclass(frozen=True)
class BundleResult:
    """The result of a bundle method.

    Attributes:
        weights: The best point.
        value: Its objective.
        gap: An upper bound of its distance from the minimum.
        steps: The number of evaluations of the risk.
        converged: Whether the gap is within the tolerance.
    """

    weights: Doubles
    value: float
    gap: float
    steps: int
    converged: bool


def minimize_bundle(
    risk: Risk,
    start: Doubles,
    *,
    alpha: float,
    tol: float = 1e-4,
    floor: float = 1e-12,
    max_steps: int = 1000,
    planes: Sequence[Plane] = (),
    monitor: Callable[[int, Doubles, float, float], None] | None = None,
) -> BundleResult:
    """Minimize ``alpha / 2 |w|^2 + R(w)``.

    Args:
        risk: R: its value and a subgradient.
        start: The first point.
        alpha: The weight of the regularizer, above 0.
        tol: Stop when the gap is below this fraction of the objective.
        floor: Used in place of a smaller objective by the stopping rule: for a minimum near 0,
            double precision cannot reach a fraction of it.
        max_steps: The maximum number of evaluations of the risk.
        planes: Planes known to lie below R.
        monitor: Called after each step with the step, the best point, its value and the gap.

    Example:
        >>> def absolute(w):
        ...     return float(np.abs(w - 3).sum()), np.sign(w - 3)
        >>> result = minimize_bundle(absolute, np.zeros(1), alpha=0.5, tol=1e-6)
        >>> round(float(result.weights[0]), 4), result.converged
        (2.0, True)
    """
    bundle = _Bundle(len(start), alpha)
    for slope, offset in planes:
        bundle.add(slope, offset)
    point, best = start, start
    upper, lower = np.inf, -np.inf
    steps = 0
    while steps < max_steps:
        value, slope = risk(point)
        steps += 1
        objective = value + 0.5 * alpha * float(point @ point)
        if objective < upper:
            upper, best = objective, point
        bundle.add(slope, value - float(slope @ point))
        point, bound = bundle.minimum()
        lower = max(lower, bound)
        gap = max(upper - lower, 0.0)
        if monitor is not None:
            monitor(steps, best, upper, gap)
        if gap <= tol * max(abs(upper), floor):
            return BundleResult(best, upper, gap, steps, converged=True)
    return BundleResult(best, upper, max(upper - lower, 0.0), steps, converged=False)


class _Bundle:
    """The planes so far, their Gram matrix, and the minimum of the model they define."""

    def __init__(self, size: int, alpha: float) -> None:
        self._alpha = alpha
        self._slopes = np.empty((0, size))
        self._offsets = np.empty(0)
        self._gram = np.empty((0, 0))
        self._idle = np.empty(0, np.int64)

    def add(self, slope: Doubles, offset: float) -> None:
        keep = self._idle < _IDLE_STEPS  # drop planes that have been inactive for long
        self._slopes, self._offsets = self._slopes[keep], self._offsets[keep]
        self._gram, self._idle = self._gram[np.ix_(keep, keep)], self._idle[keep]
        self._slopes = np.vstack((self._slopes, slope))
        self._offsets = np.append(self._offsets, offset)
        self._idle = np.append(self._idle, 0)
        products = self._slopes @ slope
        count = len(products)
        gram = np.empty((count, count))
        gram[:-1, :-1] = self._gram
        gram[-1, :] = gram[:, -1] = products
        self._gram = gram

    def minimum(self) -> tuple[Doubles, float]:
        """Return the minimum point of the model and its value, a lower bound of the objective."""
        coefficients = _simplex_program(self._gram / self._alpha, self._offsets)
        self._idle = np.where(coefficients > 1e-9, 0, self._idle + 1)
        slope = coefficients @ self._slopes
        bound = float(coefficients @ self._offsets - slope @ slope / (2 * self._alpha))
        return -slope / self._alpha, bound


def _simplex_program(gram: NDArray[np.float64], offsets: Doubles) -> Doubles:
    """Maximize ``offsets . a - 1/2 a . gram a`` over a >= 0 that sums to 1."""
    import clarabel
    from scipy import sparse

    count = len(offsets)
    if count == 1:
        return np.ones(1)
    # Scaling both terms equally does not change the solution. The solver's tolerance is absolute
    # for objectives below 1, and the objective has the magnitude of the offsets, not of the slopes.
    largest = float(np.abs(gram).max())
    scale = max(float(np.abs(offsets).max()), 1e-12 * largest, 1e-300)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    constraints = sparse.csc_matrix(np.vstack((np.ones((1, count)), -np.eye(count))))
    bounds = np.concatenate(([1.0], np.zeros(count)))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(gram / scale)),
        -offsets / scale,
        constraints,
        bounds,
        cones,
        settings,
    )
    coefficients = np.maximum(np.array(solver.solve().x), 0.0)
    return np.asarray(coefficients / coefficients.sum())

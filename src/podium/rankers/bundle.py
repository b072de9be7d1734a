"""A bundle method for regularised risks that are convex but not smooth (BMRM, one slack).

Minimises ``penalty / 2 |w|^2 + R(w)`` for a convex R that gives its value and a subgradient at
any w. Each step adds the plane ``R(w_t) + g_t . (w - w_t)``, which lies below R, and minimises the
regulariser plus the highest plane. That minimum is a lower bound of the whole, the best value met
an upper one, so the method stops on a certified gap (Teo et al. 2010; Joachims 2006).

The small quadratic programme over the planes' weights is solved by Clarabel, the interior-point
solver that CVXPY takes by default: its steps do not depend on the scale of the planes, where
first-order solvers (OSQP, SCS) stop short of the accuracy that the gap certifies.
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
"""A slope g and an offset b with ``R(w) >= g . w + b`` everywhere."""

_IDLE_STEPS = 30


@dataclass(frozen=True)
class BundleResult:
    """Where a bundle method stopped.

    Attributes:
        weights: The best point met.
        value: The objective there.
        gap: How far above the minimum that can be at most.
        steps: How often the risk was evaluated.
        converged: Whether the gap is as small as was asked for.
    """

    weights: Doubles
    value: float
    gap: float
    steps: int
    converged: bool


def minimise_bundle(
    risk: Risk,
    start: Doubles,
    *,
    penalty: float,
    tolerance: float = 1e-4,
    floor: float = 1e-12,
    max_steps: int = 1000,
    planes: Sequence[Plane] = (),
    watch: Callable[[int, Doubles, float, float], None] | None = None,
) -> BundleResult:
    """Minimise ``penalty / 2 |w|^2 + R(w)``.

    Args:
        risk: R: its value and a subgradient.
        start: Where to begin.
        penalty: The weight of the regulariser; larger than 0.
        tolerance: Stop when the gap is below this fraction of the objective.
        floor: What the objective is taken for there if it is smaller: where the minimum is near
            0, no fraction of it is within reach of double precision.
        max_steps: Stop after this many evaluations of the risk.
        planes: Planes that are known to lie below R.
        watch: Called after each step with the step, the best point, its value and the gap.

    Example:
        >>> def absolute(w):
        ...     return float(np.abs(w - 3).sum()), np.sign(w - 3)
        >>> found = minimise_bundle(absolute, np.zeros(1), penalty=0.5, tolerance=1e-6)
        >>> round(float(found.weights[0]), 4), found.converged
        (2.0, True)
    """
    bundle = _Bundle(len(start), penalty)
    for slope, offset in planes:
        bundle.add(slope, offset)
    point, best = start, start
    upper, lower = np.inf, -np.inf
    steps = 0
    while steps < max_steps:
        value, slope = risk(point)
        steps += 1
        whole = value + 0.5 * penalty * float(point @ point)
        if whole < upper:
            upper, best = whole, point
        bundle.add(slope, value - float(slope @ point))
        point, bound = bundle.minimum()
        lower = max(lower, bound)
        gap = max(upper - lower, 0.0)
        if watch is not None:
            watch(steps, best, upper, gap)
        if gap <= tolerance * max(abs(upper), floor):
            return BundleResult(best, upper, gap, steps, converged=True)
    return BundleResult(best, upper, max(upper - lower, 0.0), steps, converged=False)


class _Bundle:
    """The planes met so far, their Gram matrix, and the minimum of the model they make."""

    def __init__(self, size: int, penalty: float) -> None:
        self._penalty = penalty
        self._slopes = np.empty((0, size))
        self._offsets = np.empty(0)
        self._gram = np.empty((0, 0))
        self._idle = np.empty(0, np.int64)

    def add(self, slope: Doubles, offset: float) -> None:
        keep = self._idle < _IDLE_STEPS  # a plane that has not mattered for long only costs time
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
        """Where the model is least, and its value there: a lower bound of the objective."""
        shares = _simplex_program(self._gram / self._penalty, self._offsets)
        self._idle = np.where(shares > 1e-9, 0, self._idle + 1)
        mixed = shares @ self._slopes
        bound = float(shares @ self._offsets - mixed @ mixed / (2 * self._penalty))
        return -mixed / self._penalty, bound


def _simplex_program(gram: NDArray[np.float64], offsets: Doubles) -> Doubles:
    """Maximise ``offsets . a - 1/2 a . gram a`` over shares a, from 0 on, that sum to 1."""
    import clarabel
    from scipy import sparse

    count = len(offsets)
    if count == 1:
        return np.ones(1)
    # Scaling both terms alike does not move the solution. The solver's tolerance is absolute for
    # objectives below 1, and the objective is of the size of the offsets, not of the slopes.
    largest = float(np.abs(gram).max())
    scale = max(float(np.abs(offsets).max()), 1e-12 * largest, 1e-300)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    constraints = sparse.csc_matrix(np.vstack((np.ones((1, count)), -np.eye(count))))
    right = np.concatenate(([1.0], np.zeros(count)))
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(count)]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(gram / scale)),
        -offsets / scale,
        constraints,
        right,
        cones,
        settings,
    )
    shares = np.maximum(np.array(solver.solve().x), 0.0)
    return np.asarray(shares / shares.sum())

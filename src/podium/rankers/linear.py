"""Linear scorers: L-BFGS for smooth losses, a bundle method for convex ones with kinks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from podium.errors import ArgumentError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures import Measure
from podium.rankers.base import FitInterrupted, Progress, Ranker, Training
from podium.rankers.bundle import BundleResult, Plane, minimise_bundle
from podium.rankers.empirical_risk import BlockRisk, LinearRisk, block_scores
from podium.rankers.gradient_descent import descend
from podium.rankers.linear_kernels import linear_scores, missing_feature
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.preconditioner import MOST_FEATURES, whitening
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import Watch

# Over which a hinge's kink is rounded: coarse first, for a start, then finer.
_WIDTHS = (0.1, 0.02, 0.004)

# An objective below this share of its value at weights of 0 is as good as 0. LIBLINEAR's tolerance
# is relative to where it starts, too.
_NEAR_ZERO = 1e-3

_DESCENT_STEPS = 300


class LinearRanker(Ranker):
    """Scores are a weighted sum of the features.

    Minimises ``penalty / 2 |w|^2 + mean over queries of loss(X_q w, y_q)``. A smooth loss is
    minimised by L-BFGS; a convex one with kinks (hinges) by a bundle method, which stops when its
    value is certified to be within ``tolerance`` of the minimum; one that is neither (LambdaLoss)
    by 300 steps of descent.

    Args:
        loss: The loss, or its text (``"PairHinge(k=10)"``).
        penalty: The weight of the regulariser. A support vector machine's C is
            ``1 / (penalty * queries)``.
        tolerance: When to stop: the certified gap as a fraction of the objective, but of no less
            than a thousandth of its value at weights of 0 (where preferences can all be met, the
            minimum is near 0); for smooth losses the relative change of the objective.
        max_iter: About the most evaluations of the loss, from 1: a line search that reaches it is
            finished.
        measure: What the validation queries are measured by.

    Attributes:
        coef_: The weights.
        objective_: The objective at the end of the fit.
        gap_: How far above the minimum it can be; NaN where the method certifies none.
        n_iter_: Evaluations of the loss.
        converged_: Whether the tolerance was reached; by descent, which has none, whether all of
            its 300 steps were made. If not, the fit gave a ``ConvergenceWarning``.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X = random.random((200, 3))
        >>> y = np.round(3 * X[:, 0] + 0.3 * X[:, 1])
        >>> ranker = LinearRanker("PairLogistic(k=10)").fit(X, y, group=[20] * 10)
        >>> bool(np.argmax(np.abs(ranker.coef_)) == 0)
        True
    """

    streams = True

    def __init__(
        self,
        loss: Loss | str = "ListMLE(k=10)",
        *,
        penalty: float = 1e-4,
        tolerance: float = 1e-4,
        max_iter: int = 1000,
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.measure = measure

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""
        check_number("penalty", self.penalty)
        check_number("tolerance", self.tolerance)
        check_integer("max_iter", self.max_iter)
        loss = self._loss()
        if self.penalty == 0 and not loss.smooth:
            raise ArgumentError(
                f"The penalty is {self.penalty}. {loss!r} needs one above 0; smooth losses take 0."
            )

    def _fit(self, data: Training, validation: Training | None, progress: Progress | None) -> None:
        watch: Watch[Doubles] = Watch(block_scores, self.measure, validation, progress)
        self._minimise(BlockRisk(self._loss(), data), watch, np.zeros(self.n_features_in_))

    @property
    def _penalty(self) -> float:
        return float(self.penalty)  # in double precision, whatever NumPy's type it was given as

    def _minimise(self, risk: LinearRisk, watch: Watch[Doubles], start: Doubles) -> None:
        """Fit to a risk, wherever its rows are."""
        loss = risk.loss
        self.converged_, self.gap_, self.objective_ = False, np.nan, np.nan
        try:
            if loss.smooth:
                self._by_lbfgs(risk, start, watch)
            elif loss.convex:
                self._by_bundle(risk, start, watch)
            else:
                steps = min(self.max_iter, _DESCENT_STEPS)
                self.coef_, self.objective_ = descend(
                    risk, start, penalty=self._penalty, steps=steps, watch=watch
                )
                self.converged_ = steps == _DESCENT_STEPS
        except KeyboardInterrupt as stop:
            if watch.model is None:
                raise
            self.coef_, self.n_iter_ = watch.model, risk.evaluations
            raise FitInterrupted from stop
        if watch.model is not None:
            self.coef_ = watch.model
        self.n_iter_ = risk.evaluations
        if not self.converged_:
            warnings.warn(
                f"{loss!r} did not converge in {self.n_iter_} evaluations (max_iter="
                f"{self.max_iter}). Increase max_iter or penalty, or scale the features.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _by_lbfgs(self, risk: LinearRisk, start: Doubles, watch: Watch[Doubles]) -> None:
        from scipy import optimize

        if len(start) > MOST_FEATURES:
            matrix = np.eye(len(start))
        else:
            matrix = whitening(risk.spread(), self._penalty)

        def objective(point: Doubles) -> tuple[float, Doubles]:
            weights = matrix @ point
            value, slope = risk(weights)
            whole = value + 0.5 * self._penalty * float(weights @ weights)
            return whole, (slope + self._penalty * weights) @ matrix

        def after(intermediate_result: Any) -> None:  # SciPy asks for this argument's name
            weights = matrix @ intermediate_result.x
            watch(risk.evaluations, weights, float(intermediate_result.fun))

        found = optimize.minimize(
            objective,
            np.linalg.solve(matrix, start),
            jac=True,
            method="L-BFGS-B",
            callback=after,
            options={
                "maxfun": self._evaluations_left(risk),
                "maxiter": self.max_iter,
                "maxcor": 20,
                # A change of the objective says little about the distance to the minimum, so
                # this is far below the tolerance that a certified gap would need.
                "ftol": self.tolerance * 1e-4,
                "gtol": 1e-9,
            },
        )
        self.coef_, self.objective_ = matrix @ found.x, float(found.fun)
        self.converged_ = bool(found.success)

    def _evaluations_left(self, risk: LinearRisk) -> int:
        return max(1, self.max_iter - risk.evaluations)

    def _by_bundle(self, risk: LinearRisk, start: Doubles, watch: Watch[Doubles]) -> None:
        """Round the kinks less and less, then certify; the bundle method does what is left.

        A rounded loss is minimised by L-BFGS in far fewer steps than the kinks allow, and where it
        ends there is a plane below the loss itself: together they often certify the gap at once.
        """
        planes: list[Plane] = []
        point = start
        floor = _NEAR_ZERO * risk(np.zeros(len(start)))[0]
        for width in _WIDTHS:
            pair = risk.loss.rounded(width)
            if pair is None:
                break
            smooth, below = pair
            self._by_lbfgs(risk.of(smooth), point, watch)
            point = self.coef_
            value, slope = risk.of(below)(point)
            planes.append((slope, value - float(slope @ point)))
            found = self._certify(risk, point, planes, floor, 1, None)
            if found.converged:
                break
        if not self.converged_:
            found = self._certify(risk, point, planes, floor, self._evaluations_left(risk), watch)
        self.coef_, self.objective_, self.gap_ = found.weights, found.value, found.gap

    def _certify(
        self,
        risk: LinearRisk,
        start: Doubles,
        planes: list[Plane],
        floor: float,
        steps: int,
        watch: Watch[Doubles] | None,
    ) -> BundleResult:
        found = minimise_bundle(
            risk,
            start,
            penalty=self._penalty,
            tolerance=self.tolerance,
            floor=floor,
            max_steps=steps,
            planes=planes,
            watch=None
            if watch is None
            else lambda step, weights, value, _gap: watch(step, weights, value),
        )
        self.converged_ = found.converged
        return found

    def _predict(self, features: Floats) -> Doubles:
        scores = linear_scores(features, self.coef_, np.arange(len(features) + 1))
        if np.isnan(scores).any():  # a weight of 0 does not hide a missing feature
            raise missing_feature()
        return scores

    def _archive(self) -> Archive:
        return Archive("", {}, {"coef": self.coef_})

    def _restore(self, archive: Archive) -> None:
        self.coef_ = np.asarray(archive.arrays["coef"], np.float64)
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError("weights and features differ in number")

"""Linear scorers: L-BFGS for smooth losses, a bundle method for convex ones with kinks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from podium.data import Dataset
from podium.data.columns import are_numbers
from podium.errors import ArgumentError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures.registry import Measure
from podium.rankers.base import FitInterrupted, Ranker
from podium.rankers.bundle_method import BundleResult, Plane, Risk, minimize_bundle
from podium.rankers.empirical_risk import BlockRisk, LinearRisk, SparseRisk, block_scores
from podium.rankers.fit_arguments import FitStopped
from podium.rankers.fit_progress import Progress
from podium.rankers.inputs import FittedFeatures
from podium.rankers.linear_kernels import linear_scores, missing_feature
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.preconditioner import MAX_FEATURES, whitening_matrix
from podium.rankers.sample_weights import FitWeights
from podium.rankers.sparse_rows import SparseRows
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData, in_memory
from podium.rankers.validation_monitor import ValidationMonitor
from podium.scorers.models import LinearModel

# The widths over which the kink of a hinge is rounded, from coarse to fine.
_ROUNDING_WIDTHS = (0.1, 0.02, 0.004)

# An objective below this fraction of its value at zero weights counts as 0. LIBLINEAR's tolerance
# is relative to its starting point, too.
_NEAR_ZERO = 1e-3

_ADAM_STEPS = 300


class LinearRanker(Ranker):
    """A linear scorer: scores are a weighted sum of the features.

    Minimizes ``alpha / 2 |w|^2 + mean over queries of loss(X_q w, y_q)``; with
    ``sample_weight``, the mean is weighted. A smooth loss is
    minimized by L-BFGS, a convex loss with kinks (hinges) by a bundle method that stops when its
    value is certified to be within ``tol`` of the minimum, and any other loss (LambdaLoss) by 300
    steps of Adam.

    Args:
        loss: The loss, or its text (``"PairHinge(k=10)"``).
        alpha: The weight of the L2 penalty. A support vector machine's C is
            ``1 / (alpha * queries)``.
        tol: The tolerance of the stopping rule: the certified gap as a fraction of the objective,
            or of a thousandth of the objective at zero weights if that is larger (if all
            preferences can be met, the minimum is near 0); for smooth losses, the relative change
            of the objective.
        max_iter: The maximum number of evaluations of the loss, at least 1; a line search that
            reaches it is completed.
        measure: The measure of the validation queries.

    Attributes:
        coef_: The weights.
        objective_: The objective at the end of the fit.
        gap_: An upper bound of its distance from the minimum; NaN if the method certifies none.
        n_iter_: The number of evaluations of the loss.
        converged_: Whether the tolerance was reached or, for Adam, which has none, all 300 steps
            were made, or a callback stopped the fit. If not, the fit issued a
            ``ConvergenceWarning``.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((200, 3))
        >>> y = np.round(3 * X[:, 0] + 0.3 * X[:, 1])
        >>> ranker = LinearRanker("PairLogistic(k=10)").fit(X, y, group=[20] * 10)
        >>> bool(np.argmax(np.abs(ranker.coef_)) == 0)
        True
    """

    streams = True
    takes_sparse = True
    takes_weights = True
    has_loss = True
    importance = ("coef_", "Weights of features")
    limits = ("Missing values are refused.",)

    coef_: Doubles

    def __init__(
        self,
        loss: Loss | str = "ListMLE(k=10)",
        *,
        alpha: float = 1e-4,
        tol: float = 1e-4,
        max_iter: int = 1000,
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.measure = measure

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        check_number("alpha", self.alpha)
        check_number("tol", self.tol)
        check_integer("max_iter", self.max_iter)
        loss = self.loss_function()
        if self.alpha == 0 and not loss.smooth:
            raise ArgumentError(
                f"alpha is {self.alpha}", hint=f"Give a number above 0: {loss!r} is not smooth."
            )

    def _check_weights(self, weights: FitWeights) -> None:
        loss = self.loss_function()
        if loss.row_weighting != "loss":
            # Multiplied gradients are not the gradient of a function that could be minimized.
            weights.require_queries_only(f"{loss!r} in a linear ranker")

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        weights: FitWeights | None = None,
    ) -> None:
        scores: Callable[[Doubles, Dataset], Doubles] = _complete_scores
        if isinstance(validation, SparseRows):
            matrix, validation = validation.features, validation.queries
            scores = lambda weights, _block: np.asarray(matrix @ weights)  # noqa: E731
        position = None if weights is None else weights.position
        if weights is not None and position is not None:
            # A column for each rank, whose weight is its offset, and which nothing else sees.
            own, features = scores, self.n_features_in_
            scores = lambda weights, block: own(weights[:features], block)  # noqa: E731
            scales = position.column_scales(self._alpha, weights.total)
            data, weights = (
                _with_columns(data, position.columns(scales)),
                weights.without_position(),
            )
        monitor = _StoppingMonitor(scores, self.measure, validation, progress)
        loss = self.loss_function()
        risk: LinearRisk
        if isinstance(data, SparseRows):
            risk = SparseRisk(loss, data, weights)
        else:
            risk = BlockRisk(loss, data, weights)
        try:
            self._minimize(risk, monitor, np.zeros(len(data.feature_names)))
        finally:
            # After an error there may be the weights of an earlier fit, or none.
            if position is not None and len(vars(self).get("coef_", ())) > self.n_features_in_:
                position.offsets[:] = self.coef_[self.n_features_in_ :] * scales
                self.coef_ = self.coef_[: self.n_features_in_]

    def fit_risk(
        self,
        risk: LinearRisk,
        feature_names: tuple[str, ...],
        *,
        monitor: ValidationMonitor[Doubles],
        start: Doubles | None = None,
        definitions_hash: str | None = None,
    ) -> Self:
        """Fit the ranker to a risk that is evaluated elsewhere, such as by the actors of a cluster.

        Args:
            risk: The mean loss as a function of the weights.
            feature_names: The names of the features, or their numbers from 1.
            monitor: Follows the fit and keeps the best model.
            start: The first weights; zeros by default.
            definitions_hash: The hash of the definitions that the features follow, if known.
        """
        self.check_parameters()
        named = not are_numbers(feature_names)
        with self._fitting(FittedFeatures(feature_names, named, {}, definitions_hash)):
            self._minimize(risk, monitor, np.zeros(len(feature_names)) if start is None else start)
        return self

    @property
    def _alpha(self) -> float:
        return float(self.alpha)  # in double precision, whatever its NumPy type

    def _minimize(
        self, risk: LinearRisk, monitor: ValidationMonitor[Doubles], start: Doubles
    ) -> None:
        loss = risk.loss
        self.converged_, self.gap_, self.objective_ = False, np.nan, np.nan
        try:
            if loss.smooth:
                self._minimize_by_lbfgs(risk, start, monitor)
            elif loss.convex:
                self._minimize_by_bundle(risk, start, monitor)
            else:
                steps = min(self.max_iter, _ADAM_STEPS)
                self.coef_, self.objective_ = adam_descent(
                    risk, start, alpha=self._alpha, steps=steps, monitor=monitor
                )
                self.converged_ = steps == _ADAM_STEPS
        except FitStopped:
            self.converged_ = True
        except KeyboardInterrupt as stop:
            if monitor.model is None:
                raise
            self.coef_, self.n_iter_ = monitor.model, risk.evaluations
            raise FitInterrupted from stop
        if monitor.model is not None:
            self.coef_ = monitor.model
        self.n_iter_ = risk.evaluations
        if not self.converged_:
            warnings.warn(
                f"{loss!r} did not converge in {self.n_iter_} evaluations (max_iter="
                f"{self.max_iter}). Increase max_iter or alpha, or scale the features.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _minimize_by_lbfgs(
        self, risk: LinearRisk, start: Doubles, monitor: ValidationMonitor[Doubles]
    ) -> None:
        from scipy import optimize

        transform = None
        if len(start) <= MAX_FEATURES:
            transform = whitening_matrix(risk.scatter(), self._alpha)

        def weights_at(point: Doubles) -> Doubles:
            return point if transform is None else np.asarray(transform @ point)

        def objective(point: Doubles) -> tuple[float, Doubles]:
            weights = weights_at(point)
            value, gradient = risk(weights)
            penalized = value + 0.5 * self._alpha * float(weights @ weights)
            slope = gradient + self._alpha * weights
            return penalized, slope if transform is None else slope @ transform

        def callback(intermediate_result: Any) -> None:  # SciPy requires this argument name
            # A copy: SciPy goes on to change its array.
            weights = np.array(weights_at(intermediate_result.x))
            monitor(risk.evaluations, weights, float(intermediate_result.fun))

        result = optimize.minimize(
            objective,
            start if transform is None else np.linalg.solve(transform, start),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={
                "maxfun": self._evaluations_left(risk),
                "maxiter": self.max_iter,
                "maxcor": 20,
                # A change of the objective says little about the distance from the minimum, so
                # this is far below the tolerance for a certified gap.
                "ftol": self.tol * 1e-4,
                "gtol": 1e-9,
            },
        )
        self.coef_, self.objective_ = weights_at(result.x), float(result.fun)
        self.converged_ = bool(result.success)

    def _evaluations_left(self, risk: LinearRisk) -> int:
        return max(1, self.max_iter - risk.evaluations)

    def _minimize_by_bundle(
        self, risk: LinearRisk, start: Doubles, monitor: ValidationMonitor[Doubles]
    ) -> None:
        """Minimize by L-BFGS with ever less rounded kinks, then by the bundle method.

        L-BFGS minimizes a rounded loss in far fewer steps than the bundle method needs, and its
        solution gives a plane below the loss itself. A few such planes often certify the gap.
        """
        planes: list[Plane] = []
        point = start
        floor = _NEAR_ZERO * risk(np.zeros(len(start)))[0]
        for width in _ROUNDING_WIDTHS:
            pair = risk.loss.rounded(width)
            if pair is None:
                break
            smooth, lower_bound = pair
            self._minimize_by_lbfgs(risk.with_loss(smooth), point, monitor)
            point = self.coef_
            value, slope = risk.with_loss(lower_bound)(point)
            planes.append((slope, value - float(slope @ point)))
            result = self._certify(risk, point, planes, floor, 1, None)
            if result.converged:
                break
        if not self.converged_:
            result = self._certify(
                risk, point, planes, floor, self._evaluations_left(risk), monitor
            )
        self.coef_, self.objective_, self.gap_ = result.weights, result.value, result.gap

    def _certify(
        self,
        risk: LinearRisk,
        start: Doubles,
        planes: list[Plane],
        floor: float,
        steps: int,
        monitor: ValidationMonitor[Doubles] | None,
    ) -> BundleResult:
        result = minimize_bundle(
            risk,
            start,
            alpha=self._alpha,
            tol=self.tol,
            floor=floor,
            max_steps=steps,
            planes=planes,
            monitor=None
            if monitor is None
            else lambda step, weights, value, _gap: monitor(step, weights, value),
        )
        self.converged_ = result.converged
        return result

    def _predict(self, features: Floats) -> Doubles:
        scores = linear_scores(features, self.coef_, np.arange(len(features) + 1))
        if np.isnan(scores).any():  # a weight of 0 does not hide a missing feature
            raise missing_feature()
        return scores

    def _predict_sparse(self, features: Any) -> Doubles:
        return np.asarray(features @ self.coef_)

    def _contributions(self, features: Floats) -> Doubles:
        return features * self.coef_

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "the weight of the feature times the difference of its values"

    def _fitted_model(self) -> LinearModel:
        return LinearModel(self.feature_names_, self.coef_)

    def facts(self) -> dict[str, str]:
        """Return the number of weights."""
        return {"weights other than 0": f"{np.count_nonzero(self.coef_):,}"}

    def _archive(self) -> Archive:
        return Archive("", {}, {"coef": self.coef_})

    def _restore(self, archive: Archive) -> None:
        self.coef_ = np.asarray(archive.arrays["coef"], np.float64)
        if self.coef_.shape != (self.n_features_in_,):
            raise ValueError("the numbers of weights and features differ")


def _with_columns(data: TrainingData, columns: Floats) -> Dataset | SparseRows:
    if isinstance(data, SparseRows):
        from scipy import sparse

        parts = [data.features, sparse.csr_array(columns)]
        return replace(data, features=sparse.hstack(parts, format="csr"))
    rows = in_memory(data)
    names = (*rows.feature_names, *(f"rank {number}" for number in range(columns.shape[1])))
    return replace(rows, features=np.hstack([rows.features, columns]), feature_names=names)


def _complete_scores(weights: Doubles, block: Dataset) -> Doubles:
    """Score the rows of validation data, in which no feature may be missing either."""
    scores = block_scores(weights, block)
    if np.isnan(scores).any():
        raise missing_feature()
    return scores


class _StoppingMonitor(ValidationMonitor[Doubles]):
    """Ends a fit from within its solvers, which have no loop that could ask."""

    def __call__(self, step: int, model: Doubles, loss: float) -> None:
        super().__call__(step, model, loss)
        if self.stopped:
            raise FitStopped


def adam_descent(
    risk: Risk,
    start: Doubles,
    *,
    alpha: float,
    steps: int,
    learning_rate: float = 0.1,
    monitor: Callable[[int, Doubles, float], None] | None = None,
) -> tuple[Doubles, float]:
    """Minimize ``alpha / 2 |w|^2 + R(w)`` by full-batch Adam with a cosine learning-rate schedule.

    The pair weights of LambdaLoss change with the ranking, so its gradient is not the gradient of
    its value and a line search cannot rely on that value. A fixed schedule needs no line search.

    Returns the last point and its objective.

    Example:
        >>> def square(w):
        ...     return float((w - 3) @ (w - 3)), 2 * (w - 3)
        >>> point, value = adam_descent(square, np.zeros(1), alpha=0.0, steps=300)
        >>> round(float(point[0]), 2)
        3.0
    """
    point = start.copy()
    first_moment, second_moment = np.zeros_like(point), np.zeros_like(point)
    objective = np.nan
    for step in range(1, steps + 1):
        value, gradient = risk(point)
        objective = value + 0.5 * alpha * float(point @ point)
        gradient = gradient + alpha * point
        first_moment = 0.9 * first_moment + 0.1 * gradient
        second_moment = 0.999 * second_moment + 0.001 * gradient**2
        rate = 0.5 * learning_rate * (1 + np.cos(np.pi * step / steps)) / (1 - 0.9**step)
        point = point - rate * first_moment / (np.sqrt(second_moment / (1 - 0.999**step)) + 1e-8)
        if monitor is not None:
            monitor(step, point, objective)
    return point, objective

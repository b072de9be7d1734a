"""Gradient-boosted trees: any loss as an objective of LightGBM and of XGBoost."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset
from podium.data.seeds import checked_seed
from podium.errors import ArgumentError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures.registry import Measure
from podium.rankers.base import DistributedRanker, FitInterrupted
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.engines import ENGINES, Booster
from podium.rankers.fit_progress import Progress
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.sample_weights import FitWeights, evaluate_weighted
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData, in_memory
from podium.rankers.validation_monitor import ValidationMonitor
from podium.scorers.trees import TreeModel


class TreeRanker(DistributedRanker):
    """Gradient-boosted trees of LightGBM or XGBoost, with any Podium loss and labels of any size.

    Missing values (NaN, null) are taken as the engine takes them. With LightGBM, categorical
    columns of a data frame (pandas' ``category``, Polars' ``Categorical`` and ``Enum``) are
    categorical features; a category that the fit has not seen is a missing value.

    Args:
        loss: The loss, or its text (``"ListMLE(k=10)"``). The default, regression on the labels
            within each query, was chosen on validation queries (``python -m studies defaults``).
        engine: ``"lightgbm"`` or ``"xgboost"``.
        n_estimators: The maximum number of trees, at least 1.
        learning_rate: The weight of each tree.
        early_stopping_rounds: With an ``eval_set``: stop after this many trees without a better
            measure; None never stops early.
        measure: The measure of the validation queries: any Podium measure.
        engine_params: Parameters of the engine, by its own names. A name that the engine does not
            have is an error, and so is one that would have no effect or that the ranker sets
            itself (objective, metric, learning rate, seed, threads).
        random_state: The engine's seed. The same seed gives the same model: with LightGBM for any
            number of threads, with XGBoost for the same number.
        **engine_keywords: Parameters of the engine as keywords, such as ``num_leaves=63``, as in
            ``engine_params``.

    Attributes:
        booster_: The engine's own model, ``lightgbm.Booster`` or ``xgboost.Booster``, with the
            trees that predictions use and the features' names, if they have any. Characters that
            the engine does not allow in names are replaced by underscores.
        n_estimators_: The number of trees: all, or up to the best on the validation queries.
        best_iteration_: The same number, by LightGBM's name.
        feature_importances_: As the engine's own estimators define them: the number of splits
            (LightGBM), or the average gain as a fraction of its sum over features (XGBoost).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((400, 3))
        >>> y = np.round(3 * X[:, 0])
        >>> ranker = TreeRanker("ListMLE(k=5)", n_estimators=20).fit(X, y, group=[20] * 20)
        >>> ranker.n_estimators_, ranker.predict(X).shape
        (20, (400,))
    """

    takes_weights = True
    has_loss = True
    scores_fast = False
    importance = ("feature_importances_", "Importance of features")
    extra = "trees"
    limits = (
        "Missing values are taken as in training; beyond the training data's range, scores stay as "
        "at its edge.",
    )

    def __init__(
        self,
        loss: Loss | str = "SquaredError()",
        *,
        engine: Literal["lightgbm", "xgboost"] = "lightgbm",
        n_estimators: int = 300,
        learning_rate: float = 0.05,
        early_stopping_rounds: int | None = 50,
        measure: str | Measure = "nDCG@10",
        engine_params: dict[str, Any] | None = None,
        random_state: int = 0,
        **engine_keywords: Any,
    ) -> None:
        self.loss = loss
        self.engine = engine
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.engine_params = engine_params
        self.random_state = random_state
        self._engine_keywords = engine_keywords
        if engine_keywords:
            self._engine().check(engine_keywords)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the engine that were given as keywords."""
        return {**super().get_params(deep), **self._engine_keywords}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ranker or, by its own names, of the engine."""
        own = {name: value for name, value in params.items() if name in self._get_param_names()}
        super().set_params(**own)
        keywords = {name: value for name, value in params.items() if name not in own}
        if keywords:
            self._engine().check(keywords)
            self._engine_keywords = {**self._engine_keywords, **keywords}
        return self

    def _all_engine_params(self) -> dict[str, Any]:
        return {**(self.engine_params or {}), **self._engine_keywords}

    def _position_regularization(self) -> float | None:
        value: float | None = self._all_engine_params().get(
            "lambdarank_position_bias_regularization"
        )
        return value

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        check_integer("n_estimators", self.n_estimators)
        check_number("learning_rate", self.learning_rate, positive=True)
        check_integer("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if self.engine_params is not None and not isinstance(self.engine_params, Mapping):
            raise ArgumentError(
                f"engine_params is {self.engine_params!r}", hint="Give a dictionary."
            )
        twice = sorted(set(self.engine_params or {}) & set(self._engine_keywords))
        if twice:
            raise ArgumentError(
                f"{twice[0]} is a keyword and in engine_params", hint="Give it once."
            )
        if self._all_engine_params():
            self._engine().check(self._all_engine_params())

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """Whether the engine is LightGBM."""
        return self.engine == "lightgbm"

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        communicator: Communicator = SINGLE_PROCESS,
        weights: FitWeights | None = None,
    ) -> None:
        train = in_memory(data)
        eval_set = None if validation is None else in_memory(validation)
        # An error may say that another process was lost: no argument caused it.
        errors = self._engine().errors() if communicator.size == 1 else nullcontext()
        with errors:
            self._grow(train, eval_set, progress, communicator, weights)

    def _grow(
        self,
        train: Dataset,
        validation: Dataset | None,
        progress: Progress | None,
        communicator: Communicator,
        weights: FitWeights | None,
    ) -> None:
        loss = self.loss_function()
        checkpoint = communicator.load_checkpoint()
        booster = self._engine().start(
            train,
            validation,
            {
                "learning_rate": self.learning_rate,
                "seed": checked_seed(self.random_state),
                **self._all_engine_params(),
                **communicator.engine_params(),
            },
            None if checkpoint is None else checkpoint.blobs["model"],
            categorical=[self.feature_names_.index(name) for name in self.categories_],
        )
        monitor: ValidationMonitor[int] = ValidationMonitor(
            lambda _trees, _block: booster.validation_scores(),
            self.measure,
            validation,
            progress,
            communicator,
        )
        step = 0 if checkpoint is None else monitor.resume(checkpoint.metadata)
        attempts = step
        buffers = np.empty(train.rows), np.empty(train.rows)
        size = len(train) if weights is None else weights.total
        try:
            while attempts < self.n_estimators and not monitor.stops_early(
                step, self.early_stopping_rounds
            ):
                evaluation = evaluate_weighted(
                    loss, booster.training_scores(), train, weights, buffers
                )
                if weights is not None and weights.position is not None:
                    weights.position.step(
                        evaluation.gradient, evaluation.curvature, self.learning_rate
                    )
                attempts += 1
                if not booster.grow(evaluation.gradient, evaluation.curvature):
                    if booster.draws:
                        continue
                    break
                step += 1
                total, queries = communicator.all_reduce(np.array([evaluation.total, size]))
                monitor(step, step, float(total / queries))
                communicator.save_checkpoint(step, partial(_checkpoint, booster, step, monitor))
            if communicator.size == 1 and not np.ptp(booster.training_scores()):
                warnings.warn(
                    "The trees give all documents the same score. Give more rows, or lower the "
                    "minimum number of rows per leaf in engine_params.",
                    stacklevel=5,
                )
        except KeyboardInterrupt as stop:
            if not monitor.model:
                raise
            self._keep(booster, monitor.model)
            raise FitInterrupted from stop
        finally:
            if communicator.size > 1:
                booster.close_network()
        self._keep(booster, monitor.model or 0)

    def _keep(self, booster: Booster, trees: int) -> None:
        booster.finish(trees)
        self._booster, self.n_estimators_ = booster, trees

    @property
    def backend(self) -> str:
        """The library that trains: the engine."""
        return self.engine

    @property
    def booster_(self) -> Any:
        """The engine's own model."""
        return self._booster.model

    @property
    def best_iteration_(self) -> int:
        """The number of trees that predictions use."""
        return self.n_estimators_

    @property
    def feature_importances_(self) -> NDArray[Any]:
        """The importance of each feature, as the engine's own estimators define it."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("feature_importances_")
        return self._booster.importances()

    def _predict(self, features: Floats) -> Doubles:
        return self._booster.predict(features)

    def _contributions(self, features: Floats) -> Doubles:
        return self._booster.contributions(features)

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        name = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}[self.engine]
        return f"path-dependent Shapley values of the trees, by {name}"

    def _engine(self) -> type[Booster]:
        return ENGINES.named(self.engine)

    def _fitted_model(self) -> TreeModel:
        trees = self._booster.fitted_trees(self.n_estimators_ or None)
        return replace(trees, feature_names=self.feature_names_)

    def facts(self) -> dict[str, str]:
        """Return the number of trees."""
        return {"trees": f"{self.n_estimators_:,}"}

    def _archive(self) -> Archive:
        return Archive("", {"trees": self.n_estimators_}, {}, {"model": self._booster.dump()})

    def _restore(self, archive: Archive) -> None:
        booster = self._engine().load(archive.blobs["model"])
        trees = int(archive.metadata["trees"])
        features, available = booster.shape()
        if features != self.n_features_in_ or not 0 <= trees <= available:
            raise ValueError("the engine's model has other features or fewer trees")
        self._keep(booster, trees)


def _checkpoint(booster: Booster, step: int, monitor: ValidationMonitor[int]) -> Archive:
    metadata = monitor.state(step) | {"model": monitor.model}
    return Archive("", metadata, {}, {"model": booster.dump()})

"""Gradient-boosted trees: any loss as an objective of LightGBM and of XGBoost."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from podium.data import Dataset
from podium.data.seeds import checked_seed
from podium.errors import ArgumentError
from podium.kernels import Doubles, Floats
from podium.losses import Loss
from podium.measures import Measure
from podium.rankers.base import DistributedRanker, FitInterrupted, Progress, TrainingData, in_memory
from podium.rankers.communicator import SINGLE_PROCESS, Communicator
from podium.rankers.engines import ENGINES, Booster
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import ValidationMonitor


class TreeRanker(DistributedRanker):
    """Gradient-boosted trees of LightGBM or XGBoost, with any Podium loss and labels of any size.

    Args:
        loss: The loss, or its text (``"ListMLE(k=10)"``). The default, regression on the labels
            within each query, was best on validation queries of six data sets, graded and top-k.
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

    Attributes:
        booster_: The engine's own model, ``lightgbm.Booster`` or ``xgboost.Booster``, with the
            trees that predictions use and the features' names, if they have any. Characters that
            the engine does not allow in names are replaced by underscores.
        n_estimators_: The number of trees: all, or up to the best on the validation queries.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((400, 3))
        >>> y = np.round(3 * X[:, 0])
        >>> ranker = TreeRanker("ListMLE(k=5)", n_estimators=20).fit(X, y, group=[20] * 20)
        >>> ranker.n_estimators_, ranker.predict(X).shape
        (20, (400,))
    """

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
    ) -> None:
        self.loss = loss
        self.engine = engine
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure
        self.engine_params = engine_params
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        check_integer("n_estimators", self.n_estimators)
        check_number("learning_rate", self.learning_rate, positive=True)
        check_integer("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if self.engine_params is not None and not isinstance(self.engine_params, Mapping):
            raise ArgumentError(
                f"engine_params is {self.engine_params!r}", hint="Give a dictionary."
            )
        if self.engine_params:
            self._engine().check(self.engine_params)

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        communicator: Communicator = SINGLE_PROCESS,
    ) -> None:
        train = in_memory(data)
        eval_set = None if validation is None else in_memory(validation)
        with self._engine().errors():
            self._grow(train, eval_set, progress, communicator)

    def _grow(
        self,
        train: Dataset,
        validation: Dataset | None,
        progress: Progress | None,
        communicator: Communicator,
    ) -> None:
        loss = self.loss_function()
        checkpoint = communicator.load_checkpoint()
        booster = self._engine().start(
            train,
            validation,
            {
                "learning_rate": self.learning_rate,
                "seed": checked_seed(self.random_state),
                **(self.engine_params or {}),
                **communicator.engine_params(),
            },
            None if checkpoint is None else checkpoint.blobs["model"],
        )
        monitor: ValidationMonitor[int] = ValidationMonitor(
            lambda _trees, _block: booster.validation_scores(),
            self.measure,
            validation,
            progress,
            communicator,
        )
        step = 0 if checkpoint is None else monitor.resume(checkpoint.metadata)
        buffers = np.empty(train.rows), np.empty(train.rows)
        try:
            while step < self.n_estimators and not self._stops_early(step, monitor):
                evaluation = loss.evaluate(
                    booster.training_scores(), train.labels, train.offsets, out=buffers
                )
                if not booster.grow(evaluation.gradient, evaluation.curvature):
                    break
                step += 1
                sums = np.array([evaluation.total, len(train)])
                total, queries = communicator.all_reduce(sums)
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

    def _stops_early(self, step: int, monitor: ValidationMonitor[int]) -> bool:
        rounds = self.early_stopping_rounds
        return rounds is not None and step > 0 and step - monitor.best_step >= rounds

    @property
    def backend(self) -> str:
        """The library that trains: the engine."""
        return self.engine

    @property
    def booster_(self) -> Any:
        """The engine's own model."""
        return self._booster.model

    def _predict(self, features: Floats) -> Doubles:
        return self._booster.predict(features)

    def _engine(self) -> type[Booster]:
        return ENGINES.named(self.engine)

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

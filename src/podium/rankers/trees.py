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
from podium.rankers.base import FitInterrupted, Progress, Ranker, Training, in_memory
from podium.rankers.communicator import ALONE, Together
from podium.rankers.engines import ENGINES, Booster
from podium.rankers.parameter_checks import check_integer, check_number, check_patience
from podium.rankers.storage import Archive
from podium.rankers.validation_monitor import Watch


class TreeRanker(Ranker):
    """Boosted trees by LightGBM or XGBoost, with any of Podium's losses and labels of any size.

    Args:
        loss: The loss, or its text (``"ListMLE(k=10)"``).
        engine: ``"lightgbm"`` or ``"xgboost"``.
        n_estimators: How many trees at most, from 1.
        learning_rate: The weight of each tree.
        patience: With validation queries: stop after this many trees without a better measure.
        measure: What the validation queries are measured by: any of Podium's measures.
        parameters: The engine's own parameters, by their own names, as they are. A name that the
            engine does not know is refused, and so is one that would have no effect or would
            replace what the ranker sets (objective, metric, learning rate, seed, threads).
        seed: The engine's seed. The same seed gives the same model: with LightGBM for any number
            of threads, with XGBoost for the same number.

    Attributes:
        booster_: The engine's own model, ``lightgbm.Booster`` or ``xgboost.Booster``, with the
            trees that predictions use and the features' names, if they have any. Where the engine
            does not take a name, characters are replaced by underscores.
        n_trees_: How many trees there are: all, or up to the best on validation queries.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X = random.random((400, 3))
        >>> y = np.round(3 * X[:, 0])
        >>> ranker = TreeRanker("ListMLE(k=5)", n_estimators=20).fit(X, y, group=[20] * 20)
        >>> ranker.n_trees_, ranker.predict(X).shape
        (20, (400,))
    """

    def __init__(
        self,
        loss: Loss | str = "ListMLE(k=10)",
        *,
        engine: Literal["lightgbm", "xgboost"] = "lightgbm",
        n_estimators: int = 300,
        learning_rate: float = 0.1,
        patience: int | None = 50,
        measure: str | Measure = "nDCG@10",
        parameters: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.engine = engine
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.patience = patience
        self.measure = measure
        self.parameters = parameters
        self.seed = seed

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""
        check_integer("n_estimators", self.n_estimators)
        check_number("learning_rate", self.learning_rate, positive=True)
        check_patience(self.patience)
        if self.parameters is not None and not isinstance(self.parameters, Mapping):
            raise ArgumentError(f"parameters is {self.parameters!r}", hint="Give a dictionary.")
        if self.parameters:
            self._engine().check(self.parameters)

    def _fit(
        self,
        data: Training,
        validation: Training | None,
        progress: Progress | None,
        together: Together = ALONE,
    ) -> None:
        train, held_out = in_memory(data), None if validation is None else in_memory(validation)
        with self._engine().errors():
            self._grow(train, held_out, progress, together)

    def _grow(
        self,
        train: Dataset,
        held_out: Dataset | None,
        progress: Progress | None,
        together: Together,
    ) -> None:
        loss = self._loss()
        saved = together.saved()
        booster = self._engine().start(
            train,
            held_out,
            {
                "learning_rate": self.learning_rate,
                "seed": checked_seed(self.seed),
                **(self.parameters or {}),
                **together.engine_parameters(),
            },
            None if saved is None else saved.blobs["model"],
        )
        watch: Watch[int] = Watch(
            lambda _trees, _block: booster.validation_scores(),
            self.measure,
            held_out,
            progress,
            together,
        )
        step = 0 if saved is None else watch.resume(saved.facts)
        buffers = np.empty(train.rows), np.empty(train.rows)
        try:
            while step < self.n_estimators and not self._waited_enough(step, watch):
                found = loss.evaluate(
                    booster.training_scores(), train.labels, train.offsets, out=buffers
                )
                if not booster.grow(found.gradient, found.curvature):
                    break
                step += 1
                total, queries = together.total(np.array([found.total, len(train)]))
                watch(step, step, float(total / queries))
                together.save(step, partial(_progress_so_far, booster, step, watch))
            if together.size == 1 and not np.ptp(booster.training_scores()):
                warnings.warn(
                    "No tree tells documents apart: all have the same score. Are there enough "
                    "rows? The engine's parameters say how many a leaf needs.",
                    stacklevel=5,
                )
        except KeyboardInterrupt as stop:
            if not watch.model:
                raise
            self._keep(booster, watch.model)
            raise FitInterrupted from stop
        finally:
            if together.size > 1:
                booster.release()
        self._keep(booster, watch.model or 0)

    def _keep(self, booster: Booster, trees: int) -> None:
        booster.cut(trees)
        self._booster, self.n_trees_ = booster, trees

    def _waited_enough(self, step: int, watch: Watch[int]) -> bool:
        waited = step - watch.best_step
        return self.patience is not None and step > 0 and waited >= self.patience

    @property
    def booster_(self) -> Any:
        """The engine's own model."""
        return self._booster.model

    def _predict(self, features: Floats) -> Doubles:
        return self._booster.predict(features)

    def _engine(self) -> type[Booster]:
        return ENGINES.named(self.engine)

    def _archive(self) -> Archive:
        return Archive("", {"trees": self.n_trees_}, {}, {"model": self._booster.dump()})

    def _restore(self, archive: Archive) -> None:
        booster = self._engine().load(archive.blobs["model"])
        trees = int(archive.facts["trees"])
        features, grown = booster.shape()
        if features != self.n_features_in_ or not 0 <= trees <= grown:
            raise ValueError("the engine's model has other features or fewer trees")
        self._keep(booster, trees)


def _progress_so_far(booster: Booster, step: int, watch: Watch[int]) -> Archive:
    facts = watch.facts(step) | {"model": watch.model}
    return Archive("", facts, {}, {"model": booster.dump()})

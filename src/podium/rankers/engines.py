"""LightGBM and XGBoost behind one small face: grow a tree from gradients, predict, dump, load.

The labels never reach the engine: a custom objective needs none, and LightGBM's own ranking
objectives refuse labels above 30. Both engines and Podium's losses use threads; they take turns,
and an engine's threads must not spin while the loss is computed, so OpenMP's waiting policy is
set to passive before an engine is first imported.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.errors import DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.rankers.model_check import check_lightgbm, check_xgboost
from podium.registry import Registry
from podium.threads import thread_count


class Booster(ABC):
    """A model that grows tree by tree; ``model`` is the engine's own."""

    model: Any

    @classmethod
    @abstractmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        grown: bytes | None = None,
    ) -> Booster:
        """A model without trees, or with those that were grown and dumped before."""

    @classmethod
    @abstractmethod
    def load(cls, dumped: bytes) -> Booster:
        """The model that ``dump`` gave; a DataError if it is not well formed."""

    @abstractmethod
    def grow(self, gradient: Doubles, curvature: Doubles) -> bool:
        """Add a tree; False if no split was worth it and nothing was added."""

    @abstractmethod
    def training_scores(self) -> Doubles:
        """The scores of the training rows by the trees so far."""

    @abstractmethod
    def validation_scores(self) -> Doubles:
        """The scores of the validation rows by the trees so far."""

    @abstractmethod
    def predict(self, features: Floats, trees: int) -> Doubles:
        """The scores of rows by the first trees."""

    @abstractmethod
    def dump(self) -> bytes:
        """The model in the engine's own format."""

    def release(self) -> None:  # noqa: B027 (most engines hold nothing)
        """Let go of what reaches the other processes of a fit."""


class _LightGBM(Booster):
    def __init__(
        self, model: Any, validation: Dataset | None = None, loaded: bytes | None = None
    ) -> None:
        self.model = model
        self._validation = validation
        self._loaded = loaded

    @classmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        grown: bytes | None = None,
    ) -> _LightGBM:
        lightgbm = import_engine("lightgbm")
        settings = {
            "objective": "none",
            "metric": "none",
            "verbosity": -1,
            "num_threads": thread_count(),
            "deterministic": True,
            "force_row_wise": True,  # else LightGBM times both ways, and the result may differ
            **parameters,
        }
        data = lightgbm.Dataset(
            train.features, label=np.zeros(train.rows), params=settings, free_raw_data=True
        )
        if grown is not None:  # as lightgbm.train does with its init_model
            before = lightgbm.Booster(model_str=check_lightgbm(grown).decode())
            data._set_predictor(lightgbm.basic._InnerPredictor.from_booster(before, {}))
        found = cls(lightgbm.Booster(settings, data), validation)
        if validation is not None:
            rows = np.zeros(validation.rows)
            found.model.add_valid(
                lightgbm.Dataset(validation.features, label=rows).set_reference(data), "validation"
            )
        return found

    @classmethod
    def load(cls, dumped: bytes) -> _LightGBM:
        lightgbm = import_engine("lightgbm")
        try:
            model = lightgbm.Booster(model_str=check_lightgbm(dumped).decode())
            return cls(model, loaded=dumped)
        except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
            raise DataError(f"holds no LightGBM model ({error})", hint="Save it again.") from error

    def grow(self, gradient: Doubles, curvature: Doubles) -> bool:
        before = self.model.current_iteration()
        self.model.update(fobj=lambda _scores, _data: (gradient, curvature))
        return bool(self.model.current_iteration() > before)

    def training_scores(self) -> Doubles:
        return self._scores(0)

    def validation_scores(self) -> Doubles:
        return self._scores(1)

    def _scores(self, data: int) -> Doubles:
        # LightGBM keeps the scores of its data up to date; its own feval reads them so.
        found: list[Doubles] = []

        def keep(scores: Doubles, _data: Any) -> tuple[str, float, bool]:
            found.append(scores)
            return "", 0.0, True

        self.model.eval_train(keep) if data == 0 else self.model.eval_valid(keep)
        return found[0]

    def predict(self, features: Floats, trees: int) -> Doubles:
        if not trees:
            return np.zeros(len(features))
        return np.asarray(self.model.predict(features, num_iteration=trees, raw_score=True))

    def dump(self) -> bytes:
        if self._loaded is not None:  # the engine was not given all of it
            return self._loaded
        return str(self.model.model_to_string(num_iteration=-1)).encode()

    def release(self) -> None:
        self.model.free_network()  # its port, which the next training of the process needs


class _XGBoost(Booster):
    def __init__(self, model: Any, train: Any = None, validation: Any = None) -> None:
        self.model = model
        self._train = train
        self._validation = validation

    @classmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        grown: bytes | None = None,
    ) -> _XGBoost:
        xgboost = import_engine("xgboost")
        settings = {
            "objective": "reg:squarederror",
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "nthread": thread_count(),
            **parameters,
        }
        rows = xgboost.QuantileDMatrix(
            train.features,
            np.zeros(train.rows),
            nthread=thread_count(),
            max_bin=settings.get("max_bin"),
        )
        kept = None
        if validation is not None:
            kept = xgboost.DMatrix(validation.features, nthread=thread_count())
        cached = [rows] if kept is None else [rows, kept]
        model = None if grown is None else bytearray(check_xgboost(grown))
        return cls(xgboost.Booster(settings, cache=cached, model_file=model), rows, kept)

    @classmethod
    def load(cls, dumped: bytes) -> _XGBoost:
        xgboost = import_engine("xgboost")
        try:
            return cls(xgboost.Booster(model_file=bytearray(check_xgboost(dumped))))
        except xgboost.core.XGBoostError as error:
            raise DataError(f"holds no XGBoost model ({error})", hint="Save it again.") from error

    def grow(self, gradient: Doubles, curvature: Doubles) -> bool:
        self.model.boost(
            self._train,
            iteration=self.model.num_boosted_rounds(),
            grad=gradient.astype(np.float32),
            hess=curvature.astype(np.float32),
        )
        return True

    def training_scores(self) -> Doubles:
        return np.asarray(self.model.predict(self._train, output_margin=True), np.float64)

    def validation_scores(self) -> Doubles:
        return np.asarray(self.model.predict(self._validation, output_margin=True), np.float64)

    def predict(self, features: Floats, trees: int) -> Doubles:
        if not trees:
            return np.zeros(len(features))
        rows = import_engine("xgboost").DMatrix(features, nthread=thread_count())
        found = self.model.predict(rows, output_margin=True, iteration_range=(0, trees))
        return np.asarray(found, np.float64)

    def dump(self) -> bytes:
        return bytes(self.model.save_raw("json"))


def import_engine(name: str, extra: str = "trees") -> Any:
    """A library that trains; its threads wait without spinning, for others need the cores."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return __import__(name)
    except ImportError as error:
        raise MissingPackageError(name, extra=extra) from error


ENGINES: Registry[type[Booster]] = Registry("engine", {"lightgbm": _LightGBM, "xgboost": _XGBoost})

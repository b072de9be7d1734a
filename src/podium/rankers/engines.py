"""A common interface to LightGBM and XGBoost: grow a tree from gradients, predict, dump, load.

The engine does not get the labels: a custom objective needs none, and LightGBM's own ranking
objectives reject labels above 30. The engine and Podium's losses use threads in turn, and the
engine's threads must not spin while the loss is computed, so OpenMP's wait policy is set to passive
before an engine is first imported.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset
from podium.data.columns import are_numbers
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.rankers.engine_parameters import (
    LIGHTGBM_REJECTED,
    RANKER_PARAMETERS,
    XGBOOST_ALIASES,
    XGBOOST_REJECTED,
    check_engine_params,
    draws_at_random,
    with_defaults,
)
from podium.registry import Registry, unknown_name
from podium.scorers.lightgbm_file import read_lightgbm
from podium.scorers.model_check import check_lightgbm, check_xgboost
from podium.scorers.trees import TreeModel
from podium.scorers.xgboost_file import read_xgboost
from podium.threads import thread_count


class Booster(ABC):
    """A model that grows tree by tree.

    Attributes:
        model: The engine's own object.
        draws: Whether a tree is grown from rows, columns or thresholds drawn at random, so that one
            without a split may be followed by one that has some.
    """

    model: Any
    draws: bool = False

    @classmethod
    @abstractmethod
    def check(cls, parameters: Mapping[str, Any]) -> None:
        """Raise an ArgumentError for a parameter that the engine does not have or would ignore."""

    @classmethod
    @abstractmethod
    def errors(cls) -> AbstractContextManager[None]:
        """Return a context that turns the engine's errors into an ArgumentError of one line."""

    @classmethod
    @abstractmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        trained_model: bytes | None = None,
        *,
        categorical: Sequence[int] = (),
    ) -> Booster:
        """Start training without trees, or from a model dumped before.

        ``categorical`` are the columns whose numbers are codes of categories.
        """

    @classmethod
    @abstractmethod
    def load(cls, dumped: bytes) -> Booster:
        """Load a model from ``dump``; raise a DataError if it is malformed."""

    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Return the number of features and the number of trees."""

    @abstractmethod
    def grow(self, gradient: Doubles, curvature: Doubles) -> bool:
        """Add a tree; return False if there was no useful split and no tree was added."""

    @abstractmethod
    def training_scores(self) -> Doubles:
        """Return the scores of the training rows."""

    @abstractmethod
    def validation_scores(self) -> Doubles:
        """Return the scores of the validation rows."""

    @abstractmethod
    def finish(self, trees: int) -> None:
        """Keep only the first trees, and release the data; the model cannot grow afterwards."""

    @abstractmethod
    def predict(self, features: Floats) -> Doubles:
        """Score rows."""

    @abstractmethod
    def contributions(self, features: Floats) -> Doubles:
        """Return the engine's Shapley values: a row per row, a column per feature."""

    @abstractmethod
    def importances(self) -> NDArray[Any]:
        """Return the importance of each feature, as the engine's own estimators define it."""

    @abstractmethod
    def dump(self) -> bytes:
        """Return the model in the engine's own format."""

    @abstractmethod
    def fitted_trees(self, count: int | None) -> TreeModel:
        """Return the first trees, or all of them, as data."""

    def close_network(self) -> None:  # noqa: B027 (optional for engines)
        """Close the engine's connections to the other processes of a fit."""


_LIGHTGBM_TYPES = (str, Path, Real, np.generic, list, tuple, set, type(None))
"""The types of values that LightGBM writes into its parameter string; booleans are numbers."""


class _LightGBM(Booster):
    def __init__(self, model: Any, loaded: bytes | None = None) -> None:
        self.model = model
        self._loaded = loaded

    @classmethod
    def check(cls, parameters: Mapping[str, Any]) -> None:
        known = cls._main_of()
        for name, value in parameters.items():
            if name not in known:
                usable = {
                    each: main for each, main in known.items() if main not in LIGHTGBM_REJECTED
                }
                own = {each: each for each in RANKER_PARAMETERS}
                raise unknown_name("LightGBM parameter", name, usable | own)
            if isinstance(value, str) and re.search(r"\s", value):
                raise ArgumentError(
                    f"{name} is {value!r}, which LightGBM would split at spaces",
                    hint="Remove the spaces.",
                )
            if not isinstance(value, _LIGHTGBM_TYPES):
                raise ArgumentError(
                    f"{name} is of type {type(value).__name__}, which LightGBM does not take",
                    hint="Give a number, a string, a boolean or a list.",
                )
        check_engine_params(parameters, known, LIGHTGBM_REJECTED)

    @classmethod
    def _main_of(cls) -> dict[str, str]:
        aliases = import_engine("lightgbm").basic._ConfigAliases._get_all_param_aliases()
        return {name: main for main, names in aliases.items() for name in names}

    @classmethod
    def errors(cls) -> AbstractContextManager[None]:
        return _engine_errors("LightGBM", import_engine("lightgbm").basic.LightGBMError)

    @classmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        trained_model: bytes | None = None,
        *,
        categorical: Sequence[int] = (),
    ) -> _LightGBM:
        lightgbm = import_engine("lightgbm")
        defaults = {
            "objective": "none",
            "metric": "none",
            "verbosity": -1,
            "num_threads": thread_count(),
            "deterministic": True,
            "num_leaves": 15,  # with a learning rate of 0.05 better than 31 on small data
            "force_row_wise": True,  # else LightGBM times both layouts, and the result may differ
        }
        exclusive = {"force_row_wise": ["force_col_wise"]}
        settings = with_defaults(parameters, defaults, cls._main_of(), exclusive)
        data = lightgbm.Dataset(
            train.features,
            label=np.zeros(train.rows),
            feature_name=_engine_names(train, r'[\s",:\[\]{}]') or "auto",
            categorical_feature=list(categorical) or "auto",
            params=settings,
            free_raw_data=True,
        )
        validation_data = None
        if validation is not None:
            labels = np.zeros(validation.rows)
            validation_data = lightgbm.Dataset(validation.features, label=labels)
            validation_data.set_reference(data)
        if trained_model is not None:
            model = _continued_lightgbm(settings, data, validation_data, trained_model)
        else:
            model = lightgbm.Booster(settings, data)
            if validation_data is not None:
                model.add_valid(validation_data, "validation")
        booster = cls(model)
        booster.draws = draws_at_random(parameters, cls._main_of())
        return booster

    @classmethod
    def load(cls, dumped: bytes) -> _LightGBM:
        lightgbm = import_engine("lightgbm")
        try:
            model = lightgbm.Booster(model_str=check_lightgbm(dumped).decode())
            return cls(model, loaded=dumped)
        except (lightgbm.basic.LightGBMError, UnicodeDecodeError) as error:
            raise DataError(
                f"is not a valid LightGBM model ({error})", hint="Save it again."
            ) from error

    def shape(self) -> tuple[int, int]:
        return self.model.num_feature(), self.model.num_trees()

    def grow(self, gradient: Doubles, curvature: Doubles) -> bool:
        before = self.model.current_iteration()
        try:
            self.model.update(fobj=lambda _scores, _data: (gradient, curvature))
        except import_engine("lightgbm").basic.LightGBMError as error:
            if "num_features()" not in str(error):
                raise
            raise DataError(
                "no feature can be split into leaves as large as LightGBM's parameters require",
                hint="Give more rows, or a min_data_in_leaf below LightGBM's default of 20.",
            ) from error
        return bool(self.model.current_iteration() > before)

    def training_scores(self) -> Doubles:
        return self._scores(0)

    def validation_scores(self) -> Doubles:
        return self._scores(1)

    def _scores(self, data: int) -> Doubles:
        # LightGBM keeps the scores of its data up to date, and passes them to evaluation functions.
        captured: list[Doubles] = []

        def capture(scores: Doubles, _data: Any) -> tuple[str, float, bool]:
            captured.append(scores)
            return "", 0.0, True

        self.model.eval_train(capture) if data == 0 else self.model.eval_valid(capture)
        return captured[0]

    def finish(self, trees: int) -> None:
        # To LightGBM, 0 trees means all trees.
        text = self._text(trees) if trees else self._text(-1)
        self.model = import_engine("lightgbm").Booster(model_str=text)

    def predict(self, features: Floats) -> Doubles:
        return np.asarray(
            self.model.predict(features, raw_score=True, num_threads=thread_count()), np.float64
        )

    def contributions(self, features: Floats) -> Doubles:
        try:
            values = self.model.predict(features, pred_contrib=True, num_threads=thread_count())
        except import_engine("lightgbm").basic.LightGBMError as error:
            raise _no_contributions("LightGBM", error) from error
        return np.asarray(values, np.float64)[:, :-1]  # the last is the expected score

    def importances(self) -> NDArray[Any]:
        return np.asarray(self.model.feature_importance(importance_type="split"))

    def dump(self) -> bytes:
        if self._loaded is not None:  # the engine only got the checked part of it
            return self._loaded
        return self._text(-1).encode()

    def fitted_trees(self, count: int | None) -> TreeModel:
        trees = read_lightgbm(self.dump())
        return trees if count is None else trees.first_trees(count)

    def _text(self, trees: int) -> str:
        # The number of threads does not change the model.
        text = str(self.model.model_to_string(num_iteration=trees))
        return re.sub(r"(?m)^\[num_threads: \d+\]$", "[num_threads: 0]", text)

    def close_network(self) -> None:
        self.model.free_network()  # frees the port for the next training of this process


class _XGBoost(Booster):
    def __init__(self, model: Any, train: Any = None, validation: Any = None) -> None:
        self.model = model
        self._train = train
        self._validation = validation

    @classmethod
    def check(cls, parameters: Mapping[str, Any]) -> None:
        check_engine_params(parameters, XGBOOST_ALIASES, XGBOOST_REJECTED)
        xgboost = import_engine("xgboost")
        rows = xgboost.DMatrix(np.zeros((1, 1), np.float32))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                settings = {**cls._settings(parameters), "verbosity": 1}
                config = json.loads(xgboost.Booster(settings, [rows]).save_config())
            except (xgboost.core.XGBoostError, TypeError, ValueError):
                return  # an invalid value: the fit reports it, because it may depend on the data
        for warning in caught:
            unused = re.search(r"Parameters: \{(.*)\} are not used", str(warning.message))
            if unused:
                name = re.findall('"(.*?)"', unused[1])[0]
                usable = sorted(set(_leaf_names(config)) - XGBOOST_REJECTED.keys())
                raise unknown_name("XGBoost parameter", name, [*RANKER_PARAMETERS, *usable])

    @classmethod
    def errors(cls) -> AbstractContextManager[None]:
        return _engine_errors("XGBoost", import_engine("xgboost").core.XGBoostError)

    @classmethod
    def _settings(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "objective": "reg:squarederror",
            "base_score": 0.0,
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "nthread": thread_count(),
            **parameters,
        }

    @classmethod
    def start(
        cls,
        train: Dataset,
        validation: Dataset | None,
        parameters: dict[str, Any],
        trained_model: bytes | None = None,
        *,
        categorical: Sequence[int] = (),
    ) -> _XGBoost:
        assert not categorical  # refused before: a saved model with categories cannot be checked
        xgboost = import_engine("xgboost")
        settings = cls._settings(parameters)
        names = _engine_names(train, r"[\[\]<]")
        row_options = {"feature_names": names, "nthread": thread_count()}
        if settings["tree_method"] in ("approx", "exact"):  # they need unbinned values
            rows = xgboost.DMatrix(train.features, np.zeros(train.rows), **row_options)
        else:
            rows = xgboost.QuantileDMatrix(
                train.features, np.zeros(train.rows), max_bin=settings.get("max_bin"), **row_options
            )
        validation_rows = None
        if validation is not None:
            validation_rows = xgboost.DMatrix(validation.features, **row_options)
        cached = [rows] if validation_rows is None else [rows, validation_rows]
        model = None if trained_model is None else bytearray(check_xgboost(trained_model))
        return cls(xgboost.Booster(settings, cache=cached, model_file=model), rows, validation_rows)

    @classmethod
    def load(cls, dumped: bytes) -> _XGBoost:
        xgboost = import_engine("xgboost")
        try:
            return cls(xgboost.Booster(model_file=bytearray(check_xgboost(dumped))))
        except xgboost.core.XGBoostError as error:
            raise DataError(
                f"is not a valid XGBoost model ({error})", hint="Save it again."
            ) from error

    def shape(self) -> tuple[int, int]:
        return self.model.num_features(), self.model.num_boosted_rounds()

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

    def finish(self, trees: int) -> None:
        self.model = self.model[:trees]
        self._train = self._validation = None

    def predict(self, features: Floats) -> Doubles:
        rows = import_engine("xgboost").DMatrix(features, nthread=thread_count())
        # Names are already checked, and the engine may have other names for the columns.
        scores = self.model.predict(rows, output_margin=True, validate_features=False)
        return np.asarray(scores, np.float64)

    def contributions(self, features: Floats) -> Doubles:
        xgboost = import_engine("xgboost")
        rows = xgboost.DMatrix(features, nthread=thread_count())
        try:
            values = self.model.predict(rows, pred_contribs=True, validate_features=False)
        except xgboost.core.XGBoostError as error:
            raise _no_contributions("XGBoost", error) from error
        return np.asarray(values, np.float64)[:, :-1]  # the last is the expected score

    def importances(self) -> NDArray[Any]:
        gains = self.model.get_score(importance_type="gain")
        names = self.model.feature_names or [f"f{index}" for index in range(self.shape()[0])]
        values = np.array([gains.get(name, 0.0) for name in names], np.float32)
        return values / values.sum() if values.any() else values

    def dump(self) -> bytes:
        return bytes(self.model.save_raw("json"))

    def fitted_trees(self, count: int | None) -> TreeModel:
        return read_xgboost(self.dump(), count)


def import_engine(name: str) -> Any:
    """Import a training library whose threads wait without spinning, to leave the cores free."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return __import__(name)
    except ImportError as error:
        extra = "xgboost-cpu" if name == "xgboost" else "trees"
        raise MissingPackageError(name, extra=extra) from error


class _BoosterReady(Exception):  # noqa: N818 (it is not an error)
    """Ends ``lightgbm.train`` before its first tree."""


def _continued_lightgbm(
    settings: dict[str, Any], data: Any, validation_data: Any, trained_model: bytes
) -> Any:
    """Return a LightGBM booster that grows more trees after those of a model.

    ``lightgbm.train`` is the only public way to start from a model, but it grows trees itself. A
    callback takes the booster from it before the first one. The validation set is added there too:
    its scores start from the model, which LightGBM does not keep alive.
    """
    lightgbm = import_engine("lightgbm")
    boosters = []

    def take_booster(environment: Any) -> None:
        boosters.append(environment.model)
        raise _BoosterReady

    take_booster.before_iteration = True  # type: ignore[attr-defined]
    trained = lightgbm.Booster(model_str=check_lightgbm(trained_model).decode())
    with suppress(_BoosterReady):
        lightgbm.train(
            settings,
            data,
            valid_sets=None if validation_data is None else [validation_data],
            valid_names=None if validation_data is None else ["validation"],
            init_model=trained,
            callbacks=[take_booster],
        )
    return boosters[0]


def _no_contributions(engine: str, error: Exception) -> ArgumentError:
    return ArgumentError(
        f"{engine} cannot tell what features contribute: {_engine_message(error)}",
        hint="Train the ranker without such options.",
    )


def _engine_message(error: Exception) -> str:
    # XGBoost's messages start with the time and a source line, and end with a stack trace.
    text = re.sub(r"^(\[[\d:]+\] )?(\S+:\d+: )?", "", str(error).strip())
    message = " ".join(text.partition("Stack trace:")[0].split())
    return re.sub(r" at \S+, line \d+ ?\.$", "", message)[:500]  # LightGBM's source line


@contextmanager
def _engine_errors(engine: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise ArgumentError(
            f"{engine} cannot train: {_engine_message(error)}",
            hint="Check the engine's parameters.",
        ) from error


def _engine_names(data: Dataset, forbidden: str) -> list[str] | None:
    """Return the features' names without forbidden characters; None if they only have numbers."""
    if are_numbers(data.feature_names):
        return None
    names = [re.sub(forbidden, "_", name) for name in data.feature_names]
    return names if len(set(names)) == len(names) else None


def _leaf_names(config: Mapping[str, Any]) -> Iterator[str]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaf_names(value)
        else:
            yield name


ENGINES: Registry[type[Booster]] = Registry("engine", {"lightgbm": _LightGBM, "xgboost": _XGBoost})

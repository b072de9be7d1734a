"""LightGBM and XGBoost behind one small face: grow a tree from gradients, predict, dump, load.

The labels never reach the engine: a custom objective needs none, and LightGBM's own ranking
objectives refuse labels above 30. Both engines and Podium's losses use threads; they take turns,
and an engine's threads must not spin while the loss is computed, so OpenMP's waiting policy is
set to passive before an engine is first imported.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.data.columns import are_numbers
from podium.errors import ArgumentError, DataError, MissingPackageError
from podium.kernels import Doubles, Floats
from podium.rankers.engine_parameters import (
    LIGHTGBM_REFUSED,
    XGBOOST_ALIASES,
    XGBOOST_REFUSED,
    refuse_parameters,
    with_defaults,
)
from podium.rankers.model_check import check_lightgbm, check_xgboost
from podium.registry import Registry, unknown_name
from podium.threads import thread_count


class Booster(ABC):
    """A model that grows tree by tree; ``model`` is the engine's own."""

    model: Any

    @classmethod
    @abstractmethod
    def check(cls, parameters: Mapping[str, Any]) -> None:
        """Raise an ArgumentError for a parameter that the engine does not know or would ignore."""

    @classmethod
    @abstractmethod
    def errors(cls) -> AbstractContextManager[None]:
        """Around a fit: what the engine refuses is an ArgumentError of one line."""

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
    def shape(self) -> tuple[int, int]:
        """How many features it takes, and how many trees it has."""

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
    def cut(self, trees: int) -> None:
        """Keep the first trees alone, and let go of the data; it cannot grow any more."""

    @abstractmethod
    def predict(self, features: Floats) -> Doubles:
        """The scores of rows."""

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
    def check(cls, parameters: Mapping[str, Any]) -> None:
        known = cls._main_of()
        for name, value in parameters.items():
            if name not in known:
                raise unknown_name("LightGBM parameter", name, known)
            if isinstance(value, str) and re.search(r"\s", value):
                raise ArgumentError(
                    f"{name} is {value!r}, which LightGBM splits at spaces",
                    hint="Give it without spaces.",
                )
        refuse_parameters(parameters, known, LIGHTGBM_REFUSED)
        try:
            import_engine("lightgbm").basic._param_dict_to_str(dict(parameters))
        except TypeError as error:
            raise ArgumentError(f"LightGBM refuses to train: {error}") from error

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
        grown: bytes | None = None,
    ) -> _LightGBM:
        lightgbm = import_engine("lightgbm")
        defaults = {
            "objective": "none",
            "metric": "none",
            "verbosity": -1,
            "num_threads": thread_count(),
            "deterministic": True,
            "force_row_wise": True,  # else LightGBM times both ways, and the result may differ
        }
        instead = {"force_row_wise": ["force_col_wise"]}
        settings = with_defaults(parameters, defaults, cls._main_of(), instead)
        data = lightgbm.Dataset(
            train.features,
            label=np.zeros(train.rows),
            feature_name=_names(train, r'[\s",:\[\]{}]') or "auto",
            params=settings,
            free_raw_data=True,
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
                "no feature can be split into leaves as large as LightGBM's parameters want",
                hint="Give more rows, or a min_data_in_leaf below 20, which is LightGBM's own.",
            ) from error
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

    def cut(self, trees: int) -> None:
        # To LightGBM, 0 means all.
        text = self._text(trees) if trees else self._text(-1)
        self.model = import_engine("lightgbm").Booster(model_str=text)

    def predict(self, features: Floats) -> Doubles:
        return np.asarray(
            self.model.predict(features, raw_score=True, num_threads=thread_count()), np.float64
        )

    def dump(self) -> bytes:
        if self._loaded is not None:  # the engine was not given all of it
            return self._loaded
        return self._text(-1).encode()

    def _text(self, trees: int) -> str:
        # The number of threads is no part of the model, and changes nothing in it.
        text = str(self.model.model_to_string(num_iteration=trees))
        return re.sub(r"(?m)^\[num_threads: \d+\]$", "[num_threads: 0]", text)

    def release(self) -> None:
        self.model.free_network()  # its port, which the next training of the process needs


class _XGBoost(Booster):
    def __init__(self, model: Any, train: Any = None, validation: Any = None) -> None:
        self.model = model
        self._train = train
        self._validation = validation

    @classmethod
    def check(cls, parameters: Mapping[str, Any]) -> None:
        refuse_parameters(parameters, XGBOOST_ALIASES, XGBOOST_REFUSED)
        xgboost = import_engine("xgboost")
        rows = xgboost.DMatrix(np.zeros((1, 1), np.float32))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                settings = {**cls._settings(parameters), "verbosity": 1}
                config = json.loads(xgboost.Booster(settings, [rows]).save_config())
            except (xgboost.core.XGBoostError, TypeError, ValueError):
                return  # a wrong value, which the fit tells of: these rows are not the data
        for warning in said:
            unused = re.search(r"Parameters: \{(.*)\} are not used", str(warning.message))
            if unused:
                name = re.findall('"(.*?)"', unused[1])[0]
                raise unknown_name("XGBoost parameter", name, sorted(set(_leaves(config))))

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
        grown: bytes | None = None,
    ) -> _XGBoost:
        xgboost = import_engine("xgboost")
        settings = cls._settings(parameters)
        names = _names(train, r"[\[\]<]")
        of_rows = {"feature_names": names, "nthread": thread_count()}
        if settings["tree_method"] in ("approx", "exact"):  # they need the values, not their bins
            rows = xgboost.DMatrix(train.features, np.zeros(train.rows), **of_rows)
        else:
            rows = xgboost.QuantileDMatrix(
                train.features, np.zeros(train.rows), max_bin=settings.get("max_bin"), **of_rows
            )
        kept = None
        if validation is not None:
            kept = xgboost.DMatrix(validation.features, **of_rows)
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

    def cut(self, trees: int) -> None:
        self.model = self.model[:trees]
        self._train = self._validation = None

    def predict(self, features: Floats) -> Doubles:
        rows = import_engine("xgboost").DMatrix(features, nthread=thread_count())
        # Names were compared already, and the engine may know the columns by others.
        found = self.model.predict(rows, output_margin=True, validate_features=False)
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


@contextmanager
def _engine_errors(engine: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        # XGBoost begins with the time and a place in its source, and ends with a stack trace.
        text = re.sub(r"^(\[[\d:]+\] )?(\S+:\d+: )?", "", str(error).strip())
        words = " ".join(text.partition("Stack trace:")[0].split())
        words = re.sub(r" at \S+, line \d+ ?\.$", "", words)  # LightGBM ends with that place
        raise ArgumentError(
            f"{engine} refuses to train: {words[:500]}",
            hint="Check the engine's parameters.",
        ) from error


def _names(data: Dataset, refused: str) -> list[str] | None:
    """The features' names as an engine takes them; None if they have only numbers."""
    if are_numbers(data.feature_names):
        return None
    names = [re.sub(refused, "_", name) for name in data.feature_names]
    return names if len(set(names)) == len(names) else None


def _leaves(config: Mapping[str, Any]) -> Iterator[str]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        else:
            yield name


ENGINES: Registry[type[Booster]] = Registry("engine", {"lightgbm": _LightGBM, "xgboost": _XGBoost})

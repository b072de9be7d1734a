"""Small models trained by each library on the same made-up rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles
from podium.scorers.trees import TreeModel


@cache
def rows(missing: bool) -> tuple[Doubles, Doubles]:
    """Features (one with categories, one with many zeros) and labels."""
    random = np.random.default_rng(3)
    X = random.normal(size=(1200, 6)).astype(np.float32)
    X[:, 3] = random.integers(0, 40, len(X))
    X[random.random(len(X)) < 0.6, 5] = 0
    if missing:
        X[random.random(X.shape) < 0.1] = np.nan
    filled = np.nan_to_num(X)
    y = filled[:, 0] + filled[:, 3] % 3 + filled[:, 1] * filled[:, 2] + (filled[:, 5] == 0)
    return X, y


def awkward_rows(model: TreeModel, seed: int = 0) -> Doubles:
    """The rows with values on thresholds, tiny, huge, infinite and missing ones mixed in."""
    random = np.random.default_rng(seed)
    X = np.nan_to_num(rows(True)[0]).astype(np.float64)
    inner = np.flatnonzero((model.feature >= 0) & (model.category_set < 0))
    for node in random.choice(inner, 3000):
        X[random.integers(len(X)), model.feature[node]] = model.threshold[node]
    for value in (np.nan, np.inf, -np.inf, 0.0, 1e-40, -1e-40, 1e-35, -1e-35, 1e10, -0.5, 3.7):
        X[random.random(X.shape) < 0.03] = value
    return X


def lightgbm_model(missing: bool = True, **parameters: Any) -> Any:
    import lightgbm

    X, y = rows(missing)
    data = lightgbm.Dataset(X, y, categorical_feature=[3])
    settings = {"objective": "regression", "verbosity": -1, "num_threads": 2}
    settings |= {"num_leaves": 15, "min_data_in_leaf": 5, "min_data_per_group": 5, "seed": 1}
    return lightgbm.train({**settings, **parameters}, data, 30)


TYPES = ["q", "q", "q", "c", "q", "q"]


def xgboost_model(rounds: int = 20, **parameters: Any) -> Any:
    import xgboost

    X, y = rows(True)
    data = xgboost.DMatrix(
        X, (y > 1) * 1, feature_types=TYPES, enable_categorical=True, qid=np.repeat(range(40), 30)
    )
    return xgboost.train({"max_depth": 5, "nthread": 2, **parameters}, data, rounds)


def catboost_model(folder: Path, **parameters: Any) -> tuple[Any, bytes]:
    import catboost

    X, y = rows(True)
    settings: dict[str, Any] = {"iterations": 20, "depth": 4, "verbose": 0, "thread_count": 2}
    model = catboost.CatBoostRegressor(**settings, allow_writing_files=False, **parameters)
    model.fit(X, y)
    model.save_model(str(folder / "model.json"), format="json")
    return model, (folder / "model.json").read_bytes()


@cache
def queries(missing: bool = True) -> Dataset:
    """The rows as queries of 30 documents; features are not negative, as queries' scores are."""
    X, y = rows(missing)
    return Dataset.from_arrays(np.abs(X), labels=np.round(np.abs(y)), group=[30] * 40)

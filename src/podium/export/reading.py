"""The model of a ranker, or of a file that another library saved, in the form that is exported."""

from __future__ import annotations

import os
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import numpy as np

from podium.errors import ArgumentError, DataError
from podium.export.catboost_file import read_catboost
from podium.export.feature_names import check_feature_names
from podium.export.lightgbm_file import read_lightgbm
from podium.export.scorers import LinearModel, NetworkModel
from podium.export.trees import TreeModel, concatenate_trees
from podium.export.xgboost_file import read_xgboost
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
    load_ranker,
)

Model: TypeAlias = TreeModel | LinearModel | NetworkModel
"""What can be exported."""

MOST_BYTES = 1 << 30
"""Larger files are not read."""


def model_of_ranker(ranker: Ranker) -> Model:
    """Return the fitted model of a ranker.

    Example:
        >>> ranker = LinearRanker("ListNet()").fit([[1.0], [2.0]], [0, 1], group=[2])
        >>> model_of_ranker(ranker).feature_names
        ('1',)
    """
    archive = ranker.archive()
    names = tuple(ranker.feature_names_)
    check_feature_names(names)
    if isinstance(ranker, TreeRanker):
        content, rounds = archive.blobs["model"], ranker.n_estimators_ or None
        if ranker.engine == "xgboost":
            return replace(read_xgboost(content, rounds), feature_names=names)
        trees = read_lightgbm(content)
        return replace(trees.first_trees(rounds or trees.trees), feature_names=names)
    if isinstance(ranker, BoostedRanker):
        return _boosted(ranker, names)
    if isinstance(ranker, LinearRanker):
        return LinearModel(names, ranker.coef_)
    if isinstance(ranker, NeuralRanker):
        arrays = {name: np.asarray(value) for name, value in archive.arrays.items()}
        # Layers and rectifiers alternate: the layers have even numbers.
        numbers = sorted(int(name.split(".")[1]) for name in arrays if name.endswith(".weight"))
        layers = tuple(
            (arrays[f"weights.{number}.weight"], arrays[f"weights.{number}.bias"])
            for number in numbers
        )
        return NetworkModel(names, ranker.mean_, ranker.scale_, layers)
    if isinstance(ranker, CascadeRanker):
        raise ArgumentError(
            "a cascade ranks the documents of a query by votes, which no target can express",
            hint="Export its base and its rerankers each.",
        )
    raise ArgumentError(
        f"{type(ranker).__name__} cannot be exported",
        hint="Export a tree, linear or neural ranker.",
    )


def _boosted(ranker: BoostedRanker, names: tuple[str, ...]) -> Model:
    weights = ranker.estimator_weights_
    if ranker.weak_ranker == "feature":
        coefficients = np.zeros(len(names))
        np.add.at(coefficients, ranker.feature_indices_, weights)
        return LinearModel(names, coefficients)
    # A threshold is a tree of one split: above it the weight, below it and for missing values 0.
    stumps = zip(ranker.feature_indices_, ranker.thresholds_, weights, strict=True)
    return concatenate_trees(
        [
            {
                "feature": [feature, -1, -1], "threshold": [threshold, 0, 0], "left": [1, 0, 0],
                "right": [2, 0, 0], "missing_left": [True, False, False], "value": [0, 0, weight],
            }
            for feature, threshold, weight in stumps
        ],
        names,
    )  # fmt: skip


def read_model(path: str | os.PathLike[str]) -> tuple[Model, Ranker | None, bytes]:
    """Read a ranker saved by Podium, or a model of LightGBM, XGBoost or CatBoost.

    LightGBM's text format, XGBoost's JSON and UBJ, and CatBoost's JSON are told apart by their
    content. Also returns the ranker, if it is one, and the bytes of the file.
    """
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise DataError("is larger than 1 GiB", path=path, hint="Export a smaller model.")
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise DataError("no such file", path=path, hint="Check the path.") from error
    try:
        if content.startswith(b"PK"):
            ranker = load_ranker(BytesIO(content))
            return model_of_ranker(ranker), ranker, content
        return read_engine_model(content), None, content
    except DataError as error:
        raise error.at(path) from error


def read_engine_model(content: bytes) -> TreeModel:
    """Read a model of LightGBM, XGBoost or CatBoost from the bytes of its file."""
    start = content[:200].lstrip()
    if start.startswith(b"tree\n"):
        return read_lightgbm(content)
    if start.startswith(b"{"):
        if b'"oblivious_trees"' in content or b'"features_info"' in content:
            return read_catboost(content)
        return read_xgboost(content)
    raise DataError(
        "is neither a saved ranker nor a model of LightGBM, XGBoost or CatBoost",
        hint="Give LightGBM's text format, or JSON from XGBoost or CatBoost.",
    )

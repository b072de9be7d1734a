"""The model of a ranker, or of a file that another library saved, in the form that is exported."""

from __future__ import annotations

import os
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Never, TypeAlias

import numpy as np

from podium.data.columns import are_numbers, numbered_names
from podium.errors import ArgumentError, DataError
from podium.export.catboost_file import read_catboost
from podium.export.feature_names import check_feature_names
from podium.export.lightgbm_file import read_lightgbm
from podium.export.scorers import LinearModel, NetworkModel
from podium.export.trees import TreeModel, concatenate_trees
from podium.export.xgboost_file import read_xgboost
from podium.kernels import Doubles, Floats
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
    content = _content(path)
    try:
        if content.startswith(b"PK"):
            ranker = load_ranker(BytesIO(content))
            return model_of_ranker(ranker), ranker, content
        return read_engine_model(content), None, content
    except DataError as error:
        raise error.at(path) from error


def read_ranker(path: str | os.PathLike[str]) -> Ranker:
    """Read what ``read_model`` reads, as a ranker that scores."""
    if Path(path).is_dir():
        return load_ranker(path)  # which says what it is
    content = _content(path)
    try:
        if content.startswith(b"PK"):
            return load_ranker(BytesIO(content))
        return ModelRanker(read_engine_model(content), content)
    except DataError as error:
        raise error.at(path) from error


class ModelRanker(Ranker, abstract=True):
    """Trees that another library trained, as a ranker that scores and nothing else.

    Args:
        model: The trees.
        content: The bytes of its file.
    """

    def __init__(self, model: TreeModel, content: bytes) -> None:
        self.model = model
        self.content = content
        names = model.feature_names
        if names == tuple(f"Column_{number}" for number in range(len(names))):
            names = numbered_names(len(names))  # LightGBM's names of columns without any
        with self._fitting(names, not are_numbers(names), None):
            pass

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return nothing: how it was trained is not known."""
        del deep
        return {}

    def to_bytes(self) -> bytes:
        """Return the bytes of the library's file."""
        return self.content

    def _predict(self, features: Floats) -> Doubles:
        return self.model.predict(features)

    def _contributions(self, _features: Floats) -> Doubles:
        raise ArgumentError(
            "another library trained this model, and Podium does not know what rows of its "
            "training reached each node, by which trees are explained",
            hint="Use podium importance, or the library's own contributions (pred_contrib).",
        )

    def contribution_method(self) -> str:
        """Return how contributions of features are defined: not at all."""
        return "not known, because another library trained the model"

    def _fit(self, *_arguments: object) -> Never:
        raise ArgumentError("another library trained this model", hint="Train it again there.")

    def _archive(self) -> Never:
        raise ArgumentError("another library trained this model", hint="Keep the file it saved.")

    def _restore(self, _archive: object) -> Never:
        raise ArgumentError("another library trained this model", hint="Read the file it saved.")


def _content(path: str | os.PathLike[str]) -> bytes:
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise DataError("is larger than 1 GiB", path=path, hint="Give a smaller model.")
        return file.read_bytes()
    except FileNotFoundError as error:
        raise DataError("no such file", path=path, hint="Check the path.") from error


def read_engine_model(content: bytes) -> TreeModel:
    """Read a model of LightGBM, XGBoost or CatBoost from the bytes of its file."""
    if content.startswith(b"CBM1"):
        raise DataError(
            "is CatBoost's binary format, which Podium does not read",
            hint="Save it by save_model(path, format='json').",
        )
    if content.startswith((b"\x80", b"\x1f\x8b", b"\x78")):
        raise DataError(
            "is a pickled (joblib) or compressed file, and reading a pickle can run code",
            hint="Save the model itself: LightGBM's booster_.save_model('model.txt'), XGBoost's "
            "save_model('model.json'), CatBoost's save_model('model.json', format='json').",
        )
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

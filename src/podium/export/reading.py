"""Rankers from files: those that Podium saved, and models of other libraries."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any, Never

from podium.data.columns import are_numbers, numbered_names
from podium.data.files import read_bounded
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats
from podium.rankers import Ranker, load_ranker
from podium.rankers.inputs import FittedFeatures
from podium.scorers.catboost_file import read_catboost
from podium.scorers.lightgbm_file import read_lightgbm
from podium.scorers.trees import TreeModel
from podium.scorers.xgboost_file import read_xgboost

MOST_BYTES = 1 << 30
"""Larger files are not read."""


def read_ranker(path: str | os.PathLike[str]) -> Ranker:
    """Read a ranker saved by Podium, or a model of LightGBM, XGBoost or CatBoost.

    LightGBM's text format, XGBoost's JSON and UBJ, and CatBoost's JSON are told apart by their
    content.
    """
    if Path(path).is_dir():
        return load_ranker(path)
    try:
        return ranker_of_bytes(read_bounded(path, MOST_BYTES))
    except DataError as error:
        raise error.at(path) from error


def ranker_of_bytes(content: bytes) -> Ranker:
    """Return the ranker whose file has this content, as ``read_ranker`` does."""
    if content.startswith(b"PK"):
        return load_ranker(BytesIO(content))
    return ModelRanker(read_engine_model(content), content)


class ModelRanker(Ranker, abstract=True):
    """Trees that another library trained, as a ranker that scores and nothing else.

    Args:
        model: The trees.
        content: The bytes of its file.
    """

    scores_fast = False

    def __init__(self, model: TreeModel, content: bytes) -> None:
        self.model = model
        self.content = content
        names = model.feature_names
        if names == tuple(f"Column_{number}" for number in range(len(names))):
            names = numbered_names(len(names))  # LightGBM's names of columns without any
        self.features_ = FittedFeatures(names, not are_numbers(names))
        self.single_values = model.single_values

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return nothing: how it was trained is not known."""
        del deep
        return {}

    def to_bytes(self) -> bytes:
        """Return the bytes of the library's file."""
        return self.content

    @property
    def kind(self) -> str:
        """The form of the model."""
        return type(self.model).__name__

    def _fitted_model(self) -> TreeModel:
        return self.model

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

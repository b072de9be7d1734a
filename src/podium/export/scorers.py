"""Models that are not trees: weighted sums of features, and small networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from podium.errors import DataError
from podium.kernels import Doubles, Floats


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A weighted sum of features, none of which may be missing.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        weights: The weight of each feature.
    """

    feature_names: tuple[str, ...]
    weights: Doubles

    def __post_init__(self) -> None:
        _require(self.weights.shape == (len(self.feature_names),), "arrays differ in length")
        _require(bool(np.isfinite(self.weights).all()), "a weight is not finite")

    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows in double precision."""
        return np.asarray(X, np.float64) @ self.weights


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Standardized features, then layers with rectified outputs; the last has one output.

    A missing value is the mean of its feature.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        mean: What is subtracted from each feature.
        scale: What it is divided by afterwards.
        layers: The weights (outputs times inputs) and the biases of each layer.
    """

    feature_names: tuple[str, ...]
    mean: Doubles
    scale: Doubles
    layers: tuple[tuple[Floats, Floats], ...]

    def __post_init__(self) -> None:
        width = len(self.feature_names)
        _require(self.mean.shape == self.scale.shape == (width,), "arrays differ in length")
        _require(bool((self.scale > 0).all()), "a scale is not above 0")
        for weights, biases in self.layers:
            _require(weights.shape == (len(biases), width), "a layer has another width")
            width = len(biases)
            _require(
                bool(np.isfinite(weights).all()) and bool(np.isfinite(biases).all()),
                "a weight is not finite",
            )
        _require(width == 1 and len(self.layers) > 0, "it has several outputs")

    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows; the layers compute in single precision, as in training."""
        scaled = (np.asarray(X, np.float64) - self.mean) / self.scale
        values = np.nan_to_num(scaled, nan=0.0).astype(np.float32)
        for number, (weights, biases) in enumerate(self.layers):
            values = values @ weights.T + biases
            if number + 1 < len(self.layers):
                values = np.maximum(values, np.float32(0.0))
        return values[:, 0].astype(np.float64)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise DataError(f"is not a valid model ({problem})", hint="Save the model again.")

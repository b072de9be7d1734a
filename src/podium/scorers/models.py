"""What all fitted models have in common; weighted sums of features, and small networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints
from podium.registry import Registry


class FittedModel(ABC):
    """How rows are scored, in a form that does not depend on who fitted it.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        single_values: Whether its library rounds values to single precision before it compares.
        single_precision: Whether its library adds in single precision, so that its own scores
            differ from the exact sum in the last digits.
        unused: The number of trees after the best iteration, which are left out.
    """

    KINDS: ClassVar[Registry[type[FittedModel]]] = Registry("model")

    takes_missing: ClassVar[bool] = True
    """Whether a value may be missing."""

    writer: ClassVar[str]
    """The method of a target that writes it."""

    feature_names: tuple[str, ...]
    single_values: bool = True
    single_precision: bool = False
    unused: int = 0

    def __init_subclass__(cls) -> None:
        FittedModel.KINDS[cls.__name__] = cls

    @abstractmethod
    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows."""

    @abstractmethod
    def predict_single(self, rows: Doubles) -> Doubles:
        """Score rows as engines do that compute in single precision, to the last digit."""

    @abstractmethod
    def rounding_bound(self, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
        """Return how far each row's score may be off if it is computed in a precision.

        In any order of addition. A sum of n terms that are each rounded, multiplied and added is
        off by at most about n + 2 times half the distance between neighboring numbers, relative to
        the sum of the terms without their signs (Higham, Accuracy and Stability of Numerical
        Algorithms, section 3.1). So the bound follows the terms of each row.

        Args:
            rows: Rows as the model sees them.
            dtype: The precision.
        """

    @abstractmethod
    def largest_number(self) -> tuple[float, str]:
        """Return a bound of its numbers and their sums, and what it bounds, in words."""

    @property
    def largest_shift(self) -> float:
        """The largest constant that engines add to its scores, so that none is negative."""
        return 0.0

    @property
    def leaf_count(self) -> int | None:
        """The number of leaves; None if it has no trees."""
        return None

    def reached_leaves(self, rows: Doubles) -> Ints:
        """Return the numbers of the leaves that any row reaches."""
        del rows
        return np.empty(0, np.int64)

    @abstractmethod
    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return its plain values and its arrays, without the features' names."""

    @classmethod
    @abstractmethod
    def from_content(
        cls, names: tuple[str, ...], values: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the model with this ``content``; any error of Python's for another content."""


@dataclass(frozen=True, eq=False)
class LinearModel(FittedModel):
    """A weighted sum of features, none of which may be missing.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        weights: The weight of each feature.

    Example:
        >>> model = LinearModel(("a", "b"), np.array([1.0, 1e-6]))
        >>> bounds = model.rounding_bound(np.array([[1.0, 0.0], [1e-6, 0.0]]), np.float32)
        >>> print(f"{bounds[0]:.1e} {bounds[1]:.1e}")
        2.4e-07 2.4e-13
    """

    takes_missing = False
    writer = "write_linear"

    feature_names: tuple[str, ...]
    weights: Doubles

    def __post_init__(self) -> None:
        _require(self.weights.shape == (len(self.feature_names),), "arrays differ in length")
        _require(bool(np.isfinite(self.weights).all()), "a weight is not finite")

    def predict(self, X: ArrayLike) -> Doubles:
        """Score rows in double precision."""
        return np.asarray(X, np.float64) @ self.weights

    def predict_single(self, rows: Doubles) -> Doubles:
        """Score rows in single precision, one feature after the other."""
        scores = np.zeros(len(rows), np.float32)
        for column, weight in enumerate(self.weights.astype(np.float32)):
            scores += rows[:, column].astype(np.float32) * weight
        return scores.astype(np.float64)

    def absolute_terms(self, rows: Doubles) -> Doubles:
        """Return the sum of the terms of each row's score, without their signs."""
        with np.errstate(over="ignore"):
            return np.abs(rows) @ np.abs(self.weights)

    def rounding_bound(self, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
        """Return how far each row's score may be off if it is computed in a precision."""
        return sum_bound(len(self.weights), self.absolute_terms(rows), dtype)

    def largest_number(self) -> tuple[float, str]:
        """Return the size of the largest weight."""
        return float(np.abs(self.weights).max(initial=0.0)), "a weight of"

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return its arrays."""
        return {}, {"weights": self.weights}

    @classmethod
    def from_content(
        cls, names: tuple[str, ...], values: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the model with this ``content``."""
        del values
        return cls(names, arrays["weights"].astype(np.float64))


@dataclass(frozen=True, eq=False)
class NetworkModel(FittedModel):
    """Standardized features, then layers with rectified outputs; the last has one output.

    A missing value is the mean of its feature.

    Attributes:
        feature_names: The names of the features, or their numbers from 1.
        mean: What is subtracted from each feature.
        scale: What it is divided by afterwards.
        layers: The weights (outputs times inputs) and the biases of each layer.
    """

    writer = "write_network"

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

    def predict_single(self, rows: Doubles) -> Doubles:
        """Score rows without missing values in single precision."""
        mean, scale = self.mean.astype(np.float32), self.scale.astype(np.float32)
        values: Floats = (rows.astype(np.float32) - mean) / scale
        for number, (weights, biases) in enumerate(self.layers):
            # One input after the other, as engines add: the last digits depend on it.
            sums = np.tile(biases.astype(np.float32), (len(rows), 1))
            for column, weight in enumerate(weights.astype(np.float32).T):
                sums += values[:, [column]] * weight
            if number + 1 < len(self.layers):
                np.maximum(sums, np.float32(0.0), out=sums)
            values = sums
        return values[:, 0].astype(np.float64)

    def rounding_bound(self, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
        """Return how far each row's score may be off; the precision is that of the features.

        The layers are in single precision in either case.
        """
        values = np.nan_to_num((rows - self.mean) / self.scale, nan=0.0)
        # Rounding the mean matters as much as the mean is larger than the scale.
        off = float(np.finfo(dtype).epsneg) * (np.abs(self.mean / self.scale) + 4 * np.abs(values))
        off[np.isnan(rows)] = 0.0
        off += float(np.finfo(np.float32).epsneg) * np.abs(values)
        for number, (weights, biases) in enumerate(self.layers):
            sizes = np.abs(weights.astype(np.float64)).T
            terms = (np.abs(values) + off) @ sizes + np.abs(biases.astype(np.float64))
            off = off @ sizes + sum_bound(weights.shape[1] + 1, terms, np.float32)
            values = values @ weights.astype(np.float64).T + biases
            if number + 1 < len(self.layers):
                values = np.maximum(values, 0.0)
        result: Doubles = off[:, 0]
        return result

    def largest_number(self) -> tuple[float, str]:
        """Return 0: its sums are in single precision where it was trained, too."""
        return 0.0, "a weight of"

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return its arrays."""
        arrays: dict[str, NDArray[Any]] = {"mean": self.mean, "scale": self.scale}
        for number, (weights, biases) in enumerate(self.layers):
            arrays |= {f"weights{number}": weights, f"biases{number}": biases}
        return {}, arrays

    @classmethod
    def from_content(
        cls, names: tuple[str, ...], values: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the model with this ``content``."""
        del values
        layers = tuple(
            (arrays[f"weights{number}"], arrays[f"biases{number}"])
            for number in range((len(arrays) - 2) // 2)
        )
        return cls(names, arrays["mean"], arrays["scale"], layers)


def sum_bound(count: int, terms: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
    """Return how far sums of products may be off, from their terms without signs."""
    precision = np.finfo(dtype)
    share = (count + 2) * float(precision.epsneg)
    if share >= 1:
        return np.full(terms.shape, np.inf)
    # Below the smallest normal number, what is lost is no longer relative to the term.
    return share / (1 - share) * terms + count * float(precision.smallest_subnormal)


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise DataError(f"is not a valid model ({problem})", hint="Save the model again.")

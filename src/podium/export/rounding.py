"""What rounding explains: how far a computed score may be from the exact one, row by row.

A sum of n terms that are each rounded, multiplied and added in any order is off by at most about
n + 2 times half the distance between neighboring numbers, relative to the sum of the terms without
their signs (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). So the bound
follows the terms of each row: it is as small as the scores are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.export.reading import Model
from podium.export.scorers import LinearModel, NetworkModel
from podium.export.trees import TreeModel
from podium.kernels import Doubles


def absolute_terms(model: TreeModel | LinearModel, rows: Doubles) -> Doubles:
    """Return the sum of the terms of each row's score, without their signs."""
    with np.errstate(over="ignore"):
        if isinstance(model, LinearModel):
            return np.abs(rows) @ np.abs(model.weights)
        sizes = np.abs(model.value)
        terms = np.full(len(rows), abs(model.base_score))
        for start in range(0, len(rows), 256):
            terms[start : start + 256] += sizes[model.leaves(rows[start : start + 256])].sum(axis=1)
        return terms


def rounding_bound(model: Model, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
    """Return how far each row's score may be off if it is computed in a precision.

    In any order of addition. The layers of a network are in single precision in either case; the
    precision is that of its standardized features.

    Args:
        model: The model.
        rows: Rows as it sees them.
        dtype: The precision.

    Example:
        >>> model = LinearModel(("a", "b"), np.array([1.0, 1e-6]))
        >>> bounds = rounding_bound(model, np.array([[1.0, 0.0], [1e-6, 0.0]]), np.float32)
        >>> print(f"{bounds[0]:.1e} {bounds[1]:.1e}")
        2.4e-07 2.4e-13
    """
    if isinstance(model, NetworkModel):
        return _network_bound(model, rows, dtype)
    count = model.trees + 1 if isinstance(model, TreeModel) else len(model.weights)
    return _bound(count, absolute_terms(model, rows), dtype)


def _bound(count: int, terms: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
    """Return the bound for sums of products, from their terms without signs."""
    precision = np.finfo(dtype)
    share = (count + 2) * float(precision.epsneg)
    if share >= 1:
        return np.full(terms.shape, np.inf)
    # Below the smallest normal number, what is lost is no longer relative to the term.
    return share / (1 - share) * terms + count * float(precision.smallest_subnormal)


def _network_bound(model: NetworkModel, rows: Doubles, dtype: type[np.floating[Any]]) -> Doubles:
    values = np.nan_to_num((rows - model.mean) / model.scale, nan=0.0)
    # Rounding the mean matters as much as the mean is larger than the scale.
    off = float(np.finfo(dtype).epsneg) * (np.abs(model.mean / model.scale) + 4 * np.abs(values))
    off[np.isnan(rows)] = 0.0
    off += float(np.finfo(np.float32).epsneg) * np.abs(values)
    for number, (weights, biases) in enumerate(model.layers):
        sizes = np.abs(weights.astype(np.float64)).T
        terms = (np.abs(values) + off) @ sizes + np.abs(biases.astype(np.float64))
        off = off @ sizes + _bound(weights.shape[1] + 1, terms, np.float32)
        values = values @ weights.astype(np.float64).T + biases
        if number + 1 < len(model.layers):
            values = np.maximum(values, 0.0)
    result: Doubles = off[:, 0]
    return result

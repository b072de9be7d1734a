"""Which numbers of a model golden rows show: where another number would give another score.

A live check sees scores only. A leaf that no row reaches, a threshold without a row on both sides,
a weight whose term is lost in the rounding of the sum: whatever the engine has there, the scores
are the same. They are counted, so that a check says what it could not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from podium.export.golden import split_edges
from podium.export.golden_kernel import MISSING, mark_shown
from podium.export.targets.base import EngineModel
from podium.kernels import Doubles
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.trees import TreeModel

_NAMED = 5
"""The number of features that are named."""


@dataclass(frozen=True)
class Coverage:
    """What the scores of rows show of a model.

    Attributes:
        numbers: How many numbers the model has: weights, leaves, thresholds.
        shown: For how many of them another number would give a row another score.
        unshown: The others, in words.
    """

    numbers: int
    shown: int
    unshown: tuple[str, ...]


def coverage(engine: EngineModel, values: Doubles) -> Coverage:
    """Return what the scores of rows in an engine show of its model.

    Args:
        engine: What the engine computes.
        values: The rows; NaN is absent.

    Example:
        >>> model = LinearModel(("a", "b"), np.array([1.0, 1e-12]))
        >>> engine = EngineModel(model, np.zeros(2), single_precision=True)
        >>> coverage(engine, np.array([[1.0, 1.0], [2.0, 1.0]])).unshown
        ('1 of 2 weights (b): their terms are less than the rounding of every golden score',)
    """
    return _coverage(engine.model, engine, values)


@singledispatch
def _coverage(model: FittedModel, engine: EngineModel, values: Doubles) -> Coverage:
    raise NotImplementedError(f"coverage of a {type(model).__name__}")


@_coverage.register
def _linear(model: LinearModel, engine: EngineModel, values: Doubles) -> Coverage:
    rows = engine.rows(values)
    terms = np.abs(rows) * _sizes(model.weights)
    steps = _resolution(engine, model.absolute_terms(rows))
    return _counted([("weights", _any(terms > steps[:, None]), model.feature_names)])


def _resolution(engine: EngineModel, terms: Doubles) -> Doubles:
    """Return the change that a sum always shows: two steps between numbers of its size."""
    dtype = np.float32 if engine.single_precision else np.float64
    steps: Doubles = np.spacing(terms.astype(dtype)).astype(np.float64)
    return 2.0 * steps


def _any(shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether any row shows each number."""
    return np.asarray(shown.any(axis=0))


def _sizes(numbers: Doubles) -> Doubles:
    """Return the sizes of numbers; for a 0, in whose place another may be, their mean."""
    sizes = np.abs(np.asarray(numbers, np.float64))
    return np.where(sizes == 0, sizes.mean() or 1.0, sizes) if sizes.size else sizes


def _counted(groups: Sequence[tuple[str, NDArray[np.bool_], Sequence[str]]]) -> Coverage:
    unshown = []
    for what, shown, names in groups:
        hidden = np.flatnonzero(~shown)
        if len(hidden):
            named = ", ".join(names[number] for number in hidden[:_NAMED]) if names else ""
            more = ", ..." if len(hidden) > _NAMED else ""
            unshown.append(
                f"{len(hidden)} of {len(shown)} {what}{f' ({named}{more})' if named else ''}: "
                "their terms are less than the rounding of every golden score"
            )
    numbers = sum(len(shown) for _, shown, _ in groups)
    return Coverage(numbers, sum(int(shown.sum()) for _, shown, _ in groups), tuple(unshown))


@_coverage.register
def _trees(model: TreeModel, engine: EngineModel, values: Doubles) -> Coverage:
    rows = engine.rows(values)
    inner = model.feature >= 0
    leaves = np.zeros(len(inner), np.bool_)
    sides = np.zeros((3, len(inner)), np.bool_)
    sizes = np.zeros(len(inner))
    sizes[~inner] = _sizes(model.value[~inner])
    mark_shown(
        rows, _resolution(engine, model.absolute_terms(rows)), model.roots, model.feature,
        model.threshold, model.left, model.right, model.missing_left, model.strict, model.value,
        sizes, np.stack(split_edges(model)), leaves, sides,
    )  # fmt: skip
    leaf_shown = leaves[~inner]
    plain = inner & (model.category_set < 0)
    split_shown = (sides[0] & sides[1])[plain]
    unshown = []
    if not leaf_shown.all():
        unshown.append(
            f"{np.count_nonzero(~leaf_shown)} of {len(leaf_shown)} leaves: no golden row reaches "
            "them, or their value is less than the rounding of its score"
        )
    if not split_shown.all():
        unshown.append(
            f"{np.count_nonzero(~split_shown)} of {len(split_shown)} thresholds to the last digit: "
            "they have no golden row right on both sides (more of them: --golden-rows)"
        )
    missing = sides[MISSING][inner]
    if np.isnan(rows).any() and not missing.all():
        unshown.append(
            f"{np.count_nonzero(~missing)} of {len(missing)} splits for a missing value: no golden "
            "row without that value comes to them"
        )
    numbers = len(leaf_shown) + len(split_shown)
    return Coverage(numbers, int(leaf_shown.sum() + split_shown.sum()), tuple(unshown))


@_coverage.register
def _network(model: NetworkModel, engine: EngineModel, values: Doubles) -> Coverage:
    """Follow the change of each number to the score, to first order."""
    rows = engine.rows(values)
    outputs = [np.nan_to_num((rows - model.mean) / model.scale, nan=0.0)]
    layers = [(w.astype(np.float64), b.astype(np.float64)) for w, b in model.layers]
    steps = []
    for weights, biases in layers:
        steps.append(_resolution(engine, np.abs(outputs[-1]) @ np.abs(weights).T + np.abs(biases)))
        outputs.append(np.maximum(outputs[-1] @ weights.T + biases, 0.0))
    slope = np.ones((len(rows), 1))  # of the score, by the sums of a layer
    groups: list[tuple[str, NDArray[np.bool_], Sequence[str]]] = []
    for number in reversed(range(len(layers))):
        weights, biases = layers[number]
        shown = np.zeros(weights.shape, np.bool_)
        shown_bias = np.zeros(len(biases), np.bool_)
        sizes, bias_sizes = _sizes(weights), _sizes(biases)
        for row in range(len(rows)):
            change = sizes * np.abs(outputs[number][row])
            needed = _needed(steps[number][row], np.abs(slope[row]), steps[-1][row, 0])
            shown |= change > needed[:, None]
            shown_bias |= bias_sizes > needed
        groups += [
            (f"biases of layer {number}", shown_bias, ()),
            (f"weights of layer {number}", shown.ravel(), ()),
        ]
        slope = slope @ weights
        if number:
            slope = slope * (outputs[number] > 0)
    slope = np.abs(np.where(np.isnan(rows), 0.0, slope))
    for what, change in (
        ("scales", np.abs(outputs[0]) / 2),
        ("means", np.maximum(np.abs(model.mean) / model.scale, 1.0)),
    ):
        groups.append((what, _any(slope * change > steps[-1]), model.feature_names))
    return _counted(groups[::-1])


def _needed(own: Doubles, slope: Doubles, last: float) -> Doubles:
    """Return the change of a layer's sums that the sums and the score both show."""
    with np.errstate(divide="ignore"):
        return np.maximum(own, np.where(slope > 0, last / slope, np.inf))

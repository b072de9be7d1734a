"""The smallest change of one feature that would swap two documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.explain.similarity import within_query_deviation
from podium.kernels import Doubles, Floats
from podium.rankers import Ranker
from podium.rankers.inputs import aligned_dataset
from podium.rankers.integrated_gradients import linear_pieces
from podium.scorers.models import FittedModel, LinearModel, NetworkModel
from podium.scorers.tree_kernel import ZERO
from podium.scorers.trees import TreeModel

_ROUNDING = 1e-6
_LARGEST = np.finfo(np.float32).max
_BLOCK = 1 << 16
"""The number of rows that are scored at a time."""


@dataclass(frozen=True)
class FeatureChange:
    """A change of one feature of one document that swaps it with another.

    Attributes:
        feature: The feature.
        value: Its value now.
        changed: The nearest value with which the document is above the other.
        deviations: The change in standard deviations of the feature within queries; infinite if
            it is constant within all queries.
        score: The score of the document after the change.
        observed: Whether the new value lies within the range of the data.
    """

    feature: str
    value: float
    changed: float
    deviations: float
    score: float
    observed: bool


def smallest_changes(
    ranker: Ranker, data: Dataset, query: str, above: str | int, below: str | int
) -> list[FeatureChange]:
    """Return the smallest change of each feature that would lift a document above another.

    Exact: no value nearer to the present one swaps the documents. For trees all thresholds of the
    feature are tried; for a network, up to its rounding, all pieces on which it is linear, within
    the range of the data.
    Features that are missing, categories, and features without such a value are left out.

    Args:
        ranker: A linear, tree, boosted or neural ranker.
        data: The data, which give the range and the spread of each feature.
        query: The query of both documents.
        above: The document that is above now: its id, or its position in the query.
        below: The one to lift, whose feature is changed.

    Returns:
        The changes, smallest first in standard deviations of the feature within queries.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> data = Dataset.from_arrays([[1.0], [4.0], [2.0]], [0, 2, 1], qid=["q", "q", "q"])
        >>> ranker = LinearRanker("ListNet()").fit(data)
        >>> [change] = smallest_changes(ranker, data, "q", above="1", below="2")
        >>> change.value, round(change.changed, 5)
        (2.0, 4.0)
    """
    explanation = ranker.explain(data, query=query)
    upper, lower = explanation.position(above), explanation.position(below)
    target = float(explanation.scores[upper])
    if not target > explanation.scores[lower]:
        raise ArgumentError(
            f"{explanation.document_ids[upper]!r} is not above {explanation.document_ids[lower]!r}",
            hint="Name the upper document first.",
        )
    if ranker.whole_queries:
        raise ArgumentError(
            "in a cascade, a change moves the other documents, too",
            hint="Ask for the changes of its base or of a reranker.",
        )
    aligned = aligned_dataset(data, ranker.feature_names_)
    row = aligned.features[int(aligned.offsets[_position(aligned, query)]) + lower]
    features = aligned.features
    with np.errstate(invalid="ignore"):
        lowest, highest = (
            np.fmin.reduce(features, axis=0).astype(np.float64),
            np.fmax.reduce(features, axis=0).astype(np.float64),
        )
    deviation = within_query_deviation(aligned)
    search = _Search(ranker, row, target, lowest, highest)
    changes = []
    for column, changed, score in _swaps(ranker.fitted_model(), search):
        step = abs(changed - float(row[column]))
        with np.errstate(divide="ignore"):
            size = float(np.float64(step) / deviation[column])
        inside = bool(lowest[column] <= changed <= highest[column])
        name = ranker.feature_names_[column]
        changes.append(FeatureChange(name, float(row[column]), changed, size, score, inside))
    return sorted(changes, key=lambda change: change.deviations)


def _position(data: Dataset, query: str) -> int:
    return int(data.query_ids.index(query).as_py())


class _Search:
    """Scores a document with one feature changed, and compares the score with the target."""

    def __init__(
        self, ranker: Ranker, row: Floats, target: float, lowest: Doubles, highest: Doubles
    ) -> None:
        self._ranker = ranker
        self.row, self.target, self.lowest, self.highest = row, target, lowest, highest
        categorical = [name in ranker.categories_ for name in ranker.feature_names_]
        self.usable = np.flatnonzero(~np.isnan(row) & ~np.array(categorical))

    def scores(self, columns: NDArray[np.int64], values: Floats) -> Doubles:
        """Score the document with each column changed to the value at the same index."""
        parts = [np.empty(0)]
        for first in range(0, len(columns), _BLOCK):
            some = slice(first, first + _BLOCK)
            rows = np.repeat(self.row[None], len(columns[some]), axis=0)
            rows[np.arange(len(rows)), columns[some]] = values[some]
            data = Dataset.from_arrays(
                rows, np.zeros(len(rows)), group=[len(rows)],
                feature_names=self._ranker.feature_names_,
            )  # fmt: skip
            parts.append(self._ranker.predict(data))
        return np.concatenate(parts)

    def nearest(
        self, columns: NDArray[np.int64], near: Floats, far: Floats
    ) -> tuple[Floats, Doubles]:
        """Return the values nearest to ``near`` that reach the target, and their scores.

        By bisection over single-precision numbers: ``near`` does not reach the target, ``far``
        does, and the score is monotone in between.
        """
        low, high = _ordinal(near), _ordinal(far)
        while np.any(np.abs(high - low) > 1):
            middle = low + (high - low) // 2
            middle = np.where(np.abs(high - low) > 1, middle, high)
            above = self.scores(columns, _number(middle)) > self.target
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        values = _number(high)
        return values, self.scores(columns, values)


@singledispatch
def _swaps(model: FittedModel, _search: _Search) -> Iterator[tuple[int, float, float]]:
    """Yield the column, the nearest value that swaps, and the score with it."""
    raise NotImplementedError(f"changes of a {type(model).__name__}")


@_swaps.register
def _tree_swaps(model: TreeModel, search: _Search) -> Iterator[tuple[int, float, float]]:
    """Try the numbers on both sides of each threshold: between them nothing changes."""
    splits = (model.feature >= 0) & (model.category_set < 0)
    for column in search.usable.tolist():
        thresholds = model.threshold[splits & (model.feature == column)]
        if model.zero_missing[column]:
            thresholds = np.append(thresholds, [-ZERO, ZERO])
        candidates = _neighbors(thresholds)
        if not len(candidates):
            continue
        order = np.argsort(np.abs(candidates - np.float64(search.row[column])), kind="stable")
        values = candidates[order]
        scores = search.scores(np.full(len(values), column), values)
        reached = np.flatnonzero(scores > search.target)
        if len(reached):
            yield column, float(values[reached[0]]), float(scores[reached[0]])


def _neighbors(thresholds: Doubles) -> Floats:
    """Return the finite single-precision numbers next to each threshold, and it if it is one."""
    exact = np.unique(thresholds)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
        sides = [np.nextafter(rounded, np.float32(end)) for end in (-np.inf, np.inf)]
    every: Floats = np.unique(np.concatenate([rounded, *sides]))
    return every[np.isfinite(every)]


@_swaps.register
def _linear_swaps(model: LinearModel, search: _Search) -> Iterator[tuple[int, float, float]]:
    columns = search.usable[model.weights[search.usable] != 0]
    now = search.row[columns].astype(np.float64)
    weights = model.weights[columns]
    gap = search.target - search.scores(columns, search.row[columns])
    # Twice as far as needed, rounded, and one number further is above: a step that is small beside
    # the value would be rounded to none.
    end = np.where(weights > 0, _LARGEST, -_LARGEST).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = np.clip(now + 2 * gap / weights, -_LARGEST, _LARGEST).astype(np.float32)
    far = np.nextafter(rounded, end)
    above = search.scores(columns, far) > search.target
    columns, far = columns[above], far[above]
    values, scores = search.nearest(columns, search.row[columns], far)
    yield from zip(columns.tolist(), values.tolist(), scores.tolist(), strict=True)


@_swaps.register
def _network_swaps(model: NetworkModel, search: _Search) -> Iterator[tuple[int, float, float]]:
    """Walk along the pieces on which the network is linear, in both directions."""
    # The last digits of a network's score depend on the rows that are scored beside it.
    search.target += _ROUNDING * max(1.0, abs(search.target))
    layers = [(weights.astype(np.float64), biases.astype(np.float64)) for weights, biases in
              model.layers]  # fmt: skip
    inputs = np.nan_to_num((search.row - model.mean) / model.scale, nan=0.0)
    sides = []
    for column in search.usable.tolist():
        value = float(search.row[column])
        for end in (search.lowest[column], search.highest[column]):
            if end != value:
                direction = np.zeros(len(inputs))
                direction[column] = (end - value) / model.scale[column]
                times = linear_pieces(layers, inputs, direction)
                sides.append((column, (value + times * (end - value)).astype(np.float32)))
    if not sides:
        return
    # All sides of all features are scored together, and then searched together.
    sizes = [len(ends) for _, ends in sides]
    columns = np.repeat([column for column, _ in sides], sizes)
    above = search.scores(columns, np.concatenate([ends for _, ends in sides])) > search.target
    crossed, near, far = [], [], []
    starts = np.cumsum([0, *sizes])
    for (column, ends), start in zip(sides, starts[:-1], strict=True):
        reached = np.flatnonzero(above[start : start + len(ends)])
        if len(reached) and reached[0] > 0:
            crossed.append(column)
            near.append(ends[reached[0] - 1])
            far.append(ends[reached[0]])
    at = np.array(crossed, np.int64)
    changed, scores = search.nearest(at, np.array(near, np.float32), np.array(far, np.float32))
    distances = np.abs(changed - search.row[at].astype(np.float64))
    for column in np.unique(at).tolist():
        best = min(np.flatnonzero(at == column), key=lambda index: distances[index])
        yield column, float(changed[best]), float(scores[best])


def _ordinal(values: Floats) -> NDArray[np.int64]:
    """Number the single-precision numbers in their order; 0 is that of both zeros."""
    bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _number(ordinals: NDArray[np.int64]) -> Floats:
    """Return the numbers of ``_ordinal``."""
    bits = np.where(ordinals < 0, -ordinals | 0x80000000, ordinals)
    return bits.astype(np.uint32).view(np.float32)

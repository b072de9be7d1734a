"""The mean loss of a query as a function of a linear scorer's weights, summed over blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Self

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles, Ints
from podium.losses import Loss
from podium.losses.base import checked_batch, endless_score
from podium.rankers.base import Training, blocks_of
from podium.rankers.products import add_rows, linear_scores, missing_feature, score_rows
from podium.rankers.whiten import Spread, spread_of
from podium.threads import over_queries

_CACHED = 1 << 19
"""Bytes of features to work on at a time: they stay in a core's own cache."""


class LinearRisk(ABC):
    """What a linear ranker minimises: its value and gradient are all that solvers see.

    Args:
        loss: Of a query's scores.
        queries: How many queries there are.
    """

    def __init__(self, loss: Loss, queries: int) -> None:
        self.loss = loss
        self._queries = queries
        self._count = [0]

    @property
    def evaluations(self) -> int:
        """How often this risk, and others of the same data, were evaluated."""
        return self._count[0]

    def of(self, loss: Loss) -> Self:
        """The risk of another loss on the same data."""
        other = copy(self)
        other.loss = loss
        return other

    def __call__(self, weights: Doubles) -> tuple[float, Doubles]:
        """The mean loss of a query, and its gradient by the weights."""
        value, slope = self.sums(weights)
        self._count[0] += 1
        return value / self._queries, slope / self._queries

    @abstractmethod
    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """The loss of all queries, and its gradient by the weights."""

    @abstractmethod
    def spread(self) -> Spread:
        """How the features vary within queries."""


class BlockRisk(LinearRisk):
    """The risk of data that this process reads block by block."""

    def __init__(self, loss: Loss, data: Training) -> None:
        super().__init__(loss, len(data))
        self._blocks = blocks_of(data)

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """The loss of all queries, and its gradient by the weights."""
        value = 0.0
        slope = np.zeros(len(weights))
        for block in self._blocks:
            if not self.evaluations:
                refuse_missing(block)
            more, steeper = block_risk(self.loss, weights, block)
            value += more
            slope += steeper
        return value, slope

    def spread(self) -> Spread:
        """How the features vary within queries."""
        return reduce(add, (spread_of(self.loss, block) for block in self._blocks))


def block_risk(loss: Loss, weights: Doubles, block: Dataset) -> tuple[float, Doubles]:
    """The loss of a block's queries, and its gradient by the weights.

    Some queries at a time are scored, evaluated and summed, while their features are in the
    processor's cache: from memory, which is what takes the time, they come once and not twice.
    """
    batch = checked_batch(np.zeros(block.rows), block.labels, block.offsets)
    loss.check(batch)
    features, offsets = block.features, batch.offsets
    rows = max(1, _CACHED // max(1, features.strides[0]))

    def part(first: int, last: int) -> Doubles:
        slope = np.zeros(len(weights))
        edges = _cut(offsets, first, last, rows)
        for one, other in pairwise(edges):
            begin, end = offsets[one], offsets[other]
            score_rows(features, weights, batch.scores, begin, end)
            if not np.isfinite(batch.scores[begin:end].sum()):
                raise endless_score()
            loss.evaluate_range(batch, one, other)
            add_rows(features, batch.gradient, slope, begin, end)
        return slope

    slopes = over_queries(part, offsets)
    return float(batch.values.sum()), np.asarray(np.sum(slopes, axis=0))


def _cut(offsets: Ints, first: int, last: int, rows: int) -> list[int]:
    """Where to cut a range of queries so that parts have about so many rows."""
    begin, end = int(offsets[first]), int(offsets[last])
    wanted = np.arange(begin + rows, end, rows)
    inner = first + np.searchsorted(offsets[first : last + 1], wanted)
    return np.unique(np.concatenate(([first], inner, [last]))).tolist()  # type: ignore[no-any-return]


def block_scores(weights: Doubles, block: Dataset) -> Doubles:
    """The scores of a block's rows."""
    return linear_scores(block.features, weights, block.offsets)


def refuse_missing(block: Dataset) -> None:
    """Refuse a block with missing features."""
    if not np.isfinite(block.features).all():
        raise missing_feature()

"""The mean loss of a query as a function of a linear scorer's weights, summed over blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from functools import reduce
from operator import add
from typing import Self

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles
from podium.kernels.specialize import specialize
from podium.losses import Loss
from podium.losses.base import empty_batch, endless_score
from podium.losses.compiled import CompiledLoss
from podium.rankers.base import Training, blocks_of
from podium.rankers.linear_kernels import (
    linear_scores,
    missing_feature,
    risk_of_queries,
    weighted_features,
)
from podium.rankers.preconditioner import Spread, spread_of
from podium.threads import over_queries

_LARGEST = 1e260
"""Weights with a larger sum, times features of single precision, can have scores without end."""


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
    """The loss of a block's queries, and its gradient by the weights."""
    if not np.abs(weights).sum() < _LARGEST:
        raise endless_score()
    offsets = block.offsets
    batch = empty_batch(block.labels, offsets)
    loss.check(batch)
    if not isinstance(loss, CompiledLoss):
        batch.scores[:] = block_scores(weights, block)
        over_queries(lambda first, last: loss.evaluate_range(batch, first, last), offsets)
        return float(batch.values.sum()), weighted_features(block.features, batch.gradient, offsets)
    compiled = specialize(risk_of_queries, {"query_loss": loss.query})

    def part(first: int, last: int) -> tuple[float, Doubles]:
        slope, largest = np.zeros(len(weights)), batch.largest(first, last)
        value = compiled(
            block.features, weights, batch.labels, offsets, first, last,
            slope, np.empty((3, largest)), loss.arguments(largest),
        )  # fmt: skip
        return value, slope

    values, slopes = zip(*over_queries(part, offsets), strict=True)
    return float(np.sum(values)), np.asarray(np.sum(slopes, axis=0))


def block_scores(weights: Doubles, block: Dataset) -> Doubles:
    """The scores of a block's rows."""
    return linear_scores(block.features, weights, block.offsets)


def refuse_missing(block: Dataset) -> None:
    """Refuse a block with missing features."""
    if not np.isfinite(block.features).all():
        raise missing_feature()

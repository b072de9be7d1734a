"""The mean loss per query as a function of a linear scorer's weights, summed over blocks."""

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
from podium.losses.base import empty_batch, nonfinite_score
from podium.losses.compiled import CompiledLoss
from podium.rankers.linear_kernels import (
    linear_scores,
    missing_feature,
    risk_of_queries,
    weighted_features,
)
from podium.rankers.preconditioner import WithinQueryScatter, within_query_scatter
from podium.rankers.sample_weights import FitWeights, evaluate_weighted, weighted_blocks
from podium.rankers.sparse_rows import SparseRows
from podium.rankers.training_data import TrainingData, query_blocks
from podium.threads import for_each_query, over_queries

_MAX_WEIGHT_SUM = 1e260
"""Weights with a larger absolute sum can give infinite scores on single-precision features."""


class LinearRisk(ABC):
    """The empirical risk of a linear scorer; solvers only see its value and gradient.

    Args:
        loss: The loss of a query's scores.
        queries: The number of queries, or the sum of their weights.
    """

    def __init__(self, loss: Loss, queries: float) -> None:
        self.loss = loss
        self._queries = queries
        self._count = [0]

    @property
    def evaluations(self) -> int:
        """The number of evaluations of this risk and of others made by ``with_loss``."""
        return self._count[0]

    def with_loss(self, loss: Loss) -> Self:
        """Return the risk of another loss on the same data."""
        other = copy(self)
        other.loss = loss
        return other

    def __call__(self, weights: Doubles) -> tuple[float, Doubles]:
        """Return the mean loss per query and its gradient with respect to the weights."""
        value, gradient = self.sums(weights)
        self._count[0] += 1
        return value / self._queries, gradient / self._queries

    @abstractmethod
    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """Return the total loss of all queries and its gradient."""

    @abstractmethod
    def scatter(self) -> WithinQueryScatter:
        """Return how the features vary within queries."""


class BlockRisk(LinearRisk):
    """The risk of data in this process, read block by block."""

    def __init__(self, loss: Loss, data: TrainingData, weights: FitWeights | None = None) -> None:
        super().__init__(loss, len(data) if weights is None else weights.total)
        self._blocks = query_blocks(data)
        self._weights = weights

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """Return the total loss of all queries and its gradient."""
        value = 0.0
        gradient = np.zeros(len(weights))
        for block, block_weights in weighted_blocks(self._blocks, self._weights):
            if not self.evaluations:
                require_complete(block)
            block_value, block_gradient = block_risk(self.loss, weights, block, block_weights)
            value += block_value
            gradient += block_gradient
        return value, gradient

    def scatter(self) -> WithinQueryScatter:
        """Return how the features vary within queries."""
        return reduce(add, (within_query_scatter(self.loss, block) for block in self._blocks))


def block_risk(
    loss: Loss, weights: Doubles, block: Dataset, fit_weights: FitWeights | None = None
) -> tuple[float, Doubles]:
    """Return the total loss of a block's queries and its gradient.

    Args:
        loss: The loss.
        weights: Those of the linear scorer.
        block: The queries.
        fit_weights: What their losses are multiplied by.
    """
    if not np.abs(weights).sum() < _MAX_WEIGHT_SUM:
        raise nonfinite_score()
    offsets = block.offsets
    if fit_weights is not None:
        result = evaluate_weighted(loss, block_scores(weights, block), block, fit_weights)
        return result.total, weighted_features(block.features, result.gradient, offsets)
    batch = empty_batch(block.labels, offsets)
    loss.check(batch)
    if not isinstance(loss, CompiledLoss):
        batch.scores[:] = block_scores(weights, block)
        for_each_query(lambda first, last: loss.evaluate_range(batch, first, last), offsets)
        return float(batch.values.sum()), weighted_features(block.features, batch.gradient, offsets)
    compiled = specialize(risk_of_queries, {"query_loss": loss.query})

    def part(first: int, last: int) -> tuple[float, Doubles]:
        gradient, largest = np.zeros(len(weights)), batch.largest(first, last)
        value = compiled(
            block.features, weights, batch.labels, offsets, first, last,
            gradient, np.empty((3, largest)), loss.arguments(largest),
        )  # fmt: skip
        return value, gradient

    values, gradients = zip(*over_queries(part, offsets), strict=True)
    return float(np.sum(values)), np.asarray(np.sum(gradients, axis=0))


def block_scores(weights: Doubles, block: Dataset) -> Doubles:
    """Score the rows of a block."""
    return linear_scores(block.features, weights, block.offsets)


def require_complete(block: Dataset) -> None:
    """Raise a DataError if a block has missing features."""
    if not np.isfinite(block.features).all():
        raise missing_feature()


class SparseRisk(LinearRisk):
    """The risk of a linear scorer on sparse features."""

    def __init__(self, loss: Loss, data: SparseRows, weights: FitWeights | None) -> None:
        super().__init__(loss, len(data) if weights is None else weights.total)
        self._data = data
        self._weights = weights

    def sums(self, weights: Doubles) -> tuple[float, Doubles]:
        """Return the total loss of all queries and its gradient."""
        scores = self._data.features @ weights
        result = evaluate_weighted(self.loss, scores, self._data.queries, self._weights)
        return result.total, np.asarray(self._data.features.T @ result.gradient)

    def scatter(self) -> WithinQueryScatter:
        """Return how the features vary within queries."""
        from scipy import sparse

        features, queries = self._data.features, self._data.queries
        membership = sparse.csr_array(
            (np.ones(queries.rows), np.arange(queries.rows), queries.offsets),
            shape=(len(queries), queries.rows),
        )
        sums = membership @ features
        shares = sparse.diags_array(1.0 / queries.sizes)
        matrix = (features.T @ features - sums.T @ (shares @ sums)).toarray()
        at_ties = self.loss.evaluate(np.zeros(queries.rows), queries.labels, queries.offsets)
        curvature = float(at_ties.curvature.sum())
        return WithinQueryScatter(matrix, curvature, queries.rows, len(queries))

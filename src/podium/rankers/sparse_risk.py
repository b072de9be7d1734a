"""The mean loss per query of a linear scorer on sparse features."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles
from podium.losses import Loss
from podium.rankers.empirical_risk import LinearRisk
from podium.rankers.preconditioner import WithinQueryScatter
from podium.rankers.sample_weights import FitWeights, evaluate_weighted
from podium.rankers.sparse_rows import SparseRows


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

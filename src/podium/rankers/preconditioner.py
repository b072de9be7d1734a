"""A preconditioner for linear rankers: coordinates in which the objective is nearly spherical.

Ranking features are strongly correlated, and L-BFGS spends most of its steps on learning these
correlations. One pass over the data gives the scatter of the features within queries. In whitened
coordinates the top-10 hinge on MQ2007 takes a tenth of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset
from podium.losses import Loss
from podium.rankers.linear_kernels import missing_feature

MAX_FEATURES = 2000
"""With more features, preconditioning costs more than it saves."""

_ROWS_PER_PART = 1 << 14


@dataclass(frozen=True)
class WithinQueryScatter:
    """The scatter of features within queries and the curvature of a loss; blocks add up.

    Attributes:
        matrix: The scatter matrix of the features around the mean of their query.
        curvature: The curvature of the loss at equal scores, summed over rows.
        rows: The number of rows.
        queries: The number of queries.
    """

    matrix: NDArray[np.float64]
    curvature: float
    rows: int
    queries: int

    def __add__(self, other: WithinQueryScatter) -> WithinQueryScatter:
        return WithinQueryScatter(
            self.matrix + other.matrix,
            self.curvature + other.curvature,
            self.rows + other.rows,
            self.queries + other.queries,
        )


def within_query_scatter(loss: Loss, block: Dataset) -> WithinQueryScatter:
    """Return the scatter of one block.

    Example:
        >>> from podium.losses import PairLogistic
        >>> data = Dataset.from_arrays([[0, 0], [10, 1]], labels=[0, 1], group=[2])
        >>> within_query_scatter(PairLogistic(), data).matrix.tolist()
        [[50.0, 5.0], [5.0, 0.5]]
    """
    features = block.features.shape[1]
    matrix = np.zeros((features, features))
    for first in range(0, block.rows, _ROWS_PER_PART):
        # In double precision: a model must not depend on how rows are divided into blocks.
        part = block.features[first : first + _ROWS_PER_PART].astype(np.float64)
        matrix += part.T @ part
    sums = np.add.reduceat(block.features, block.offsets[:-1], axis=0, dtype=np.float64)
    matrix -= (sums / block.sizes[:, None]).T @ sums
    at_ties = loss.evaluate(np.zeros(block.rows), block.labels, block.offsets)
    return WithinQueryScatter(matrix, float(at_ties.curvature.sum()), block.rows, len(block))


def whitening_matrix(scatter: WithinQueryScatter, alpha: float) -> NDArray[np.float64]:
    """Return a matrix S such that the objective is nearly spherical in v, where ``w = S v``.

    It is the inverse root of an estimate of the objective's Hessian: the scatter of the features
    within queries times the mean curvature of the loss at equal scores, plus the penalty.

    Example:
        >>> from podium.losses import PairLogistic
        >>> data = Dataset.from_arrays([[0, 0], [10, 1]], labels=[0, 1], group=[2])
        >>> matrix = whitening_matrix(within_query_scatter(PairLogistic(), data), alpha=0.01)
        >>> steep, flat = np.array([10, 1]) @ matrix, np.array([1, -10]) @ matrix
        >>> bool(np.abs(steep).max() < 3), bool(np.abs(flat).max() > 100)
        (True, True)
    """
    if not np.isfinite(scatter.matrix).all():
        raise missing_feature()
    estimate = scatter.matrix * (scatter.curvature / max(scatter.rows, 1) / max(scatter.queries, 1))
    # Directions that do not vary within queries only have the curvature of the penalty.
    floor = max(alpha, 1e-9 * float(np.trace(estimate)) / len(estimate), 1e-12)
    values, vectors = np.linalg.eigh((estimate + estimate.T) / 2)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + floor))

"""Coordinates in which a linear ranker's objective is nearly round.

Ranking features are strongly correlated, and L-BFGS spends most of its steps on finding that out.
The spread of the features within queries is known from one pass over the data: in coordinates
where it is a unit ball, the top-10 hinge on MQ2007 takes a tenth of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from podium.data import Dataset
from podium.losses import Loss
from podium.rankers.linear_kernels import missing_feature

MOST_FEATURES = 2000
"""With more it would cost more than it saves."""

_ROWS = 1 << 14


@dataclass(frozen=True)
class Spread:
    """How features vary within queries, and how curved a loss is; those of blocks add up.

    Attributes:
        matrix: Products of the features' distances from their query's mean, summed over rows.
        curvature: The loss's curvature at equal scores, summed over rows.
        rows: How many rows.
        queries: How many queries.
    """

    matrix: NDArray[np.float64]
    curvature: float
    rows: int
    queries: int

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.matrix + other.matrix,
            self.curvature + other.curvature,
            self.rows + other.rows,
            self.queries + other.queries,
        )


def spread_of(loss: Loss, block: Dataset) -> Spread:
    """The spread of one block.

    Example:
        >>> from podium.losses import PairLogistic
        >>> data = Dataset.from_arrays([[0, 0], [10, 1]], labels=[0, 1], group=[2])
        >>> spread_of(PairLogistic(), data).matrix.tolist()
        [[50.0, 5.0], [5.0, 0.5]]
    """
    features = block.features.shape[1]
    matrix = np.zeros((features, features))
    for first in range(0, block.rows, _ROWS):
        # In double precision: how rows are divided into blocks must not show in a model.
        part = block.features[first : first + _ROWS].astype(np.float64)
        matrix += part.T @ part
    sums = np.add.reduceat(block.features, block.offsets[:-1], axis=0, dtype=np.float64)
    matrix -= (sums / block.sizes[:, None]).T @ sums
    found = loss.evaluate(np.zeros(block.rows), block.labels, block.offsets)
    return Spread(matrix, float(found.curvature.sum()), block.rows, len(block))


def whitening(spread: Spread, penalty: float) -> NDArray[np.float64]:
    """A matrix S such that the objective is nearly round in v, where ``w = S v``.

    It is the inverse root of an estimate of the objective's curvature: the features' spread within
    queries times the loss's mean curvature at equal scores, plus the penalty.

    Example:
        >>> from podium.losses import PairLogistic
        >>> data = Dataset.from_arrays([[0, 0], [10, 1]], labels=[0, 1], group=[2])
        >>> matrix = whitening(spread_of(PairLogistic(), data), penalty=0.01)
        >>> steep, flat = np.array([10, 1]) @ matrix, np.array([1, -10]) @ matrix
        >>> bool(np.abs(steep).max() < 3), bool(np.abs(flat).max() > 100)
        (True, True)
    """
    if not np.isfinite(spread.matrix).all():
        raise missing_feature()
    estimate = spread.matrix * (spread.curvature / max(spread.rows, 1) / max(spread.queries, 1))
    # What does not vary within queries has no curvature but the penalty's.
    floor = max(penalty, 1e-9 * float(np.trace(estimate)) / len(estimate), 1e-12)
    values, vectors = np.linalg.eigh((estimate + estimate.T) / 2)
    return np.asarray(vectors / np.sqrt(np.maximum(values, 0.0) + floor))

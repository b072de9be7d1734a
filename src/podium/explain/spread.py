"""Features less their mean in each query: what a ranking can depend on."""

from __future__ import annotations

import numpy as np

from podium.data import Dataset
from podium.kernels import Doubles


def centered_columns(data: Dataset, values: Doubles) -> Doubles:
    """Return values less their mean in each query; what is missing becomes 0, the mean.

    Example:
        >>> data = Dataset.from_arrays([[1.0], [3.0], [7.0]], [0, 0, 0], group=[2, 1])
        >>> centered_columns(data, data.features.astype(float)).tolist()
        [[-1.0], [1.0], [0.0]]
    """
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    starts = data.offsets[:-1]
    counts = np.add.reduceat(known.astype(np.float64), starts, axis=0)
    sums = np.add.reduceat(filled, starts, axis=0)
    means = sums / np.maximum(counts, 1)
    return np.asarray(np.where(known, values - means[data.query_of_row], 0.0))


def within_query_deviation(data: Dataset) -> Doubles:
    """Return the standard deviation of each feature within queries, over all rows with a value.

    Example:
        >>> data = Dataset.from_arrays([[1.0, 5], [3.0, 5], [9.0, 6]], [0, 0, 0], group=[2, 1])
        >>> within_query_deviation(data).round(4).tolist()
        [0.8165, 0.0]
    """
    centered = centered_columns(data, data.features.astype(np.float64))
    known = np.maximum((~np.isnan(data.features)).sum(axis=0), 1)
    return np.asarray(np.sqrt((centered**2).sum(axis=0) / known))

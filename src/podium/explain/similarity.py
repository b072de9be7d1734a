"""How features vary within queries, and which repeat each other, by rank correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.kernels import Doubles

_MOST_FEATURES = 5_000
"""With more features, the table of correlations takes hundreds of megabytes."""


@dataclass(frozen=True)
class SimilarPair:
    """Two features and their rank correlation within queries."""

    first: str
    second: str
    correlation: float


def query_correlations(data: Dataset) -> Doubles:
    """Return the rank correlation of each pair of features within queries.

    Values are replaced by their rank among the documents of their query, as a share of their number
    (the mean of equal ones), and ranks are correlated over all rows. So neither differences between
    queries nor the scale of a feature count. A feature that is constant in every query correlates
    with none.

    Example:
        >>> X = [[1, 10], [2, 20], [4, 30], [100, 1], [200, 2]]
        >>> data = Dataset.from_arrays(X, [0] * 5, group=[3, 2])
        >>> query_correlations(data).round(6).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    columns = len(data.feature_names)
    if columns > _MOST_FEATURES:
        raise ArgumentError(
            f"correlations of {columns} features take too much memory",
            hint="Give the groups of features yourself: groups=.",
        )
    ranks = np.stack([_query_ranks(data, column) for column in data.features.T], axis=1)
    centered = centered_columns(data, ranks)
    norms = np.sqrt((centered**2).sum(axis=0))
    centered /= np.where(norms > 1e-9, norms, np.inf)
    return np.asarray(np.clip(centered.T @ centered, -1.0, 1.0))


def similar_pairs(data: Dataset, *, least: float = 0.95) -> list[SimilarPair]:
    """Return the pairs of features that rank documents almost alike, or the opposite way.

    Args:
        data: The data.
        least: The smallest size of the correlation.

    Returns:
        The pairs, the largest correlation first.

    Example:
        >>> X = [[1, 10, 3], [2, 20, 9], [4, 30, 1]]
        >>> data = Dataset.from_arrays(X, [0, 1, 2], group=[3])
        >>> similar_pairs(data)
        [SimilarPair(first='1', second='2', correlation=1.0)]
    """
    checked_correlation(least)
    return pairs_of(data.feature_names, query_correlations(data), least)


def pairs_of(names: tuple[str, ...], table: Doubles, least: float) -> list[SimilarPair]:
    """Return the pairs of a table of correlations, the largest first."""
    rows, columns = np.nonzero(np.triu(np.abs(table) >= least, k=1))
    pairs = [
        SimilarPair(names[row], names[column], round(float(table[row, column]), 6))
        for row, column in zip(rows, columns, strict=True)
    ]
    return sorted(pairs, key=lambda pair: -abs(pair.correlation))


def similar_groups(table: Doubles, least: float) -> list[list[int]]:
    """Group columns so that each two of a group correlate by at least ``least``, by size.

    By hierarchical clustering with complete linkage.
    """
    if len(table) < 2:
        return [[column] for column in range(len(table))]
    # Imported here: it takes a while.
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = 1 - np.abs(table)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="complete")
    numbers = fcluster(tree, 1 - least + 1e-9, criterion="distance")
    groups: dict[int, list[int]] = {}
    for column, number in enumerate(numbers.tolist()):
        groups.setdefault(number, []).append(column)
    return sorted(groups.values())


def checked_correlation(least: float) -> None:
    """Raise an ArgumentError unless a correlation is above 0 and at most 1."""
    if not 0 < least <= 1:
        raise ArgumentError(
            f"a correlation of {least}", hint="Give a number above 0, and at most 1."
        )


def _query_ranks(data: Dataset, column: np.ndarray) -> Doubles:
    """Return each value's rank in its query as a share of the number of documents."""
    query = data.query_of_row
    order = np.lexsort((column, query))
    values, queries = column[order], query[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (values[1:] != values[:-1]) | (queries[1:] != queries[:-1])
    first = np.flatnonzero(new)
    sizes = np.diff(np.append(first, len(order)))
    # Equal values have the mean of their ranks.
    middle = np.repeat(first + (sizes - 1) / 2, sizes)
    ranks = np.empty(len(order))
    ranks[order] = (middle - data.offsets[queries]) / data.sizes[queries]
    return np.where(np.isnan(column), np.nan, ranks)


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

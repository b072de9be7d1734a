"""How the score of a document depends on one feature, within its query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from podium.data import Dataset
from podium.data.frames import html_table, pandas_frame
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Floats
from podium.measures.comparison.statistics import mean_interval
from podium.rankers import Ranker
from podium.rankers.inputs import aligned_dataset
from podium.rankers.parameter_checks import check_integer
from podium.registry import unknown_name


@dataclass(frozen=True, eq=False, repr=False)
class PartialDependence:
    """The mean score of a document for each value of a feature, less the mean of its query.

    Attributes:
        feature: The feature.
        shares: Quantiles of the feature in each query, from 0 (its smallest value) to 1.
        values: The mean over queries of the value at each quantile.
        effects: The mean over queries of the score with that value, less the query's mean score.
        low: The lower ends of its 95 % intervals over queries, or the mean if all are equal.
        high: The upper ends.
    """

    feature: str
    shares: Doubles
    values: Doubles
    effects: Doubles
    low: Doubles
    high: Doubles

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per quantile."""
        return pa.table(
            {
                "quantile": self.shares,
                "value": self.values,
                "effect": self.effects,
                "low": self.low,
                "high": self.high,
            }
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per quantile."""
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow(), caption=repr(self), rows=100)

    def __repr__(self) -> str:
        span = float(self.effects.max() - self.effects.min())
        return f"PartialDependence({self.feature!r}, {len(self.shares)} points, span {span:.4g})"


def partial_dependence(
    ranker: Ranker, data: Dataset, feature: str, *, points: int = 11
) -> PartialDependence:
    """Return how the score of a document depends on a feature within its query.

    Each document in turn takes a value that the feature has in its own query, from the smallest to
    the largest, while the other documents stay as they are. So no document takes a value that its
    query does not have.

    Args:
        ranker: A fitted ranker; not a cascade.
        data: The data.
        feature: The name of the feature.
        points: The number of quantiles, at least 2.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> data = Dataset.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3])
        >>> ranker = LinearRanker("ListNet()").fit(data)
        >>> dependence = partial_dependence(ranker, data, "1", points=3)
        >>> (dependence.effects / ranker.coef_[0]).round(6).tolist()
        [-1.0, 0.0, 1.0]
    """
    if ranker.whole_queries:
        raise ArgumentError(
            "the rank in a cascade depends on the other documents, too",
            hint="Give its base or one of its rerankers.",
        )
    check_integer("points", points, minimum=2)
    if feature not in ranker.feature_names_:
        raise unknown_name("feature", feature, ranker.feature_names_)
    rows = aligned_dataset(data, ranker.feature_names_)
    column = ranker.feature_names_.index(feature)
    shares = np.linspace(0, 1, points)
    grid = np.stack([_query_quantiles(query.features[:, column], shares) for query in rows])
    has_value = ~np.isnan(grid[:, 0])
    if not has_value.any():
        raise DataError(f"the feature {feature!r} is always missing", hint="Give another.")
    means = _query_means(rows, ranker.predict(rows))
    effects = []
    for values in grid.T:
        features = rows.features.copy()
        features[:, column] = values[rows.query_of_row]
        changed = ranker.predict(replace(rows, features=features))
        difference = (_query_means(rows, changed) - means)[has_value]
        effects.append(mean_interval(difference))
    middle, low, high = np.array(effects).T
    low, high = (np.where(np.isnan(ends), middle, ends) for ends in (low, high))  # no spread
    return PartialDependence(feature, shares, grid[has_value].mean(axis=0), middle, low, high)


def _query_quantiles(values: Floats, shares: Doubles) -> Doubles:
    """Return values that occur, at some shares of their order; NaN if all are missing."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return np.full(len(shares), np.nan)
    return np.asarray(known[np.rint(shares * (len(known) - 1)).astype(np.int64)], np.float64)


def _query_means(data: Dataset, values: Doubles) -> Doubles:
    return np.asarray(np.add.reduceat(values, data.offsets[:-1]) / data.sizes)

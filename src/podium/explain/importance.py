"""What matters: the measure that is lost when a feature says nothing within queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from podium.data import Dataset
from podium.data.frames import html_table, pandas_frame
from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.explain.similarity import (
    SimilarPair,
    checked_correlation,
    pairs_of,
    query_correlations,
    similar_groups,
)
from podium.kernels import Ints
from podium.measures import Conventions, evaluate
from podium.measures.comparison.statistics import mean_interval
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers import Ranker
from podium.rankers.inputs import aligned_dataset
from podium.rankers.parameter_checks import check_integer
from podium.registry import unknown_name
from podium.reports.page import interval_text


@dataclass(frozen=True)
class GroupImportance:
    """The importance of a feature, or of features that were permuted together.

    Attributes:
        features: Their names.
        importance: How much of the measure is lost, as a mean over queries and permutations.
        low: The lower end of its interval; NaN if no two queries lose unlike amounts.
        high: The upper end.
        unused: Whether no permutation changed any score.
    """

    features: tuple[str, ...]
    importance: float
    low: float
    high: float
    unused: bool

    @property
    def interval(self) -> str:
        """The interval as it is printed."""
        return interval_text(self.low, self.high, "+")


@dataclass(frozen=True, eq=False, repr=False)
class Importance:
    """What each feature is worth to a ranker on some data.

    Attributes:
        measure: The measure.
        value: Its mean with all features as they are.
        groups: The features, or groups of them, the most important first.
        similar: The pairs of features whose correlation put them into one group.
        queries: The number of queries that have a value.
        repeats: The number of permutations of each query.
        level: The level of the intervals.
    """

    measure: str
    value: float
    groups: tuple[GroupImportance, ...]
    similar: tuple[SimilarPair, ...]
    queries: int
    repeats: int
    level: float

    @property
    def unused(self) -> tuple[str, ...]:
        """The features whose permutation changed no score."""
        return tuple(name for group in self.groups if group.unused for name in group.features)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per group of features, the most important first."""
        return pa.table(
            {
                "features": [", ".join(group.features) for group in self.groups],
                "importance": [group.importance for group in self.groups],
                "low": [group.low for group in self.groups],
                "high": [group.high for group in self.groups],
                "unused": [group.unused for group in self.groups],
            }
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per group of features."""
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow(), caption=repr(self), rows=100)

    def __repr__(self) -> str:
        return (
            f"Importance({self.measure}={self.value:.4g}, {len(self.groups)} groups of features, "
            f"{self.queries} queries)"
        )


def permutation_importance(
    ranker: Ranker,
    data: Dataset,
    measure: str | Measure = "nDCG@10",
    *,
    repeats: int = 10,
    correlation: float | None = 0.9,
    groups: Sequence[Sequence[str]] | None = None,
    conventions: Conventions | str | None = None,
    level: float = 0.95,
    random_state: int = 0,
) -> Importance:
    """Return how much of a measure is lost when a feature is permuted within queries.

    Within a query a permuted feature has the same values, but says nothing about its documents.
    Features that repeat each other are permuted together: alone, each would seem to be worth
    nothing, because the others stand in for it. The importance of a query is the mean over its
    permutations; intervals are Student's over queries, and so contain the chance of both.

    Args:
        ranker: A fitted ranker.
        data: Queries that the ranker was not fitted on, or what it has learned by heart counts.
        measure: The measure. One for which smaller is better is lost when it grows.
        repeats: The number of permutations of each query.
        correlation: Features are permuted together if each two of them have at least this rank
            correlation within queries, by size. None for each feature alone.
        groups: Names of features to permute together instead; others are permuted alone.
        conventions: The conventions of the measure.
        level: The level of the intervals.
        random_state: The seed of the permutations.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((500, 2))
        >>> data = Dataset.from_arrays(X, np.round(4 * X[:, 0]), group=[10] * 50)
        >>> train, test = data.split(0.5, 0.5)
        >>> result = permutation_importance(LinearRanker().fit(train), test, repeats=3)
        >>> [group.features for group in result.groups]
        [('1',), ('2',)]
        >>> bool(result.groups[0].low > 0.1), bool(abs(result.groups[1].importance) < 0.02)
        (True, True)
    """
    check_integer("repeats", repeats)
    if not 0 < level < 1:
        raise ArgumentError(f"level is {level}", hint="Give a number between 0 and 1.")
    rows = aligned_dataset(data, ranker.feature_names_)
    columns, similar = _groups(rows, correlation, groups)
    scores = ranker.predict(rows)
    before = evaluate(measure, rows, scores, conventions=conventions)
    values = before[measure]
    counted = ~np.isnan(values)
    if not counted.any():
        raise DataError(f"no query has a value of {measure}", hint="Check the labels.")
    sign = 1.0 if parse_measure(measure).larger_is_better else -1.0
    results = []
    for number, group in enumerate(columns):
        lost = np.zeros(len(rows))
        changed = False
        for repeat in range(repeats):
            order = _permutation(rows, generator(random_state, number, repeat))
            features = rows.features.copy()
            features[:, group] = rows.features[order][:, group]
            permuted = replace(rows, features=features)
            permuted_scores = ranker.predict(permuted)
            changed = changed or not np.array_equal(permuted_scores, scores)
            after = evaluate(measure, rows, permuted_scores, conventions=conventions)
            lost += sign * (values - after[measure]) / repeats
        names = tuple(rows.feature_names[column] for column in group)
        ends = mean_interval(lost[counted], level)
        results.append(GroupImportance(names, *ends, unused=not changed))
    results.sort(key=lambda group: -group.importance)
    return Importance(
        str(measure),
        float(values[counted].mean()),
        tuple(results),
        tuple(similar),
        int(counted.sum()),
        repeats,
        level,
    )


def _groups(
    data: Dataset, correlation: float | None, groups: Sequence[Sequence[str]] | None
) -> tuple[list[list[int]], list[SimilarPair]]:
    names = data.feature_names
    if groups is not None:
        column_of = {name: column for column, name in enumerate(names)}
        columns = []
        for group in groups:
            for name in group:
                if name not in column_of:
                    raise unknown_name("feature", name, names)
            columns.append([column_of[name] for name in group])
        named = [column for group in columns for column in group]
        if len(set(named)) < len(named) or not all(columns):
            raise ArgumentError(
                "a group is empty, or a feature is in two groups", hint="Name each feature once."
            )
        return columns + [[each] for each in range(len(names)) if each not in set(named)], []
    if correlation is None:
        return [[column] for column in range(len(names))], []
    checked_correlation(correlation)
    table = query_correlations(data)
    together = similar_groups(table, correlation)
    group_of = {column: number for number, group in enumerate(together) for column in group}
    position = {name: column for column, name in enumerate(names)}
    pairs = [
        pair
        for pair in pairs_of(names, table, correlation)
        if group_of[position[pair.first]] == group_of[position[pair.second]]
    ]
    return together, pairs


def _permutation(data: Dataset, random: np.random.Generator) -> Ints:
    """Return the rows in a random order within each query."""
    return np.lexsort((random.random(data.rows), data.query_of_row))

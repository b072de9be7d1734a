"""``sample_weight`` of a fit: a weight for each query, or for each row.

The weight of a query multiplies its loss, gradient and curvature, for every loss. What counts rows
and not their loss is as it would be without weights: the bins of LightGBM's features and the least
number of rows of its leaves, and the number of queries in a batch of NeuralRanker. Weights of rows
that are equal within each query are weights of queries. What others mean depends on the loss
(``Loss.row_weighting``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from podium.data import Dataset, ShardSet
from podium.data.grouping import Strings, group_rows
from podium.data.query_weights import QueryWeights, checked_weights, query_weights
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.losses import Loss
from podium.losses.base import LossValues
from podium.rankers.position_term import PositionTerm

SampleWeight: TypeAlias = QueryWeights
"""One weight per query or per row; their number decides which. Or ``{query id: weight}``, as a
dictionary or a pandas Series."""


@dataclass(frozen=True)
class FitWeights:
    """The weights of a fit.

    Attributes:
        queries: The weight of each query; the mean of its rows' weights if those differ.
        rows: The weight of each row, only if weights differ within a query.
        position: What the loss adds to the scores of rows, by the rank at which they were shown.
    """

    queries: Doubles
    rows: Doubles | None = None
    position: PositionTerm | None = None

    @property
    def total(self) -> float:
        """The sum of the queries' weights, which takes the place of their number."""
        return float(self.queries.sum())

    def of_rows(self, offsets: Ints) -> Doubles:
        """Return the weight of each row."""
        if self.rows is not None:
            return self.rows
        return np.repeat(self.queries, np.diff(offsets))

    def argument(self) -> tuple[str, Doubles]:
        """Return the argument of ``Loss.evaluate`` that takes them, and its value."""
        if self.rows is not None:
            return "row_weights", self.rows
        return "query_weights", self.queries

    def select(self, queries: Ints, offsets: Ints) -> FitWeights:
        """Return the weights of some queries of data with these offsets."""
        if self.rows is None and self.position is None:
            return FitWeights(self.queries[queries])
        rows = np.concatenate([np.arange(offsets[query], offsets[query + 1]) for query in queries])
        return FitWeights(
            self.queries[queries],
            None if self.rows is None else self.rows[rows],
            None if self.position is None else self.position.select(rows),
        )

    def without_position(self) -> FitWeights:
        """Return the weights alone."""
        return FitWeights(self.queries, self.rows)

    def relative_to(self, mean: float) -> FitWeights:
        """Return the weights divided by a mean."""
        rows = None if self.rows is None else self.rows / mean
        return FitWeights(self.queries / mean, rows, self.position)

    def require_queries_only(self, what: str) -> None:
        """Raise an ArgumentError if weights differ within a query."""
        if self.rows is not None:
            raise ArgumentError(
                f"{what} has no weights of single rows, and weights differ within a query",
                hint="Give one weight per query, or the same weight to all rows of a query.",
            )


def evaluate_weighted(
    loss: Loss,
    scores: ArrayLike,
    data: Dataset,
    weights: FitWeights | None,
    out: tuple[Doubles, Doubles] | None = None,
) -> LossValues:
    """Evaluate a loss with the weights and the offsets of a fit, if it has any."""
    options = {} if weights is None else dict([weights.argument()])
    if weights is not None and weights.position is not None:
        scores = weights.position.shifted(scores)
    return loss.evaluate(scores, data.labels, data.offsets, out=out, **options)


def weighted_blocks(
    blocks: Iterable[Dataset], weights: FitWeights | None
) -> Iterator[tuple[Dataset, FitWeights | None]]:
    """Yield each block of the data with its weights, if there are any."""
    query = row = 0
    for block in blocks:
        if weights is None:
            yield block, None
            continue
        own = slice(row, row + block.rows)
        rows = None if weights.rows is None else weights.rows[own]
        position = None if weights.position is None else weights.position.select(own)
        yield block, FitWeights(weights.queries[query : query + len(block)], rows, position)
        query += len(block)
        row += block.rows


def fit_weights(sample_weight: SampleWeight, data: Dataset | ShardSet, qid: Any) -> FitWeights:
    """Return the weights of a fit in the order of its data.

    Args:
        sample_weight: As the caller gave it.
        data: The data, grouped by query.
        qid: The query of each row as the caller gave it, in any order; None if the data were
            grouped already.
    """
    if isinstance(sample_weight, Mapping) or _is_series_of_queries(sample_weight, data):
        return FitWeights(query_weights(sample_weight, _query_ids(data)))
    array = checked_weights(sample_weight)
    if len(array) == len(data):
        return FitWeights(array)
    if len(array) != data.rows:
        raise DataError(
            f"{len(array)} weights for {len(data)} queries with {data.rows} rows",
            hint="Give one per query, or one per row.",
        )
    if not isinstance(data, Dataset):
        raise ArgumentError("a shard set has no weights of rows", hint="Give one per query.")
    order = None if qid is None else group_rows(qid).order
    rows = array if order is None else array[order]
    begins = data.offsets[:-1]
    largest, smallest = (each.reduceat(rows, begins) for each in (np.maximum, np.minimum))
    if np.array_equal(largest, smallest):
        return FitWeights(largest)
    return FitWeights(np.add.reduceat(rows, begins) / data.sizes, rows)


def _is_series_of_queries(weights: Any, data: Dataset | ShardSet) -> bool:
    """Return whether weights are a pandas Series by query; one per row is in the order of rows."""
    if not (hasattr(weights, "index") and hasattr(weights, "to_dict")):
        return False
    is_per_row = len(weights) == data.rows
    if is_per_row and (weights.index.dtype.kind in "iuf" or str(weights.index[0]).isdigit()):
        return False  # numbers may well be those of rows, whatever ids queries have
    names, ids = set(map(str, weights.index)), set(_query_ids(data).to_pylist())
    if is_per_row:
        return len(names) == len(weights) and ids <= names
    # An index that has nothing to do with the ids, such as numbers of rows, gives only an order.
    return not ids.isdisjoint(names)


def without_zero_weights(
    data: Dataset | ShardSet, weights: FitWeights
) -> tuple[Dataset | ShardSet, FitWeights]:
    """Leave out queries of weight 0, which would count in bins and sizes of leaves."""
    if not isinstance(data, Dataset) or weights.queries.all():
        return data, weights
    chosen = np.flatnonzero(weights.queries)
    return data.select(chosen), weights.select(chosen, data.offsets)


def _query_ids(data: Dataset | ShardSet) -> Strings:
    if isinstance(data, Dataset):
        return data.query_ids
    return pa.concat_arrays([block.query_ids for block in data.blocks()])

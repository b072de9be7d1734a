"""Fusion of runs: their votes as a matrix by document id, and the aggregate as a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from podium.aggregation.kemeny_solver import KemenyOrders
from podium.data import Rankings
from podium.data.grouping import Strings, group_rows
from podium.data.ids import match_rows
from podium.data.sources import TableSource, as_rankings
from podium.errors import DataError
from podium.kernels import Doubles, Ints


@dataclass(frozen=True, eq=False, repr=False)
class StackedRuns:
    """Several aligned runs: all documents that any of them returned.

    Attributes:
        votes: A row for each document of a query, a column for each run; NaN where the run did
            not return it.
        offsets: Where each query's rows begin, and the number of rows last.
        query_ids: An id for each query.
        document_ids: An id for each row.
    """

    votes: Doubles
    offsets: Ints
    query_ids: Strings
    document_ids: Strings

    def rankings(self, scores: Doubles, *, name: str = "podium") -> Rankings:
        """Return scores of the rows as a run."""
        return Rankings(
            query_ids=self.query_ids,
            offsets=self.offsets,
            document_ids=self.document_ids,
            scores=np.asarray(scores, np.float64),
            name=name,
        )


def stack_runs(runs: Sequence[Rankings]) -> StackedRuns:
    """Align runs by query and document id; a run may lack queries and documents.

    Example:
        >>> first = Rankings.from_columns(["q", "q"], ["a", "b"], [0.3, 0.7])
        >>> second = Rankings.from_columns(["q", "q"], ["b", "c"], [9, 8])
        >>> stacked = stack_runs([first, second])
        >>> stacked.document_ids.to_pylist(), stacked.votes.tolist()
        (['a', 'b', 'c'], [[0.3, nan], [0.7, 9.0], [nan, 8.0]])
    """
    if not runs:
        raise DataError("there are no runs", hint="Give at least one.")
    grouping = group_rows(pa.concat_arrays([run.query_id_of_row() for run in runs]))
    documents = pa.concat_arrays([run.document_ids for run in runs])
    scores = np.concatenate([run.scores for run in runs])
    columns = np.repeat(np.arange(len(runs)), [run.rows for run in runs])
    if grouping.order is not None:
        documents = documents.take(pa.array(grouping.order))
        scores, columns = scores[grouping.order], columns[grouping.order]
    same = match_rows(documents, grouping.offsets, documents, grouping.offsets)
    kept = np.flatnonzero(same == np.arange(len(same)))
    row_of = np.cumsum(same == np.arange(len(same))) - 1
    votes = np.full((len(kept), len(runs)), np.nan)
    votes[row_of[same], columns] = scores
    return StackedRuns(
        votes,
        np.searchsorted(kept, grouping.offsets).astype(np.int64),
        grouping.query_ids,
        pc.take(documents, pa.array(kept)),
    )


def fuse(
    runs: Sequence[Rankings | TableSource],
    aggregate: Callable[..., Doubles | KemenyOrders],
    *,
    name: str = "fused",
    **options: Any,
) -> Rankings:
    """Aggregate runs over overlapping documents into one run.

    Args:
        runs: A system's documents and scores for each query, by id: rankings, a file, a dictionary
            ``{query: {document: score}}`` or a table, as `evaluate` takes them.
        aggregate: A function of ``podium.aggregation``, or one with the same arguments.
        name: The new run's name.
        **options: Further arguments of the aggregation: ``ranker_weights``, ``unranked``, …

    Example:
        >>> from podium.aggregation import reciprocal_rank
        >>> lexical = Rankings.from_columns(["q", "q"], ["a", "b"], [12.5, 11.0])
        >>> dense = Rankings.from_columns(["q", "q"], ["b", "c"], [0.9, 0.8])
        >>> fused = fuse([lexical, dense], reciprocal_rank, rank_constant=60)
        >>> dict(zip(fused.document_ids.to_pylist(), fused.scores.round(4).tolist()))
        {'a': 0.0164, 'b': 0.0325, 'c': 0.0161}
    """
    stacked = stack_runs([as_rankings(run) for run in runs])
    aggregated = aggregate(stacked.votes, stacked.offsets, **options)
    scores = aggregated.scores if isinstance(aggregated, KemenyOrders) else aggregated
    return stacked.rankings(scores, name=name)

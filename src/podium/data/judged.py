"""Judgments (TREC qrels), rankings (TREC runs), and their join by id."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from podium.data.frames import filled
from podium.data.grouping import Strings, as_strings, group_rows
from podium.data.ids import match_rows
from podium.data.numbers import as_numbers
from podium.data.query_rows import QueryRows, ordered_columns, take_rows
from podium.errors import DataError
from podium.kernels import Doubles, Floats, Ints


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Judgments(QueryRows):
    """Relevance judgments by id: a label for each judged document of a query.

    Example:
        >>> Judgments.from_columns(["q1", "q1"], ["a", "b"], [2, 0])
        Judgments(1 queries, 2 rows)
    """

    ROW_FIELDS: ClassVar = ("document_ids", "labels")

    document_ids: Strings
    labels: Floats

    @classmethod
    def from_columns(cls, query_ids: Any, document_ids: Any, labels: ArrayLike) -> Judgments:
        """Create judgments from three columns, rows in any order, one row per document."""
        values = finite(labels, np.float32, "labels")
        return cls(**_columns(query_ids, document_ids, labels=values))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rankings(QueryRows):
    """The output of a system: scored documents for each query, larger is better.

    Attributes:
        name: The system's name (the tag of a TREC run).
        contradicted: Ids of the queries that the ranks in the file order otherwise than the scores
            do, which count; None if there are none, or no ranks.

    Example:
        >>> run = Rankings.from_columns(["q1", "q1"], ["a", "b"], [0.3, 0.7], name="bm25")
        >>> run, run.name
        (Rankings(1 queries, 2 rows), 'bm25')
    """

    ROW_FIELDS: ClassVar = ("document_ids", "scores")

    document_ids: Strings
    scores: Doubles
    name: str = "podium"
    contradicted: Strings | None = None

    @classmethod
    def from_columns(
        cls,
        query_ids: Any,
        document_ids: Any,
        scores: ArrayLike,
        *,
        ranks: Doubles | None = None,
        name: str = "podium",
    ) -> Rankings:
        """Create rankings from three columns, rows in any order, one row per document.

        Scores are stored as float64; integers that it cannot represent are errors, because
        documents with different scores would be tied. Ranks are compared with the scores, and
        otherwise ignored.
        """
        values = finite(scores, np.float64, "scores")
        _refuse_rounded(scores, values)
        columns = _columns(query_ids, document_ids, scores=values, ranks=ranks)
        ranks = columns.pop("ranks")
        rankings = cls(**columns, name=name)
        if ranks is not None:
            queries = _contradicted(ranks, rankings.scores, rankings.offsets)
            if len(queries):
                return replace(rankings, contradicted=rankings.query_ids.take(queries))
        return rankings

    def join(self, judgments: Judgments) -> Joined:
        """Look up the label of every ranked document, for the judged queries.

        Example:
            >>> run = Rankings.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [0.3, 0.7, 1])
            >>> joined = run.join(Judgments.from_columns(["q1", "q1"], ["a", "c"], [2, 1]))
            >>> joined.labels.tolist(), joined.judged_labels.tolist(), joined.dropped_queries
            ([2.0, nan], [2.0, 1.0], 1)
        """
        matched = pc.index_in(judgments.query_ids, value_set=self.query_ids)
        positions = filled(matched, -1)
        ranked = np.flatnonzero(positions >= 0)
        sizes = np.zeros(len(judgments), np.int64)
        sizes[ranked] = self.sizes[positions[ranked]]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        begins = np.zeros(len(judgments), np.int64)
        begins[ranked] = self.offsets[positions[ranked]]
        rows = np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])
        document_ids = take_rows(self.document_ids, rows)
        matches = match_rows(document_ids, offsets, judgments.document_ids, judgments.offsets)
        labels = np.where(matches >= 0, judgments.labels[matches], np.float32(np.nan))
        return Joined(
            query_ids=judgments.query_ids,
            offsets=offsets,
            document_ids=document_ids,
            scores=self.scores[rows],
            labels=labels,
            judged_labels=judgments.labels,
            judged_offsets=judgments.offsets,
            dropped_queries=len(self) - len(ranked),
        )


@dataclass(frozen=True, eq=False)
class Joined:
    """Rankings with the labels of their documents, one entry for each judged query.

    Attributes:
        query_ids: The judged queries.
        offsets: Where each query's ranked rows begin; a query missing from the run has none.
        document_ids: Ids of the ranked rows.
        scores: Scores of the ranked rows.
        labels: Labels of the ranked rows; NaN for unjudged documents.
        judged_labels: The labels of all judged documents, ranked or not.
        judged_offsets: Where each query's judged documents begin.
        dropped_queries: Number of queries of the run that were dropped as unjudged.
    """

    query_ids: Strings
    offsets: Ints
    document_ids: Strings
    scores: Doubles
    labels: Floats
    judged_labels: Floats
    judged_offsets: Ints
    dropped_queries: int


def finite(values: ArrayLike, dtype: type, what: str) -> Any:
    """Convert to an array of finite numbers; the error names the first that is not finite."""
    numbers = as_numbers(values, dtype, what, dimensions=1)
    good = np.isfinite(numbers)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(f"{what} of row {row} is {numbers[row]}", hint="Give finite numbers.")
    return numbers


def _refuse_rounded(scores: ArrayLike, values: Doubles) -> None:
    """Reject integers that float64 cannot represent exactly."""
    original = np.asarray(scores)
    if original.dtype.kind not in "iu":
        return
    large = np.flatnonzero(np.abs(values) >= 2**53).tolist()
    row = next((row for row in large if int(values[row]) != int(original[row])), None)
    if row is not None:
        raise DataError(
            f"score {original[row]} of row {row} is an integer that float64 cannot represent",
            hint="Subtract the smallest score from all, e.g. from time stamps in nanoseconds.",
        )


def _contradicted(ranks: Doubles, scores: Doubles, offsets: Ints) -> Ints:
    """Find the queries with a document of a worse rank and a larger score than another one."""
    unsorted = (ranks[1:] < ranks[:-1]) | (scores[1:] > scores[:-1])
    unsorted[offsets[1:-1] - 1] = False  # between two queries
    if not unsorted.any():  # as almost every file is
        return np.arange(0)
    queries = np.unique(np.searchsorted(offsets, np.flatnonzero(unsorted), side="right") - 1)
    sizes = np.diff(offsets)[queries]
    rows = np.repeat(offsets[queries] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    of_row = np.repeat(queries, sizes)
    order = np.lexsort((ranks[rows], -scores[rows], of_row))
    falls = (np.diff(ranks[rows][order]) < 0) & (np.diff(of_row) == 0)
    return np.unique(of_row[:-1][falls])


def _columns(query_ids: Any, document_ids: Any, **values: Any) -> dict[str, Any]:
    grouping = group_rows(query_ids)
    documents = as_strings(document_ids, "document ids")
    if documents.null_count:
        raise DataError("a document id is missing", hint="Give every row a document id.")
    columns = ordered_columns(grouping, {"document_ids": documents, **values})
    fields = {"query_ids": grouping.query_ids, "offsets": grouping.offsets, **columns}
    first_rows = match_rows(
        columns["document_ids"], grouping.offsets, columns["document_ids"], grouping.offsets
    )
    repeated = np.flatnonzero(first_rows != np.arange(len(first_rows)))
    if len(repeated):
        row = int(repeated[0])
        query = int(np.searchsorted(grouping.offsets, row, side="right")) - 1
        raise DataError(
            f"document {columns['document_ids'][row].as_py()!r} is listed twice in query "
            f"{grouping.query_ids[query].as_py()!r}",
            hint="Keep one row per document.",
        )
    return fields

"""Queries and documents as texts, grouped by query."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from podium.data import Dataset
from podium.data.frames import arrow_table, is_frame
from podium.data.grouping import group_rows, group_sizes, ungrouped_rows
from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError
from podium.rankers.inputs import with_query_column
from podium.rankers.position_term import PositionTerm

Pair: TypeAlias = tuple[str, str]
"""A query and a document."""

_QUERY_COLUMNS = ("query", "query_text")
_DOCUMENT_COLUMNS = ("document", "text", "document_text", "passage")


@dataclass(frozen=True)
class TextPairs:
    """Labeled pairs of a query and a document, those of one query together.

    Attributes:
        queries: Labels and queries of the rows; it has no features.
        pairs: The texts of each row.
        position: What the loss adds to the scores of rows, by the rank at which they were shown.
    """

    queries: Dataset
    pairs: list[Pair]
    position: PositionTerm | None = None

    @classmethod
    def from_rows(
        cls, X: Any, y: Any, *, qid: Any, group: Any, position: Any = None,
        position_regularization: float | None = None,
    ) -> TextPairs:  # fmt: skip
        """Create them from rows in any order.

        Args:
            X: Pairs of texts, or a data frame with columns ``query`` and ``document``.
            y: One label per row.
            qid: One query id per row; by default the column ``qid`` of a data frame; or
            group: the number of rows of each query.
            position: The rank at which each row was shown, if labels are clicks.
            position_regularization: The weight of an L2 penalty of each row's offset.
        """
        if position is None and position_regularization is not None:
            raise ArgumentError(
                "offsets of ranks are regularized, but there are none",
                hint="Give fit position=, the rank at which each row was shown.",
            )
        pairs = read_pairs(X)
        labels = as_numbers(y, np.float32, "labels", dimensions=1)
        if not np.isfinite(labels).all():
            raise DataError("a label is NaN or infinite", hint="Give finite labels.")
        if len(labels) != len(pairs):
            raise DataError(
                f"{len(pairs)} pairs of texts for {len(labels)} labels",
                hint="Give one for each row.",
            )
        if qid is None and group is None:  # a data frame may have other columns, such as this one
            _, qid = with_query_column(X, qid, group)
        if (qid is None) == (group is None):
            raise ungrouped_rows(qid)
        grouping = group_rows(qid) if group is None else group_sizes(group, len(labels), None)
        queries = Dataset.grouped(np.empty((len(labels), 0), np.float32), labels, grouping)
        if grouping.order is not None:
            pairs = [pairs[row] for row in grouping.order]
        term = None
        if position is not None:
            rows = qid if group is None else None
            term = PositionTerm.from_rows(position, position_regularization or 0.0, queries, rows)
        return cls(queries, pairs, term)

    def query(self, number: int) -> tuple[list[Pair], Any]:
        """Return the pairs of a query, and their labels."""
        rows = slice(*self.queries.offsets[number : number + 2].tolist())
        return self.pairs[rows], self.queries.labels[rows]

    def digest(self) -> str:
        """Return a hash of the texts, the labels and the queries."""
        digest = hashlib.sha256()
        for values in (self.queries.labels, self.queries.offsets):
            digest.update(np.ascontiguousarray(values).tobytes())
        if self.position is not None:
            own = (self.position.names.tolist(), self.position.regularization)
            digest.update(repr(own).encode())
            digest.update(self.position.context.tobytes())
        for pair in self.pairs:
            digest.update(repr(pair).encode())
        return digest.hexdigest()


def read_pairs(X: Any) -> list[Pair]:
    r"""Return pairs of texts that any tokenizer takes.

    Example:
        >>> read_pairs([("red shoes", "a red shoe")])
        [('red shoes', 'a red shoe')]
        >>> read_pairs([("q", "half of a character: \ud83d")])[0][1].encode()
        b'half of a character: \xef\xbf\xbd'
    """
    if is_frame(X):
        table = arrow_table(X)
        columns = [_column(table, names) for names in (_QUERY_COLUMNS, _DOCUMENT_COLUMNS)]
        X = list(zip(*columns, strict=True))
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise _not_pairs(X)
    pairs = []
    for row, pair in enumerate(X):
        if isinstance(pair, str | bytes) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise _not_pairs(pair, row)
        query, document = pair
        if not isinstance(query, str) or not isinstance(document, str):
            raise _not_pairs(pair, row)
        pairs.append((valid_text(query), valid_text(document)))
    return pairs


def _column(table: Any, names: tuple[str, ...]) -> list[Any]:
    for name in names:
        if name in table.column_names:
            return list(table[name].to_pylist())
    raise DataError(
        f"there is no column {names[0]!r}",
        hint=f"Its columns are {', '.join(table.column_names[:12])}: rename the right one.",
    )


def valid_text(text: str) -> str:
    """Replace halves of surrogate pairs, which no encoding has."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _not_pairs(value: object, row: int | None = None) -> DataError:
    what = type(value).__name__ if row is None else f"row {row}, {str(value)[:60]!r},"
    return DataError(
        f"{what} is not a pair of a query and a document",
        hint="Give [(query, document), ...] or a data frame with columns query and document.",
    )

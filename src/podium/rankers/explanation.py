"""Why a ranker puts documents where it does: what each feature contributes to their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from podium.data import Dataset
from podium.data.frames import html_table, pandas_frame
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints

_ROUNDING = 1e-4
"""Contributions that miss the score by a larger share of it are not just rounded."""


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation:
    """Why a document is above another: the contributions add up to the difference of their scores.

    Attributes:
        above: The id of the document that is above.
        below: The id of the other.
        names: The features or, of a cascade, its rankers.
        contributions: What each contributes to ``score_above - score_below``.
        values_above: The values of the document above, as text; empty if missing.
        values_below: The values of the other.
        score_above: The score of the document above.
        score_below: The score of the other.
        above_position: The position of the document above in the data, from 0.
        below_position: That of the other.
    """

    above: str
    below: str
    names: tuple[str, ...]
    contributions: Doubles
    values_above: tuple[str, ...]
    values_below: tuple[str, ...]
    score_above: float
    score_below: float
    above_position: int
    below_position: int

    @property
    def difference(self) -> float:
        """The difference of the scores."""
        return self.score_above - self.score_below

    @property
    def largest(self) -> Ints:
        """The columns by the size of their contribution, largest first."""
        return np.argsort(-np.abs(self.contributions), kind="stable")

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per feature, largest contribution first."""
        order = self.largest
        return pa.table(
            {
                "feature": [self.names[column] for column in order],
                "above": [self.values_above[column] for column in order],
                "below": [self.values_below[column] for column in order],
                "contribution": self.contributions[order],
            }
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per feature, largest contribution first."""
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow(), caption=repr(self))

    def __repr__(self) -> str:
        return f"PairExplanation({self.above!r} above {self.below!r} by {self.difference:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What puts each document of a query where it is.

    A document's contributions add up to its score less the mean score of the query: what makes it
    differ from the query's average document.

    Attributes:
        query_id: The query.
        document_ids: Its documents, in the order of the data; their positions from 0 if the data
            have no ids.
        names: The features or, of a cascade, its rankers.
        scores: The score of each document.
        contributions: A row per document, a column per feature.
        values: The values of the features or, of a cascade, the scores of its rankers; NaN if
            missing.
        method: How the contributions are defined.
        categories: The categories of each categorical feature, by its name.
        parts: The explanation of each ranker of a cascade.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]
        >>> ranker = LinearRanker("ListNet()").fit(X, [0, 1, 2], group=[3])
        >>> explanation = ranker.explain(X)
        >>> explanation
        Explanation(3 documents, 2 features)
        >>> explanation.pair()
        PairExplanation('2' above '1' by ...)
    """

    query_id: str
    document_ids: tuple[str, ...]
    names: tuple[str, ...]
    scores: Doubles
    contributions: Doubles
    values: Doubles
    method: str
    categories: Mapping[str, list[str]] = field(default_factory=dict)
    parts: Mapping[str, Explanation] = field(default_factory=dict)

    @property
    def order(self) -> Ints:
        """The documents' positions in the data, best first; equal scores keep their order."""
        return np.argsort(-self.scores, kind="stable")

    def position(self, document: str | int) -> int:
        """Return a document's position in the data, from its id or from the position itself."""
        if not isinstance(document, str):
            integer = isinstance(document, int | np.integer) and not isinstance(document, bool)
            if not integer or not 0 <= document < len(self.document_ids):
                raise ArgumentError(
                    f"there is no document at position {document}",
                    hint=f"Query {self.query_id!r} has {len(self.document_ids)} documents.",
                )
            return int(document)
        rows = [row for row, name in enumerate(self.document_ids) if name == document]
        if len(rows) != 1:
            many = f"{len(rows)} documents have" if rows else "no document has"
            some = ", ".join(self.document_ids[row] for row in self.order[:5])
            raise ArgumentError(
                f"{many} the id {document!r} in query {self.query_id!r}",
                hint=f"Its best are {some}." if not rows else "Give the position of one instead.",
            )
        return rows[0]

    def pair(
        self, above: str | int | None = None, below: str | int | None = None
    ) -> PairExplanation:
        """Explain why a document is above another.

        Args:
            above: The id of the upper document, or its position in the data; the best by default.
            below: The lower one; the one right after the upper by default.
        """
        order = self.order
        if len(order) < 2:
            raise DataError(
                f"query {self.query_id!r} has one document", hint="Give a query with two or more."
            )
        first = int(order[0]) if above is None else self.position(above)
        if below is None:
            rank = int(np.flatnonzero(order == first)[0])
            if rank + 1 == len(order):
                raise ArgumentError(
                    f"{self.document_ids[first]!r} is the last document", hint="Give another."
                )
            second = int(order[rank + 1])
        else:
            second = self.position(below)
        if first == second:
            raise ArgumentError("both documents are the same", hint="Give two.")
        return PairExplanation(
            self.document_ids[first],
            self.document_ids[second],
            self.names,
            self.contributions[first] - self.contributions[second],
            self.texts(first),
            self.texts(second),
            float(self.scores[first]),
            float(self.scores[second]),
            first,
            second,
        )

    def texts(self, row: int) -> tuple[str, ...]:
        """Return the values of a document as text; empty where they are missing."""
        return tuple(
            value_text(value, self.categories.get(name))
            for name, value in zip(self.names, self.values[row], strict=True)
        )

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with a row per document, best first, and a column per feature."""
        order = self.order
        columns: dict[str, Any] = {
            "document_id": [self.document_ids[row] for row in order],
            "score": self.scores[order],
        }
        names = list(columns) + list(self.names)
        return pa.Table.from_arrays(
            [pa.array(column) for column in columns.values()]
            + [pa.array(column) for column in self.contributions[order].T],
            names=names,
        )

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per document, best first."""
        return pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return html_table(self.to_arrow(), caption=repr(self))

    def __repr__(self) -> str:
        kind = "rankers" if self.parts else "features"
        return f"Explanation({len(self.document_ids)} documents, {len(self.names)} {kind})"


def value_text(value: float, categories: list[str] | None = None) -> str:
    """Return a value of a feature as text: a category by its name, nothing if it is missing.

    Example:
        >>> value_text(0.25), value_text(1.0, ["a", "b"]), value_text(float("nan"))
        ('0.25', 'b', '')
    """
    if np.isnan(value):
        return ""
    if categories is not None and 0 <= value < len(categories):
        return categories[int(value)]
    return f"{value:.6g}"


def explain_features(
    data: Dataset,
    scores: Doubles,
    contributions: Doubles,
    categories: Mapping[str, list[str]],
    *,
    ranker: str,
    method: str,
) -> Explanation:
    """Explain the documents of the only query of a data set by its features."""
    return Explanation(
        *query_documents(data),
        data.feature_names,
        scores,
        adding_up(contributions, scores, ranker),
        data.features.astype(np.float64),
        method,
        categories,
    )


def query_documents(data: Dataset) -> tuple[str, tuple[str, ...]]:
    """Return the id of the only query of a data set, and the ids of its documents."""
    ids = None if data.document_ids is None else data.document_ids.to_pylist()
    names = [str(row) if ids is None or ids[row] is None else ids[row] for row in range(data.rows)]
    return data.query_ids[0].as_py(), tuple(names)


def adding_up(contributions: Doubles, scores: Doubles, kind: str) -> Doubles:
    """Return contributions less their mean, which add up to the scores less their mean.

    Engines and networks round their scores to single precision. What rounding leaves is spread
    over the features by the size of their contributions.
    """
    centered = contributions - contributions.mean(axis=0)
    target = scores - scores.mean()
    left = target - centered.sum(axis=1)
    sizes = np.abs(centered)
    totals = sizes.sum(axis=1)
    scale = max(float(np.abs(scores).max()), float(totals.max()))
    if not np.abs(left).max() <= _ROUNDING * scale:  # also if anything is not a number
        raise ArgumentError(
            f"the contributions of this {kind} do not add up to its scores",
            hint="Its file lacks the numbers of rows in each leaf, or its trees have other leaves "
            "than numbers: train it again without such options.",
        )
    even = np.full_like(sizes, 1 / sizes.shape[1])
    shares = np.divide(sizes, totals[:, None], out=even, where=totals[:, None] > 0)
    return np.asarray(centered + shares * left[:, None])

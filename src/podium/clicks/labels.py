"""Labels of clicks as those of any other assessor: grades, and pairs that clicks do not decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from podium.clicks.models import ClickModel
from podium.data import Judgments
from podium.data.frames import to_numpy
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints

LabelKind: TypeAlias = Literal["grades", "probability", "top"]
"""Grades from 0; the probability of a click on what is examined; or the order of the top k."""

_SHARES = (0.5, 0.75, 0.9, 0.97)
_LEAST_COMMON = 20


@dataclass(frozen=True)
class ClickLabels:
    """Labels of a click model.

    Attributes:
        table: As `ClickModel.labels` returns it, with ``grade``, ``grade_low`` and ``grade_high``.
        cuts: The label from which each grade above 0 is given.

    Example:
        >>> import tempfile
        >>> from podium.clicks import fit_clicks, import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyxy"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, False]}
        >>> model = fit_clicks(import_clicks(rows, tempfile.mkdtemp() + "/log"), "ctr")
        >>> labels = label_clicks(model)
        >>> labels.judgments("top", k=1).labels.tolist()
        [1.0, 0.0]
    """

    table: pa.Table
    cuts: tuple[float, ...]

    def judgments(
        self,
        kind: LabelKind = "grades",
        *,
        k: int = 10,
        least_shown: int = 1,
        names: Mapping[str, str] | None = None,
    ) -> Judgments:
        """Return the labels as judgments.

        Args:
            kind: What a label is.
            k: How many documents ``"top"`` puts in order.
            least_shown: Leave out documents that were shown less often.
            names: To the texts of queries their ids; others are left out.
        """
        table = self._named(names)
        table = table.filter(pc.greater_equal(table["shown"], least_shown))
        queries = table["query"]
        if not table.num_rows:
            raise DataError("no label is left", hint="Check the names, and how often is enough.")
        columns = {"grades": "grade", "probability": "label", "top": "label"}
        values = to_numpy(table[columns[kind]]).astype(np.float64)
        if kind == "top":
            values = _top(to_numpy(queries.combine_chunks().dictionary_encode().indices), values, k)
        return Judgments.from_columns(queries, table["document_id"], values)

    def undecided(
        self, *, k: int = 10, level: float = 0.95, names: Mapping[str, str] | None = None
    ) -> Iterator[tuple[str, str, str, float]]:
        """Yield the pairs whose order clicks do not decide, for people to judge.

        Of each query the k best documents are compared with each other and with all others. A pair
        is a query, two documents, and the probability that the first is better.

        Args:
            k: How many documents are to be in order.
            level: The probability from which an order is decided.
            names: To the texts of queries their ids; others are left out.
        """
        table = self._named(names).sort_by([("query", "ascending"), ("label", "descending")])
        queries = table["query"].combine_chunks().to_pylist()
        documents = table["document_id"].to_pylist()
        label, deviation = (to_numpy(table[name]) for name in ("label", "deviation"))
        begin = 0
        for row in range(1, len(queries) + 1):
            if row < len(queries) and queries[row] == queries[begin]:
                continue
            for first in range(begin, min(begin + k, row)):
                for second in range(first + 1, row):
                    spread = float(np.hypot(deviation[first], deviation[second]))
                    gap = float(label[first] - label[second])
                    better = float(stats.norm.cdf(gap / spread)) if spread else 0.5 + (gap > 0) / 2
                    if better < level:
                        yield queries[begin], documents[first], documents[second], better
            begin = row

    def _named(self, names: Mapping[str, str] | None) -> pa.Table:
        """Return the table with ids of queries in place of their texts."""
        if names is None:
            return self.table
        known = pa.array(list(names), pa.string())
        at = pc.index_in(self.table["query"].cast(pa.string()), value_set=known)
        ids = pa.chunked_array([pa.array(list(names.values()), pa.string())])
        column = self.table.schema.get_field_index("query")
        table = self.table.filter(pc.is_valid(at))
        return table.set_column(column, "query", ids.take(pc.drop_null(at)))


def label_clicks(
    model: ClickModel,
    *,
    people: Judgments | None = None,
    shares: Sequence[float] = _SHARES,
    level: float = 0.95,
) -> ClickLabels:
    """Give documents grades by a click model.

    Args:
        model: The model.
        people: What people said of some of the documents: the grades of clicks are then as frequent
            among these as theirs. Queries are called as in the log.
        shares: Without people: the shares of documents below each grade above 0.
        level: The confidence of intervals.

    Raises:
        DataError: If people and clicks have too few documents in common.

    Example:
        >>> import tempfile
        >>> from podium.clicks import fit_clicks, import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyyx"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, False, True]}
        >>> log = import_clicks(rows, tempfile.mkdtemp() + "/log")
        >>> labels = label_clicks(fit_clicks(log, "ctr"), shares=[0.5])
        >>> labels.table.select(["document_id", "grade"]).to_pylist()[0]
        {'document_id': 'x', 'grade': 1}
    """
    if list(shares) != sorted(set(shares)) or not all(0 < share < 1 for share in shares):
        raise ArgumentError(f"shares are {list(shares)}", hint="Give increasing ones below 1.")
    table = model.labels(level)
    labels = to_numpy(table["label"]).astype(np.float64)
    cuts = np.quantile(labels, shares) if people is None else _cuts_of_people(table, people)
    for name, column in (("grade", "label"), ("grade_low", "low"), ("grade_high", "high")):
        values = to_numpy(table[column]).astype(np.float64)
        grades = np.searchsorted(cuts, np.nan_to_num(values, nan=-np.inf), side="right")
        table = table.append_column(name, pa.array(grades.astype(np.int64)))
    return ClickLabels(table, tuple(cuts.tolist()))


def _cuts_of_people(table: pa.Table, people: Judgments) -> Doubles:
    pairs = zip(table["query"].to_pylist(), table["document_id"].to_pylist(), strict=True)
    clicks = dict(zip(pairs, table["label"].to_pylist(), strict=True))
    queries = people.query_id_of_row().to_pylist()
    keys = zip(queries, people.document_ids.to_pylist(), strict=True)
    both = [
        (clicks[key], grade)
        for key, grade in zip(keys, people.labels.tolist(), strict=True)
        if key in clicks
    ]
    if len(both) < _LEAST_COMMON:
        raise DataError(
            f"people judged {len(both)} documents of the log, grades need {_LEAST_COMMON}",
            hint="Name queries as the log does, or leave people's judgments out.",
        )
    values, grades = np.array(both).T
    highest = int(grades.max())
    below = [float((grades < grade).mean()) for grade in range(1, highest + 1)]
    return np.asarray(np.quantile(values, below))


def _top(query: Ints, values: Doubles, k: int) -> Doubles:
    """Return k for the best document of each query, down to 1 for the k-th, and 0 for others."""
    order = np.lexsort((-values, query))
    starts = np.flatnonzero(np.diff(query[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    result = np.zeros(len(values))
    result[order] = np.maximum(k - rank, 0)
    return result

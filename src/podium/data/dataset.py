"""Query-grouped data in memory: the input of rankers, losses and measures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from podium.data import labels as label_orders
from podium.data.columns import column_names, numbered_names, refuse_duplicates
from podium.data.definitions_hash import common_hash
from podium.data.frames import (
    arrow_table,
    feature_matrix,
    filled,
    html_table,
    numeric_columns,
    required_column,
    to_arrow,
)
from podium.data.grouping import (
    Grouping,
    Strings,
    as_strings,
    group_rows,
    group_sizes,
    ungrouped_rows,
)
from podium.data.ids import match_rows, query_keys
from podium.data.judged import Judgments
from podium.data.normalize import normalize_features
from podium.data.numbers import as_numbers, infinite_feature
from podium.data.query_rows import QueryRows, join_rows, ordered_columns
from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Floats, Ints


@dataclass(frozen=True)
class Query:
    """A query of a data set; its arrays are views."""

    id: str
    features: Floats
    labels: Floats
    document_ids: Strings | None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset(QueryRows):
    """Queries with their documents: features, labels, and where each query begins.

    Rows of a query are contiguous: ``features[offsets[i]:offsets[i + 1]]`` are the documents of
    query ``i``. Create one with ``from_arrays`` or a reader; the plain constructor takes arrays
    that are already grouped and checks that they are consistent.

    Attributes:
        features: float32, one row per document, possibly memory-mapped; NaN means missing.
        labels: float32, larger is better, equal means no known preference.
        offsets: int64, where each query's rows begin, followed by the number of rows.
        query_ids: An id for each query.
        document_ids: An id for each row, or None.
        feature_names: A name for each column.
        definitions_hash: The hash of the definitions that the features follow, or None.
        row_order: Where each row was in the file or table, if rows of a query were not together
            there; else None, and of a selection as well. Values in the file's order are
            ``values[row_order]`` in the data set's.

    Example:
        >>> data = Dataset.from_arrays(
        ...     [[0.1, 3], [0.7, 1], [0.4, 2]], labels=[0, 2, 1], qid=["q1", "q2", "q1"]
        ... )
        >>> data
        Dataset(2 queries, 3 rows, 2 features)
        >>> data.labels.tolist(), data.offsets.tolist()
        ([0.0, 1.0, 2.0], [0, 2, 3])
    """

    ROW_FIELDS: ClassVar = ("features", "labels", "document_ids")

    features: Floats
    labels: Floats
    document_ids: Strings | None = None
    feature_names: tuple[str, ...] = ()
    definitions_hash: str | None = None
    row_order: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features.ndim != 2:
            raise DataError("features are not two-dimensional", hint="Give one row per document.")
        columns = self.features.shape[1]
        if not self.feature_names:
            object.__setattr__(self, "feature_names", numbered_names(columns))
        if len(self.feature_names) != columns:
            raise DataError(
                f"{len(self.feature_names)} feature names for {columns} features",
                hint="Give one name for each column.",
            )
        refuse_duplicates(self.feature_names)

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        *,
        qid: Any = None,
        group: ArrayLike | None = None,
        query_ids: Sequence[str] | None = None,
        document_ids: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> Dataset:
        """Create a data set from arrays with rows in any order.

        Args:
            features: 2-D, converted to float32 without a copy where possible.
            labels: A label for each row.
            qid: A query id for each row, in any order; or
            group: the number of rows of each query, rows being contiguous.
            query_ids: With ``group``, the id of each query (by default 0, 1, 2, …).
            document_ids: An id for each row.
            feature_names: A name for each column; by default the column names of a data frame,
                else 1, 2, 3, …, as in LETOR files.
        """
        # Row-major: data frames are column-major, and sums in another order round differently.
        matrix = np.ascontiguousarray(as_numbers(features, np.float32, "features", dimensions=2))
        label_array = as_numbers(labels, np.float32, "labels", dimensions=1)
        if not np.isfinite(label_array).all():
            row = int(np.argmin(np.isfinite(label_array)))
            raise DataError(
                f"the label of row {row} is {label_array[row]}", hint="Give finite labels."
            )
        if np.isinf(matrix).any():
            raise infinite_feature()
        if (qid is None) == (group is None):
            raise ungrouped_rows(qid)
        grouping = (
            group_rows(qid) if group is None else group_sizes(group, len(label_array), query_ids)
        )
        ids = None if document_ids is None else as_strings(document_ids, "document ids")
        names = column_names(features) if feature_names is None else tuple(map(str, feature_names))
        return cls.grouped(matrix, label_array, grouping, ids, names or ())

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        qid: str = "qid",
        document_id: str | None = None,
        features: Sequence[str] | None = None,
    ) -> Dataset:
        """Create a data set from a table of pandas, Polars or Arrow, with rows in any order.

        Args:
            frame: The table, or any other object with ``__arrow_c_stream__``.
            label: The column of labels.
            qid: The column of query ids.
            document_id: The column of document ids, if there is one.
            features: The columns of features; by default all other columns of numbers and booleans.
                A data set has numbers only: a warning names categorical columns that are left out,
                which `TreeRanker.fit` would take from the frame itself.

        Example:
            >>> table = pa.table(
            ...     {"qid": ["q", "q"], "title": ["A", "B"], "bm25": [0.3, 0.7], "label": [0, 1]}
            ... )
            >>> data = Dataset.from_frame(table)
            >>> data.feature_names, data.features.shape
            (('bm25',), (2, 1))
        """
        table = arrow_table(frame)
        label_column, query_column = (required_column(table, name) for name in (label, qid))
        documents = None if document_id is None else required_column(table, document_id)
        others = (label, qid, document_id or label)
        names = numeric_columns(table, except_for=others) if features is None else tuple(features)
        left_out = [
            field.name
            for field in table.schema
            if pa.types.is_dictionary(field.type) and field.name not in (*others, *names)
        ]
        if left_out and features is None:
            warnings.warn(
                f"categorical columns are left out: {', '.join(left_out)}. Give the frame itself "
                "to TreeRanker.fit, which takes them, or name the features",
                stacklevel=2,
            )
        return cls.from_arrays(
            feature_matrix(table, names),
            label_column,
            qid=query_column,
            document_ids=documents,
            feature_names=names,
        )

    @classmethod
    def grouped(
        cls,
        features: Floats,
        labels: Floats,
        grouping: Grouping,
        document_ids: Strings | None = None,
        feature_names: tuple[str, ...] = (),
    ) -> Dataset:
        """Create a data set from rows and their grouping, reordering rows only where needed."""
        columns = {"features": features, "labels": labels, "document ids": document_ids}
        columns = ordered_columns(grouping, columns)
        return cls(
            features=columns["features"],
            labels=columns["labels"],
            document_ids=columns["document ids"],
            offsets=grouping.offsets,
            query_ids=grouping.query_ids,
            feature_names=feature_names,
            row_order=grouping.order,
        )

    def select(self, queries: ArrayLike | Sequence[str]) -> Dataset:
        """Select queries by position, mask or id, in the order of the argument."""
        selected = super().select(queries)
        return selected if selected.row_order is None else replace(selected, row_order=None)

    def __repr__(self) -> str:
        columns = len(self.feature_names)
        return f"Dataset({len(self)} queries, {self.rows} rows, {columns} features)"

    def _repr_html_(self) -> str:
        rows = self._head_table(20)
        return html_table(rows, caption=f"{self!r}, first {rows.num_rows} rows")

    def _head_table(self, count: int) -> pa.Table:
        """Return the first rows as an Arrow table, with at most 20 features."""
        last = min(count, self.rows)
        queries = self.query_ids.take(to_arrow(self.query_of_row[:last]))
        columns = [queries, self.labels[:last]]
        names = ["query_id", "label"]
        if self.document_ids is not None:
            columns.insert(1, self.document_ids[:last])
            names.insert(1, "document_id")
        shown = self.feature_names[:20]
        columns += [self.features[:last, index] for index in range(len(shown))]
        return pa.table([pa.array(column) for column in columns], names=[*names, *shown])

    def __iter__(self) -> Iterator[Query]:
        for query in range(len(self)):
            yield self[query]

    def __getitem__(self, query: int) -> Query:
        if not -len(self) <= query < len(self):
            raise IndexError(f"query {query} of {len(self)}")
        query %= len(self)
        rows = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        documents = None if self.document_ids is None else self.document_ids[rows]
        return Query(
            self.query_ids[query].as_py(), self.features[rows], self.labels[rows], documents
        )

    def equals(self, other: Dataset) -> bool:
        """Whether two data sets have the same values and names; NaN equals NaN."""
        return self.feature_names == other.feature_names and super().equals(other)

    def without_features(self) -> Dataset:
        """Return the same rows without features."""
        return replace(self, features=np.empty((self.rows, 0), np.float32), feature_names=())

    def select_features(self, names: Sequence[str]) -> Dataset:
        """Return the same rows with some features, in the order of ``names``.

        Example:
            >>> data = Dataset.from_arrays(
            ...     [[2, 3, 7]], [1], qid=["q"], feature_names=["bm25", "clicks", "age"]
            ... )
            >>> data.select_features(["age", "bm25"]).features.tolist()
            [[7.0, 2.0]]
        """
        selected = tuple(map(str, names))
        if selected == self.feature_names:
            return self
        column_of = {name: column for column, name in enumerate(self.feature_names)}
        missing = [name for name in selected if name not in column_of]
        if missing:
            raise DataError(
                f"there are no features {', '.join(missing)}",
                hint=f"There are: {', '.join(self.feature_names)}.",
            )
        columns = [column_of[name] for name in selected]
        features = np.ascontiguousarray(self.features[:, columns])
        return replace(self, features=features, feature_names=selected)

    def with_document_ids(self) -> Dataset:
        """Return the same rows with document ids, null where there were none."""
        if self.document_ids is not None:
            return self
        return replace(self, document_ids=pa.nulls(self.rows, pa.large_string()))

    def split(self, *fractions: float, random_state: int = 0) -> tuple[Dataset, ...]:
        """Split the queries at random by fractions that sum to 1; queries keep their order.

        Example:
            >>> data = Dataset.from_arrays(np.zeros((9, 1)), labels=np.zeros(9), group=[1] * 9)
            >>> [len(part) for part in data.split(0.6, 0.2, 0.2, random_state=1)]
            [5, 2, 2]
        """
        if not fractions or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
            raise ArgumentError(
                f"fractions {fractions} do not sum to 1", hint="Give e.g. 0.8, 0.2."
            )
        shuffled = generator(random_state).permutation(len(self))
        cuts = np.rint(np.cumsum(fractions[:-1]) * len(self)).astype(np.int64)
        return tuple(self.select(np.sort(part)) for part in np.split(shuffled, cuts))

    def folds(self, count: int, *, random_state: int = 0) -> list[tuple[Dataset, Dataset]]:
        """Split by query for cross-validation: ``count`` pairs of (training set, test set).

        Example:
            >>> data = Dataset.from_arrays(np.zeros((4, 1)), labels=np.zeros(4), group=[1] * 4)
            >>> [(len(train), len(test)) for train, test in data.folds(2)]
            [(2, 2), (2, 2)]
        """
        if not 2 <= count <= len(self):
            raise ArgumentError(
                f"{count} folds of {len(self)} queries", hint="Give 2 up to the number of queries."
            )
        shuffled = generator(random_state).permutation(len(self))
        pairs = []
        for fold in range(count):
            in_fold = np.zeros(len(self), bool)
            in_fold[shuffled[fold::count]] = True
            pairs.append((self.select(~in_fold), self.select(in_fold)))
        return pairs

    def normalize(self, method: Literal["min-max", "z-score"] = "min-max") -> Dataset:
        """Normalize each feature within each query (min-max is LETOR's QueryLevelNorm).

        Example:
            >>> data = Dataset.from_arrays([[2], [4], [6]], labels=[0, 0, 1], group=[3])
            >>> data.normalize().features.ravel().tolist()
            [0.0, 0.5, 1.0]
        """
        features = normalize_features(self.features, self.offsets, method)
        return replace(self, features=features, definitions_hash=None)

    def relabel(
        self, judgments: Judgments, *, unjudged: float = 0.0, part: bool = False
    ) -> Dataset:
        """Take labels from judgments by query and document id; unjudged queries are dropped.

        Args:
            judgments: For instance the result of a judging session, or a qrels file.
            unjudged: The label of unjudged documents in judged queries.
            part: Whether this is a part of a data set: it may lack judgments altogether.

        Example:
            >>> data = Dataset.from_arrays(
            ...     np.zeros((3, 1)), [0, 0, 0], qid=["p", "q", "q"], document_ids=["a", "b", "c"]
            ... )
            >>> judged = data.relabel(Judgments.from_columns(["q"], ["c"], [2]))
            >>> judged.query_ids.to_pylist(), judged.labels.tolist()
            (['q'], [0.0, 2.0])
        """
        if self.document_ids is None:
            raise DataError("the data set has no document ids", hint="Give document_ids.")
        matched = pc.index_in(self.query_ids, value_set=judgments.query_ids)
        positions = filled(matched, -1)
        if not part and not (positions >= 0).any():
            raise DataError("no query was judged", hint="Compare the query ids of both.")
        data, judged = self.select(positions >= 0), judgments.select(positions[positions >= 0])
        matches = match_rows(data.document_ids, data.offsets, judged.document_ids, judged.offsets)
        if not part and not (matches >= 0).any():
            raise DataError(
                f"none of the {data.rows} documents of {len(data)} judged queries was judged",
                hint="Compare the document ids of both.",
            )
        labels = np.where(matches >= 0, judged.labels[matches], np.float32(unjudged))
        return replace(data, labels=labels)

    def top_k(self, k: int, *, random_state: int = 0) -> Dataset:
        """Convert the labels to top-k orders (``podium.data.labels.to_top_k``).

        Example:
            >>> data = Dataset.from_arrays(np.zeros((4, 1)), labels=[0, 1, 4, 0], group=[4])
            >>> data.top_k(2).labels.tolist()
            [0.0, 1.0, 2.0, 0.0]
        """
        keys = query_keys(self.query_ids)
        ordered = label_orders.to_top_k(
            self.labels, self.offsets, k, random_state=random_state, keys=keys
        )
        return replace(self, labels=ordered)

    def full_order(self, *, random_state: int = 0) -> Dataset:
        """Convert the labels to full orders (``podium.data.labels.to_full_order``)."""
        keys = query_keys(self.query_ids)
        ordered = label_orders.to_full_order(
            self.labels, self.offsets, random_state=random_state, keys=keys
        )
        return replace(self, labels=ordered)


def concat_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """Concatenate data sets with the same features and different queries.

    Example:
        >>> first = Dataset.from_arrays([[1.0]], labels=[1], qid=["a"])
        >>> second = Dataset.from_arrays([[2.0]], labels=[0], qid=["b"])
        >>> concat_datasets([first, second]).query_ids.to_pylist()
        ['a', 'b']
    """
    if not datasets:
        raise DataError("nothing to concatenate", hint="Give at least one data set.")
    names = datasets[0].feature_names
    for data in datasets:
        if data.feature_names != names:
            raise DataError(
                "the data sets have different features", hint="Select the same features in each."
            )
    ids = pa.concat_arrays([data.query_ids for data in datasets])
    if len(pc.unique(ids)) != len(ids):
        counts = pc.value_counts(ids).to_pylist()
        name = next(entry["values"] for entry in counts if entry["counts"] > 1)
        raise DataError(
            f"query {name!r} is in two of the data sets",
            hint="Put all rows of a query into one of them.",
        )
    shared = common_hash([data.definitions_hash for data in datasets], "the data sets")
    return Dataset(**join_rows(datasets), feature_names=names, definitions_hash=shared)

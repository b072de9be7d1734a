"""Train a ranker on clicks: as they are, with offsets of ranks, or on labels of a click model.

Which of these helps depends on the log, and none always does: on judged queries they are compared
with clicks as they are, and one is taken only if it is shown to be better.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from podium.clicks.check import LogCheck, check_log
from podium.clicks.models import DEPTH, fit_clicks
from podium.clicks.table import ClickLog
from podium.data import Dataset, Judgments
from podium.data.frames import filled, to_numpy
from podium.data.seeds import generator
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures import compare
from podium.measures.comparison.result import Comparison
from podium.measures.registry import Measure

PositionBias: TypeAlias = Literal["auto", "naive", "position", "pbm", "sdbn", "people"]
"""Clicks as they are (``naive``); with an offset for each rank (``position``); labels of a click
model (``pbm``, ``sdbn``); people's labels alone; or what is better than ``naive``, if any is."""

REGULARIZATION = 0.1
_LIGHTGBMS = "lambdarank_position_bias_regularization"
_FEWEST_QUERIES = 5
_MOST_VALUES = 200_000_000


@dataclass(frozen=True)
class ClickTraining:
    """A ranker that was trained on clicks, and why so.

    Attributes:
        ranker: The fitted ranker.
        chosen: How it was trained.
        comparison: The ways that ``auto`` tried, beside ``naive``, on judged queries; None if
            nothing could be compared.
        left_out: Ways that ``auto`` did not try, and why.
        check: Whether position bias can be learned from the log.
        counts: What became of the searches of the log.
        notes: What whoever uses the ranker should know.
    """

    ranker: Any
    chosen: PositionBias
    comparison: Comparison | None
    left_out: Mapping[str, str]
    check: LogCheck
    counts: Mapping[str, int]
    notes: tuple[str, ...]

    def table(self) -> list[list[str]]:
        """Return a row for each way: its mean, the difference from ``naive``, and what became."""
        rows = []
        if self.comparison is not None:
            (measure,) = self.comparison.measures
            for name in self.comparison.systems:
                mean = self.comparison.summaries[measure][name].mean
                row = [name, f"{mean:.4f}", "", ""]
                if name != self.comparison.baseline:
                    outcome = self.comparison.against_baseline[measure][name]
                    each = outcome.difference
                    row[2] = f"{each.mean:+.4f} [{each.low:+.4f}, {each.high:+.4f}]"
                    row[3] = f"{outcome.corrected[self.comparison.test]:.3g}"
                rows.append([*row, "chosen" if name == self.chosen else ""])
        return rows + [[name, "", "", "", why] for name, why in self.left_out.items()]


def train_on_clicks(
    ranker: Any,
    features: Dataset,
    log: ClickLog | str | os.PathLike[str],
    *,
    position_bias: PositionBias = "auto",
    people: Judgments | None = None,
    names: Mapping[str, str] | None = None,
    measure: str | Measure = "nDCG@10",
    regularization: float | None = None,
    folds: int = 3,
    depth: int = DEPTH,
    random_state: int = 0,
    progress: Any = None,
) -> ClickTraining:
    """Train a ranker on the clicks of a log.

    ``auto`` trains in each way on the log without a part of the judged queries, compares the
    rankings of these with those of ``naive``, and takes the best of the ways that are
    significantly better (two-sided, corrected by Holm for their number); without one, ``naive``.

    Args:
        ranker: A ranker; it is fitted.
        features: The documents of the log's queries, with ids; labels do not matter.
        log: The log, or its folder.
        position_bias: How to train.
        people: What people said of some of the documents, by the ids of ``features``.
        names: To the texts of queries in the log their ids in ``features``; by default they are
            equal.
        measure: Compares the ways on people's judgments; documents that nobody judged are left out.
        regularization: The weight of the penalty of offsets, for ``position``; by default that of
            the ranker's ``lambdarank_position_bias_regularization``, if it has one, or 0.1.
        folds: Into how many parts judged queries are divided.
        depth: The last rank to take.
        random_state: Divides the judged queries.
        progress: Called after each step of the last fit.

    Example:
        >>> import tempfile
        >>> from podium.clicks import simulate_clicks
        >>> from podium.rankers import LinearRanker
        >>> random = np.random.default_rng(0)
        >>> X = random.random((200, 3))
        >>> ids = [str(number) for number in range(200)]
        >>> data = Dataset.from_arrays(X, X[:, 1] > 0.7, group=[10] * 20, document_ids=ids)
        >>> log = simulate_clicks(data, tempfile.mkdtemp() + "/log", searches=50)
        >>> result = train_on_clicks(LinearRanker("ListNet()"), data, log, position_bias="naive")
        >>> bool(np.argmax(result.ranker.coef_) == 1)
        True
    """
    if position_bias not in get_args(PositionBias):
        raise ArgumentError(
            f"position_bias is {position_bias!r}",
            hint=f"Give one of {', '.join(get_args(PositionBias))}.",
        )
    opened = log if isinstance(log, ClickLog) else ClickLog.open(log)
    own = ranker.get_params().get(_LIGHTGBMS)
    if own is not None:
        ranker.set_params(**{_LIGHTGBMS: None})  # the other ways have no offsets
    if regularization is None:
        regularization = REGULARIZATION if own is None else own
    ways = _Ways(features, opened, people, names, regularization, depth, random_state)
    check = check_log(opened, depth=depth)
    comparison, left_out, notes = None, dict[str, str](), list[str]()
    chosen = position_bias
    if chosen == "auto":
        left_out = _not_tried(check, ways)
        comparison = _compare(ranker, ways, left_out, measure, folds, random_state)
        chosen = _best(comparison)
        if comparison is None:
            notes.append(
                "nothing to choose by: fewer than "
                f"{_FEWEST_QUERIES} queries were judged by people, so clicks are taken as they are"
            )
        elif chosen == "naive":
            notes.append("no way is shown to be better than clicks as they are")
    if chosen in ("position", "pbm") and check.verdict == "no":
        notes.append(f"{check.sentence} {check.reasons[0]}")
        if position_bias != "auto":  # people's judgments speak for what auto chose
            warnings.warn(notes[-1], stacklevel=2)
    ways.fit(ranker, chosen, None, progress)
    return ClickTraining(
        ranker, chosen, comparison, left_out, check, ways.searches.counts, tuple(notes)
    )


def _not_tried(check: LogCheck, ways: _Ways) -> dict[str, str]:
    left_out: dict[str, str] = {}
    if check.verdict == "no":
        left_out["pbm"] = "no document that moved shows how often ranks are examined"
    if ways.judged is None:
        left_out["people"] = "nobody judged documents of these queries"
    return left_out


def _compare(
    ranker: Any,
    ways: _Ways,
    left_out: Mapping[str, str],
    measure: str | Measure,
    folds: int,
    random_state: int,
) -> Comparison | None:
    judged = ways.judged
    if judged is None or len(judged) < max(_FEWEST_QUERIES, folds):
        return None
    from sklearn.base import clone

    names: tuple[PositionBias, ...] = ("naive", "position", "pbm", "sdbn", "people")
    scores: dict[PositionBias, Doubles] = {
        name: np.empty(judged.rows) for name in names if name not in left_out
    }
    part = generator(random_state).permutation(len(judged)) % folds
    for name, own in scores.items():
        fitted = None
        for number in range(folds):
            held_out = np.flatnonzero(part == number)
            if fitted is None or name == "people" or ways.in_log(held_out):
                fitted = ways.fit(clone(ranker), name, held_out)
            rows = np.isin(judged.query_of_row, held_out)
            own[rows] = fitted.predict(judged.select(held_out))
    systems = {str(name): own for name, own in scores.items()}
    return compare(measure, judged, systems, random_state=random_state)


def _best(comparison: Comparison | None) -> PositionBias:
    if comparison is None:
        return "naive"
    (measure,) = comparison.measures
    sign = 1.0 if measure.larger_is_better else -1.0
    better = {
        name: sign * outcome.difference.mean
        for name, outcome in comparison.against_baseline[measure].items()
        if outcome.is_significant(comparison.test) and sign * outcome.difference.mean > 0
    }
    chosen: Any = max(better, key=lambda name: better[name], default="naive")
    return chosen  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ClickedSearches:
    """Searches of a log as queries with clicks as labels; equal ones are one.

    Attributes:
        data: A query for each search: documents at the same ranks with the same clicks.
        rank: The rank of each row.
        weights: How often each search was.
        query: The query of the features that each is of.
        counts: What became of the searches of the log.
    """

    data: Dataset
    rank: Ints
    weights: Doubles
    query: Ints
    counts: Mapping[str, int]

    def without(self, queries: Ints) -> ClickedSearches:
        """Return the searches for other queries."""
        kept = ~np.isin(self.query, queries)
        if kept.all():
            return self
        rows = np.repeat(kept, self.data.sizes)
        return replace(
            self, data=self.data.select(np.flatnonzero(kept)), rank=self.rank[rows],
            weights=self.weights[kept], query=self.query[kept],
        )  # fmt: skip


class RowFinder:
    """Finds rows of features by query and document.

    Args:
        features: The features, with document ids.
        names: To the texts of queries in a log their ids; by default they are equal.
    """

    def __init__(self, features: Dataset, names: Mapping[str, str] | None = None) -> None:
        if features.document_ids is None:
            raise DataError("the features have no document ids", hint="Clicks are matched by them.")
        self._names, self._queries = names, features.query_ids.cast(pa.string())
        coded = features.document_ids.cast(pa.string()).dictionary_encode()
        self._documents = coded.dictionary
        keys = features.query_of_row * len(self._documents) + to_numpy(coded.indices)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def __call__(self, queries: pa.Array, documents: pa.Array) -> Ints:
        """Return the row of each query and document, or -1."""
        texts = queries.cast(pa.string())
        if self._names is not None:
            at = pc.index_in(texts, value_set=pa.array(list(self._names), pa.string()))
            texts = pa.array(list(self._names.values()), pa.string()).take(at)
        query = filled(pc.index_in(texts, value_set=self._queries), -1)
        document = filled(pc.index_in(documents.cast(pa.string()), value_set=self._documents), -1)
        keys = query * len(self._documents) + document
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = (query >= 0) & (document >= 0) & (self._keys[at] == keys)
        return np.where(known, self._order[at], -1)


def clicked_searches(
    log: ClickLog,
    features: Dataset,
    *,
    names: Mapping[str, str] | None = None,
    depth: int = DEPTH,
    random_state: int = 0,
) -> ClickedSearches:
    """Return the searches of a log that prefer a document to another: some clicked, others not.

    Args:
        log: The log.
        features: The documents of its queries, with ids.
        names: To the texts of queries in the log their ids in ``features``; by default they are
            equal.
        depth: The last rank to take.
        random_state: Leaves out searches if there are more than fit into memory.

    Example:
        >>> import tempfile
        >>> from podium.clicks import import_clicks
        >>> rows = {"search_id": [*"aabb"], "query": ["tv"] * 4, "document_id": [*"xyxy"],
        ...         "rank": [1, 2, 1, 2], "clicked": [True, False, True, False]}
        >>> log = import_clicks(rows, tempfile.mkdtemp() + "/log")
        >>> features = Dataset.from_arrays(
        ...     [[1.0], [2.0]], [0, 0], qid=["tv", "tv"], document_ids=["x", "y"])
        >>> searches = clicked_searches(log, features)
        >>> searches.data.labels.tolist(), searches.rank.tolist(), searches.weights.tolist()
        ([1.0, 0.0], [1, 2], [2.0])
    """
    rows = RowFinder(features, names)
    counts = {"searches": 0, "without features": 0, "without a preference": 0}
    parts: dict[int, list[Ints]] = {}
    for block in log.blocks(depth):
        counts["searches"] += len(block.query)
        row = rows(block.query_names.take(pa.array(block.pair_query)), block.pair_documents)
        row = row[block.pair]
        known = row >= 0
        search = np.repeat(np.arange(len(block.query)), np.diff(block.offsets))[known]
        row, rank, clicked = row[known], block.rank[known], block.clicked[known]
        sizes = np.bincount(search, minlength=len(block.query))
        clicks = np.bincount(search, clicked, minlength=len(block.query))
        counts["without features"] += int((sizes == 0).sum())
        useful = (clicks > 0) & (clicks < sizes)
        counts["without a preference"] += int((~useful & (sizes > 0)).sum())
        starts = np.concatenate(([0], np.cumsum(sizes)))[:-1]
        for size in np.unique(sizes[useful]).tolist():
            at = starts[useful & (sizes == size)][:, None] + np.arange(size)
            content = np.stack([row[at], rank[at], clicked[at]], axis=2)
            parts.setdefault(size, []).append(content.reshape(len(at), -1))
    distinct = [
        np.unique(np.concatenate(several), axis=0, return_counts=True) for several in parts.values()
    ]
    if not distinct:
        raise DataError(
            "no search shows documents of the features, some clicked and others not",
            path=log.folder, hint="Compare the ids of queries and documents of both.",
        )  # fmt: skip
    counts["taken"] = int(sum(times.sum() for _, times in distinct))
    values = sum(lists.size // 3 for lists, _ in distinct) * features.features.shape[1]
    if values > _MOST_VALUES:
        random = generator(random_state)
        kept = [random.random(len(lists)) < _MOST_VALUES / values for lists, _ in distinct]
        distinct = [
            (lists[own], times[own]) for (lists, times), own in zip(distinct, kept, strict=True)
        ]
        left = int(sum(times.sum() for _, times in distinct))
        counts["left out at random"], counts["taken"] = counts["taken"] - left, left
    content = np.concatenate([lists.reshape(-1, 3) for lists, _ in distinct])
    sizes = np.concatenate([np.full(len(lists), lists.shape[1] // 3) for lists, _ in distinct])
    data = Dataset.from_arrays(
        features.features[content[:, 0]], content[:, 2], group=sizes,
        feature_names=features.feature_names,
    )  # fmt: skip
    return ClickedSearches(
        replace(data, definitions_hash=features.definitions_hash),
        content[:, 1],
        np.concatenate([times for _, times in distinct]).astype(np.float64),
        features.query_of_row[content[data.offsets[:-1], 0]],
        counts,
    )


class _Ways:
    """The training data of each way to learn from a log."""

    def __init__(
        self,
        features: Dataset,
        log: ClickLog,
        people: Judgments | None,
        names: Mapping[str, str] | None,
        regularization: float,
        depth: int,
        random_state: int,
    ) -> None:
        self._features, self._log = features, log
        self._regularization, self._depth = regularization, depth
        self._row_of = RowFinder(features, names)
        self._labels: dict[str, Dataset] = {}
        self.searches = clicked_searches(
            log, features, names=names, depth=depth, random_state=random_state
        )
        self.judged = None if people is None else _judged(features, people)
        self._at = np.zeros(0, np.int64)
        if self.judged is not None:
            self._at = filled(pc.index_in(self.judged.query_ids, value_set=features.query_ids), -1)

    def in_log(self, judged: Ints) -> bool:
        """Whether any of some judged queries was searched for."""
        return bool(np.isin(self._at[judged], self.searches.query).any())

    def fit(
        self, ranker: Any, way: PositionBias, held_out: Ints | None, progress: Any = None
    ) -> Any:
        """Fit a ranker in one way, without some of the judged queries."""
        without = np.zeros(0, np.int64) if held_out is None else self._at[held_out]
        if way == "people":
            if self.judged is None:
                raise ArgumentError("nobody judged documents", hint="Give people's judgments.")
            chosen = np.arange(len(self.judged))
            if held_out is not None:
                chosen = np.setdiff1d(chosen, held_out)
            return ranker.fit(self.judged.select(chosen), progress=progress)
        if way in ("naive", "position"):
            searches = self.searches.without(without)
            options = {}
            if way == "position":
                options = {
                    "position": searches.rank, "position_regularization": self._regularization,
                }  # fmt: skip
            return ranker.fit(
                searches.data, sample_weight=searches.weights, progress=progress, **options
            )
        labels = self._model_labels(way)
        ids = self._features.query_ids.take(pa.array(without))
        kept = filled(pc.index_in(labels.query_ids, value_set=ids), -1) < 0
        return ranker.fit(labels.select(np.flatnonzero(kept)), progress=progress)

    def _model_labels(self, model: Any) -> Dataset:
        """Return the documents that were shown, with a click model's labels."""
        if model not in self._labels:
            fitted = fit_clicks(self._log, model, depth=self._depth)
            rows, labels = [], []
            for table in fitted.label_batches():
                names = (table[name].combine_chunks() for name in ("query", "document_id"))
                row = self._row_of(*names)
                rows.append(row[row >= 0])
                labels.append(to_numpy(table["label"])[row >= 0])
            row, label = np.concatenate(rows), np.concatenate(labels)
            order = np.argsort(row)
            self._labels[model] = _some_rows(self._features, row[order], label[order])
        return self._labels[model]


def _judged(features: Dataset, people: Judgments) -> Dataset:
    """Return the documents that people judged."""
    data = features.relabel(people, unjudged=np.nan)
    rows = np.flatnonzero(~np.isnan(data.labels))
    return _some_rows(data, rows, data.labels[rows])


def _some_rows(data: Dataset, rows: Ints, labels: Any) -> Dataset:
    chosen = Dataset.from_arrays(
        data.features[rows], labels, qid=data.query_ids.take(pa.array(data.query_of_row[rows])),
        feature_names=data.feature_names,
    )  # fmt: skip
    return replace(chosen, definitions_hash=data.definitions_hash)

"""What the documents that nobody judged could change about the difference of two systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from podium.data import Joined, Judgments, Rankings
from podium.data.query_rows import take_rows
from podium.kernels import Doubles, Ints
from podium.measures.conventions import Conventions
from podium.measures.evaluate import evaluate
from podium.measures.value import Measure

_DEPTH = 100
"""Of measures without a cut-off: documents further down than this are not considered."""
_MOST_LEVELS = 6
_AT_ONCE = 2_000_000
"""Rows of lists that are evaluated at a time."""


@dataclass(frozen=True, eq=False)
class UnjudgedEffects:
    """How each unjudged document among the first results would change the difference, by its label.

    Attributes:
        query_ids: The judged queries.
        differences: Each query's difference, system minus baseline, as judged; 0 where the measure
            has no value.
        levels: The labels that a document may get, ascending.
        query: The query of each unjudged document, as an index.
        document_ids: Its id.
        ranks: Its ranks from 1, a row per document: in the baseline, in the system; 0 if it is not
            there.
        effects: What each label would add to its query's difference: a row per document, a column
            per level.
        chances: How likely each label is: a row per document, a column per level.
    """

    query_ids: tuple[str, ...]
    differences: Doubles
    levels: Doubles
    query: Ints
    document_ids: tuple[str, ...]
    ranks: Ints
    effects: NDArray[np.float64]
    chances: NDArray[np.float64]

    @property
    def expected(self) -> float:
        """The mean difference to expect once all documents are judged."""
        added = np.sum(self.chances * self.effects)
        return float((self.differences.sum() + added) / len(self.differences))

    @property
    def variances(self) -> Doubles:
        """How much of the variance of the mean difference is due to each document's label."""
        means = np.sum(self.chances * self.effects, axis=1, keepdims=True)
        spread = np.sum(self.chances * (self.effects - means) ** 2, axis=1)
        return np.asarray(spread / len(self.differences) ** 2)


def unjudged_effects(
    measure: Measure,
    conventions: Conventions,
    judgments: Judgments,
    baseline: Rankings,
    system: Rankings,
) -> UnjudgedEffects:
    """Try every label on every unjudged document among the first results of two systems.

    The measure itself is evaluated each time, its ideal ranking with it, so any measure of labels
    will do. Labels are as likely as among the judged documents of these lists: those of the
    query, and with the weight of five of them those of all queries.
    """
    lists = [_List.of(run.join(judgments), measure.cut_off or _DEPTH) for run in (baseline, system)]
    levels = _levels(judgments.labels)
    query, documents = _candidates(lists)
    plain = [_evaluated(measure, conventions, each.joined) for each in lists]
    effects = np.zeros((len(query), len(levels)))
    for sign, each, value in zip((-1.0, 1.0), lists, plain, strict=True):
        rows = each.rows_of(query, documents)
        tried = each.with_labels(measure, conventions, query, rows, levels)
        effects += sign * (tried - value[query][:, None])
    return UnjudgedEffects(
        query_ids=tuple(judgments.query_ids.to_pylist()),
        differences=plain[1] - plain[0],
        levels=levels,
        query=query,
        document_ids=tuple(documents),
        ranks=np.array([each.ranks_of(query, documents) for each in lists], np.int64).T.reshape(
            -1, 2
        ),
        effects=effects,
        chances=_chances(lists, levels, len(judgments))[query],
    )


@dataclass(frozen=True, eq=False)
class _List:
    """A run with labels, and which of its rows are among the first of their query."""

    joined: Joined
    query_of_row: Ints
    rank_of_row: Ints
    first: NDArray[np.bool_]
    row_of: dict[tuple[int, str], int]

    @classmethod
    def of(cls, joined: Joined, depth: int) -> _List:
        sizes = np.diff(joined.offsets)
        query_of_row = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((-joined.scores, query_of_row))
        rank_of_row = np.empty(len(order), np.int64)
        rank_of_row[order] = np.arange(len(order)) - np.repeat(joined.offsets[:-1], sizes) + 1
        first = rank_of_row <= depth
        row_of = {
            (query, document): row
            for row, (query, document, near) in enumerate(
                zip(
                    query_of_row.tolist(),
                    joined.document_ids.to_pylist(),
                    first.tolist(),
                    strict=True,
                )
            )
            if near
        }
        return cls(joined, query_of_row, rank_of_row, first, row_of)

    def unjudged(self) -> list[tuple[int, str]]:
        rows = np.flatnonzero(self.first & np.isnan(self.joined.labels))
        documents = take_rows(self.joined.document_ids, rows).to_pylist()
        return list(zip(self.query_of_row[rows].tolist(), documents, strict=True))

    def rows_of(self, query: Ints, documents: list[str]) -> Ints:
        """The row of each document, -1 if the run does not have it among the first."""
        pairs = zip(query.tolist(), documents, strict=True)
        return np.array([self.row_of.get(pair, -1) for pair in pairs], np.int64)

    def ranks_of(self, query: Ints, documents: list[str]) -> Ints:
        rows = self.rows_of(query, documents)
        return np.where(rows >= 0, self.rank_of_row[rows], 0) if len(self.rank_of_row) else rows + 1

    def with_labels(
        self, measure: Measure, conventions: Conventions, query: Ints, rows: Ints, levels: Doubles
    ) -> NDArray[np.float64]:
        """The measure of each document's query if the document had each label."""
        values = np.empty((len(query), len(levels)))
        longest = max(1, int(np.diff(self.joined.offsets).max(initial=1)))
        step = max(1, _AT_ONCE // (longest * len(levels)))
        for begin in range(0, len(query), step):
            part = slice(begin, begin + step)
            labels = np.tile(levels, len(query[part]))
            lists = relabelled(
                self.joined,
                np.repeat(query[part], len(levels)),
                [(np.arange(len(labels)), np.repeat(rows[part], len(levels)), labels)],
            )
            values[part] = _evaluated(measure, conventions, lists).reshape(-1, len(levels))
        return values


def relabelled(joined: Joined, queries: Ints, changes: list[tuple[Ints, Ints, Doubles]]) -> Joined:
    """Copies of the lists of some queries, in which documents that were not judged have labels.

    Args:
        joined: The lists.
        queries: The query of each copy.
        changes: Columns of copy, row in ``joined`` (-1 for a document that is not in the list, but
            in the pool all the same) and label; a copy may be in several of them.
    """
    sizes = np.diff(joined.offsets)[queries]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.repeat(joined.offsets[queries] - offsets[:-1], sizes) + np.arange(offsets[-1])
    labels = joined.labels[rows]
    added = np.zeros(len(queries), np.int64)
    for copies, _, _ in changes:
        np.add.at(added, copies, 1)
    pool_sizes = np.diff(joined.judged_offsets)[queries]
    pool_offsets = np.concatenate(([0], np.cumsum(pool_sizes + added)))
    pool = np.zeros(pool_offsets[-1], np.float32)
    starts = np.repeat(joined.judged_offsets[queries], pool_sizes)
    within = np.arange(pool_sizes.sum()) - np.repeat(np.cumsum(pool_sizes) - pool_sizes, pool_sizes)
    pool[np.repeat(pool_offsets[:-1], pool_sizes) + within] = joined.judged_labels[starts + within]
    end = pool_offsets[:-1] + pool_sizes
    for copies, changed, values in changes:
        pool[end[copies]] = values
        end = end.copy()
        end[copies] += 1
        listed = changed >= 0
        at = offsets[copies[listed]] + changed[listed] - joined.offsets[queries[copies[listed]]]
        labels[at] = values[listed]
    return Joined(
        query_ids=pc.cast(pa.array(np.arange(len(queries))), pa.string()),
        offsets=offsets,
        document_ids=take_rows(joined.document_ids, rows),
        scores=joined.scores[rows],
        labels=labels,
        judged_labels=pool,
        judged_offsets=pool_offsets,
        dropped_queries=0,
    )


def _evaluated(measure: Measure, conventions: Conventions, lists: Joined) -> Doubles:
    values = evaluate(measure, lists, conventions=conventions)[measure]
    return np.where(np.isnan(values), 0.0, values)


def _candidates(lists: list[_List]) -> tuple[Ints, list[str]]:
    pairs = sorted({pair for each in lists for pair in each.unjudged()})
    return np.array([query for query, _ in pairs], np.int64), [document for _, document in pairs]


def _levels(labels: NDArray[Any]) -> Doubles:
    """The labels in use; of very many, a few from the least to the greatest."""
    levels = np.unique(np.asarray(labels, np.float64))
    if len(levels) > _MOST_LEVELS:
        levels = levels[np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int)]
    return levels


def _chances(lists: list[_List], levels: Doubles, queries: int) -> NDArray[np.float64]:
    counts = np.zeros((queries, len(levels)))
    for each in lists:
        judged = each.first & ~np.isnan(each.joined.labels)
        nearest = np.abs(each.joined.labels[judged][:, None] - levels).argmin(axis=1)
        np.add.at(counts, (each.query_of_row[judged], nearest), 1.0)
    # One of each label: nothing that was not seen is impossible.
    overall = (counts.sum(axis=0) + 1.0) / (counts.sum() + len(levels))
    mixed = counts + _PRIOR * overall
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


_PRIOR = 5.0
"""How many judged documents of a query weigh as much as all those of the others."""

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
from podium.data.seeds import generator
from podium.kernels import Doubles, Ints
from podium.measures.conventions import Conventions
from podium.measures.evaluate import evaluate
from podium.measures.value import Measure

_DEPTH = 100
"""Of measures without a cut-off: documents further down than this are not considered."""
_MOST_LEVELS = 6
_DRAWS = 100
"""Of the labels of all unjudged documents, for what to expect of the difference."""
_TRIALS = 4
"""Of these draws, those in which every document's label is tried out."""
_PRIOR = 5.0
"""How many judged documents of a query weigh as much as all those of the others."""
_AT_ONCE = 2_000_000
"""Rows of lists that are evaluated at a time."""


@dataclass(frozen=True, eq=False)
class Unjudged:
    """The unjudged documents among the first results of two systems, and what they would change.

    Attributes:
        query_ids: The judged queries.
        differences: Each query's difference, system minus baseline, as judged; 0 where the measure
            has no value.
        expected: What each query's difference will be on average once its documents are judged.
        variances: The variance of that.
        query: The query of each unjudged document, as an index.
        document_ids: Its id.
        ranks: Its ranks from 1, a row per document: in the baseline, in the system; 0 if it is not
            among the first.
        swings: The variance of its query's difference that is due to its label.
    """

    query_ids: tuple[str, ...]
    differences: Doubles
    expected: Doubles
    variances: Doubles
    query: Ints
    document_ids: tuple[str, ...]
    ranks: Ints
    swings: Doubles


@dataclass(frozen=True)
class UnjudgedBounds:
    """How far the unjudged documents among the first results could move a difference.

    Attributes:
        measure: The measure.
        system: The name of the system.
        unjudged: How many documents were not judged.
        queries: How many queries have any.
        difference: The mean difference, system minus baseline, as judged.
        least: The same if every unjudged document that the baseline ranks higher had the highest
            label, and every other one the lowest: the least possible difference, or close to it
            where an ideal ranking changes with the labels.
        most: The same with the two systems swapped.
    """

    measure: Measure
    system: str
    unjudged: int
    queries: int
    difference: float
    least: float
    most: float

    @property
    def could_turn(self) -> bool:
        """Whether the sign of the difference could be another one."""
        return (self.least > 0) != (self.difference > 0) or (self.most > 0) != (self.difference > 0)


def unjudged_documents(
    measure: Measure,
    conventions: Conventions,
    judgments: Judgments,
    baseline: Rankings,
    system: Rankings,
    *,
    seed: int = 0,
) -> Unjudged:
    """Try labels on the unjudged documents among the first results of two systems.

    The measure itself is evaluated each time, its ideal ranking with it, so any measure of labels
    will do. Labels are drawn as they occur among the judged documents of these lists: those of
    the query, and with the weight of five of them those of all queries.
    """
    trial = _Trial.of(measure, conventions, judgments, baseline, system)
    draws = trial.levels[_draw(trial.chances, _DRAWS, generator(seed))]
    tried = trial.of_draws(draws)
    differences = trial.as_judged()
    changed = np.bincount(trial.query, minlength=len(judgments)) > 0
    return Unjudged(
        query_ids=tuple(judgments.query_ids.to_pylist()),
        differences=differences,
        # Means of equal numbers are not always equal to them.
        expected=np.where(changed, tried.mean(axis=0), differences),
        variances=np.where(changed, tried.var(axis=0, ddof=1), 0.0),
        query=trial.query,
        document_ids=trial.document_ids,
        ranks=trial.ranks,
        swings=trial.swings(draws[:_TRIALS]),
    )


def unjudged_bounds(
    measure: Measure,
    conventions: Conventions,
    judgments: Judgments,
    baseline: Rankings,
    system: Rankings,
    *,
    name: str,
) -> UnjudgedBounds:
    """Give the unjudged documents the labels that would serve one of two systems best."""
    trial = _Trial.of(measure, conventions, judgments, baseline, system)
    old, new = np.where(trial.ranks > 0, trial.ranks, np.inf).T
    lowest, highest = trial.levels[0], trial.levels[-1]
    extremes = trial.of_draws(
        np.array([np.where(old < new, highest, lowest), np.where(new < old, highest, lowest)])
    )
    # Of losses, the labels that raise a value serve the other system.
    least, most = sorted(extremes.mean(axis=1).tolist())
    return UnjudgedBounds(
        measure=measure,
        system=name,
        unjudged=len(trial.query),
        queries=len(np.unique(trial.query)),
        difference=float(trial.as_judged().mean()),
        least=least,
        most=most,
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    """Lists of two systems whose unjudged documents get labels; those of a query are adjacent."""

    measure: Measure
    conventions: Conventions
    lists: list[Joined]
    rows: list[Ints]
    query: Ints
    document_ids: tuple[str, ...]
    ranks: Ints
    levels: Doubles
    chances: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        measure: Measure,
        conventions: Conventions,
        judgments: Judgments,
        baseline: Rankings,
        system: Rankings,
    ) -> _Trial:
        depth = measure.cut_off or _DEPTH
        lists = [_List.of(run.join(judgments), depth) for run in (baseline, system)]
        levels = _levels(judgments.labels)
        pairs = sorted({pair for each in lists for pair in each.unjudged()})
        query = np.array([index for index, _ in pairs], np.int64)
        return cls(
            measure,
            conventions,
            [each.joined for each in lists],
            [each.rows_of(pairs) for each in lists],
            query,
            tuple(document for _, document in pairs),
            np.column_stack([each.ranks_of(pairs) for each in lists]),
            levels,
            _chances(lists, levels, len(judgments))[query],
        )

    def as_judged(self) -> Doubles:
        one, other = (self._values(each) for each in self.lists)
        return _gaps(one, other)

    def of_draws(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The differences if the documents had these labels: a row per draw, a column per query."""
        changed, sizes = np.unique(self.query, return_counts=True)
        differences = np.tile(self.as_judged(), (len(labels), 1))
        step = max(1, _AT_ONCE // max(1, len(self.lists[0].scores)))
        for start in range(0, len(labels), step):
            part = labels[start : start + step]
            queries = np.tile(changed, len(part))
            tried = self._differences(
                queries,
                np.repeat(np.arange(len(queries)), np.tile(sizes, len(part))),
                np.tile(np.arange(len(self.query)), len(part)),
                part.ravel(),
            )
            differences[start : start + step, changed] = tried.reshape(len(part), -1)
        return differences

    def swings(self, labels: NDArray[np.float64]) -> Doubles:
        """The variance that each document's label gives, with the labels of others as drawn."""
        _, first, sizes = np.unique(self.query, return_index=True, return_counts=True)
        begin, size = np.repeat(first, sizes), np.repeat(sizes, sizes)
        lengths = np.diff(self.lists[0].offsets)
        step = max(1, _AT_ONCE // max(1, int(lengths.max(initial=1))))
        swings = np.zeros(len(self.query))
        levels = self.levels.tolist()
        for start in range(0, len(self.query), step):
            documents = np.arange(start, min(start + step, len(self.query)))
            copies = np.repeat(np.arange(len(documents)), size[documents])
            offset = np.cumsum(size[documents]) - size[documents]
            within = np.arange(len(copies)) - offset[copies]
            every = begin[documents][copies] + within
            own = offset + documents - begin[documents]
            for drawn in labels:
                values = np.empty((len(documents), len(levels)))
                for column, level in enumerate(levels):
                    tried = drawn[every]
                    tried[own] = level
                    values[:, column] = self._differences(
                        self.query[documents], copies, every, tried
                    )
                means = np.sum(self.chances[documents] * values, axis=1, keepdims=True)
                swings[documents] += np.sum(self.chances[documents] * (values - means) ** 2, axis=1)
        return swings / len(labels)

    def _differences(self, queries: Ints, copies: Ints, every: Ints, labels: Doubles) -> Doubles:
        one, other = (
            self._values(relabelled(lists, queries, copies, rows[every], labels))
            for lists, rows in zip(self.lists, self.rows, strict=True)
        )
        return _gaps(one, other)

    def _values(self, lists: Joined) -> Doubles:
        return evaluate(self.measure, lists, conventions=self.conventions)[self.measure]


def _gaps(one: Doubles, other: Doubles) -> Doubles:
    """Return how much the second is above the first; 0 where one of them has no value."""
    gaps = other - one
    return np.where(np.isnan(gaps), 0.0, gaps)


def relabelled(
    joined: Joined, queries: Ints, copies: Ints, changed: Ints, values: Doubles
) -> Joined:
    """Copies of the lists of some queries, in which documents that were not judged have labels.

    Args:
        joined: The lists.
        queries: The query of each copy.
        copies: The copy of each document that gets a label, ascending.
        changed: Its row in ``joined``, -1 if it is not in the list, but in the pool all the same.
        values: Its label.
    """
    sizes = np.diff(joined.offsets)[queries]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.repeat(joined.offsets[queries] - offsets[:-1], sizes) + np.arange(offsets[-1])
    labels = joined.labels[rows]
    listed = changed >= 0
    at = changed[listed] + (offsets[:-1] - joined.offsets[queries])[copies[listed]]
    labels[at] = values[listed]
    added = np.bincount(copies, minlength=len(queries))
    known = np.diff(joined.judged_offsets)[queries]
    pool_offsets = np.concatenate(([0], np.cumsum(known + added)))
    pool = np.empty(pool_offsets[-1], np.float32)
    shift = np.concatenate(([0], np.cumsum(known)))[:-1]
    within = np.arange(known.sum()) - np.repeat(shift, known)
    judged = np.repeat(joined.judged_offsets[queries], known) + within
    pool[np.repeat(pool_offsets[:-1], known) + within] = joined.judged_labels[judged]
    shift = np.cumsum(added) - added
    pool[(pool_offsets[:-1] + known - shift)[copies] + np.arange(len(copies))] = values
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
        rows = np.flatnonzero(first)
        documents = take_rows(joined.document_ids, rows).to_pylist()
        keys = zip(query_of_row[rows].tolist(), documents, strict=True)
        row_of = dict(zip(keys, rows.tolist(), strict=True))
        return cls(joined, query_of_row, rank_of_row, first, row_of)

    def unjudged(self) -> list[tuple[int, str]]:
        missing = np.isnan(self.joined.labels).tolist()
        return [pair for pair, row in self.row_of.items() if missing[row]]

    def rows_of(self, pairs: list[tuple[int, str]]) -> Ints:
        """The row of each document, -1 if the run does not have it among the first."""
        return np.array([self.row_of.get(pair, -1) for pair in pairs], np.int64)

    def ranks_of(self, pairs: list[tuple[int, str]]) -> Ints:
        rows = self.rows_of(pairs)
        ranks = np.zeros(len(rows), np.int64)
        ranks[rows >= 0] = self.rank_of_row[rows[rows >= 0]]
        return ranks


def _levels(labels: NDArray[Any]) -> Doubles:
    """The labels in use; of very many, a few from the least to the greatest.

    Where all judged documents have one label, nothing would ever change: there is a better one.
    """
    levels = np.unique(np.asarray(labels, np.float64))
    if len(levels) == 1:
        levels = np.array([levels[0], levels[0] + 1.0])
    if len(levels) > _MOST_LEVELS:
        levels = levels[np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int)]
    return levels


def _chances(lists: list[_List], levels: Doubles, queries: int) -> NDArray[np.float64]:
    """How likely each level is in each query."""
    counts = np.zeros((queries, len(levels)))
    for each in lists:
        judged = each.first & ~np.isnan(each.joined.labels)
        nearest = np.abs(each.joined.labels[judged][:, None] - levels).argmin(axis=1)
        np.add.at(counts, (each.query_of_row[judged], nearest), 1.0)
    # One of each label: nothing that was not seen is impossible.
    overall = (counts.sum(axis=0) + 1.0) / (counts.sum() + len(levels))
    mixed = counts + _PRIOR * overall
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


def _draw(chances: NDArray[np.float64], count: int, random: np.random.Generator) -> Ints:
    """Levels drawn for each document, a row per draw."""
    ends = np.cumsum(chances, axis=1)[:, :-1]
    uniform = random.random((count, len(chances)))
    return np.asarray((uniform[:, :, None] >= ends).sum(axis=2), np.int64)

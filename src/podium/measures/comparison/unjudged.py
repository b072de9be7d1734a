"""What the documents that nobody judged could change about the difference of two systems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from podium.data import Judgments, Rankings
from podium.data.judged import Joined
from podium.data.query_rows import take_rows
from podium.data.seeds import generator
from podium.kernels import Doubles, Ints
from podium.measures.comparison.label_model import LabelModel, features_of, why_unknown
from podium.measures.conventions import Conventions
from podium.measures.evaluating import measure_all
from podium.measures.inputs import comparable_scores, inputs_of
from podium.measures.registry import Measure, definition_of

_DEPTH = 100
"""Documents further down than this are not considered, of measures without a cut-off."""
_MOST_LEVELS = 6
_DRAWS = 200
"""Draws of the labels of all unjudged documents, for what to expect of the difference."""
_TRIALS = 4
"""Those of the draws in which every document's label is tried out."""
_MOST_BOUNDED = 5_000
"""With more ways to assign labels to a query's documents, there are no bounds."""
_AT_ONCE = 2_000_000
"""Rows of lists that are evaluated at a time."""

_ROUNDING = 1e-12
"""Sums of values that are equal differ by less."""


@dataclass(frozen=True)
class UnjudgedBounds:
    """How far the unjudged documents among the first results could move a difference.

    They may have any of the labels in use; of other labels the bounds say nothing. Documents that
    neither system has among its first results, down to the cut-off of the measure or rank 100,
    stay as they are.

    Attributes:
        measure: The measure.
        system: The name of the system.
        unjudged: How many documents were not judged.
        queries: How many queries have any.
        difference: The mean difference, system minus baseline, as judged.
        labels: The least and the greatest of the labels in use: those of the judgments, 0, and one
            that is relevant.
        least: What the difference is at least, if the documents have labels in use; None if that
            is not known.
        most: What it is at most.
        exact: Whether labels exist that make it so; else the bounds hold, and may be wide.
    """

    measure: Measure
    system: str
    unjudged: int
    queries: int
    difference: float
    labels: tuple[float, float]
    least: float | None
    most: float | None
    exact: bool

    def could_pass(self, bound: float) -> bool:
        """Whether labels in use could put the difference on another side of a bound, or at it."""
        if self.least is None or self.most is None:
            return True
        offsets = np.array([self.least, self.difference, self.most]) - bound
        offsets[np.abs(offsets) < _ROUNDING] = 0.0
        return len(set(np.sign(offsets))) > 1

    @property
    def could_turn(self) -> bool:
        """Whether labels in use could change the sign of the difference."""
        return self.could_pass(0.0)


def unjudged_bounds(
    measure: Measure,
    conventions: Conventions,
    judgments: Judgments,
    baseline: Rankings,
    system: Rankings,
    *,
    name: str,
    query_ids: Sequence[str] | None = None,
) -> UnjudgedBounds:
    """Bound the mean difference over all labels in use that unjudged documents may have.

    Args:
        measure: The measure.
        conventions: Its conventions.
        judgments: What was judged.
        baseline: The rankings of the one system.
        system: Those of the other.
        name: The name of the other.
        query_ids: The queries that were compared; by default those with a value for both.
    """
    trial = LabelTrial.of(measure, conventions, judgments, baseline, system)
    differences = trial.as_judged()
    if query_ids is not None:
        compared = np.isin(judgments.query_ids.to_pylist(), query_ids)
        differences = np.where(compared, differences, np.nan)
    return trial_bounds(trial, differences, name)


def trial_bounds(trial: LabelTrial, differences: Doubles, name: str) -> UnjudgedBounds:
    """Bound the mean of differences, as judged, that unjudged documents may change."""
    known = ~np.isnan(differences)
    least, most, certain = differences.copy(), differences.copy(), known.copy()
    bounds = trial.bounds()
    for bound in bounds or ():
        least[bound.query], most[bound.query] = bound.least, bound.most
        # A query that has no value with some labels is not in the mean with these.
        certain[bound.query] &= bound.certain
    return UnjudgedBounds(
        measure=trial.measure,
        system=name,
        unjudged=len(trial.query),
        queries=len(np.unique(trial.query)),
        difference=float(np.nanmean(differences)),
        labels=(float(trial.levels[0]), float(trial.levels[-1])),
        least=None if bounds is None else -_largest_mean(-least, certain),
        most=None if bounds is None else _largest_mean(most, certain),
        exact=bounds is not None and all(each.exact and certain[each.query] for each in bounds),
    )


def _largest_mean(values: Doubles, certain: NDArray[np.bool_]) -> float:
    """The largest mean of the values that are certain and any of the others; NaN is left out."""
    total, count = float(values[certain].sum()), int(certain.sum())
    others = values[~certain]
    for value in np.sort(others[~np.isnan(others)])[::-1].tolist():
        if count and value * count <= total:
            break
        total, count = total + value, count + 1
    return total / count


@dataclass(frozen=True, eq=False)
class LikelyLabels:
    """Labels that unjudged documents may have.

    Attributes:
        labels: A row per draw, each from another model that the judged documents allow.
        chances: The mean chance of each label, a row per document.
        why_unknown: Why they cannot be drawn as they are likely to be; "" if they can.
    """

    labels: NDArray[np.float64]
    chances: NDArray[np.float64]
    why_unknown: str


@dataclass(frozen=True)
class _QueryBounds:
    """Bounds of one query's difference; whether it has a value with all labels; if exact."""

    query: int
    least: float
    most: float
    certain: bool
    exact: bool


@dataclass(frozen=True, eq=False)
class LabelTrial:
    """Lists of two systems whose unjudged documents get labels; those of a query are adjacent.

    The measure itself is evaluated each time, its ideal ranking with it, so any measure of labels
    will do.
    """

    measure: Measure
    conventions: Conventions
    depth: int
    lists: list[Joined]
    rows: list[Ints]
    query: Ints
    document_ids: tuple[str, ...]
    levels: Doubles
    bound_levels: Doubles
    has_best_order: bool
    every_query: Ints
    every_rank: Ints
    known: NDArray[np.bool_]
    known_levels: Ints

    @classmethod
    def of(
        cls,
        measure: Measure,
        conventions: Conventions,
        judgments: Judgments,
        baseline: Rankings,
        system: Rankings,
    ) -> LabelTrial:
        """Take the first results of two systems, down to the cut-off of the measure."""
        own, definition = conventions.of(measure), definition_of(measure)
        cut_off = own.cut_off_of(measure)
        depth = cut_off or _DEPTH
        lists = [_List.of(run.join(judgments), depth, own) for run in (baseline, system)]
        pairs = sorted(lists[0].first | lists[1].first)
        rows = [each.rows_of(pairs) for each in lists]
        labels = np.full(len(pairs), np.nan)
        for each, at in zip(lists, rows, strict=True):
            labels[at >= 0] = each.joined.labels[at[at >= 0]]
        known = ~np.isnan(labels)
        joined = [each.joined for each in lists]
        ranks = np.column_stack([each.ranks_of(at) for each, at in zip(lists, rows, strict=True)])
        if cut_off is not None and own.pool == "judged" and own.unjudged == "irrelevant":
            # What is below the cut-off changes nothing, and takes time.
            for side, each in enumerate(lists):
                joined[side], new = each.shortened()
                rows[side] = (
                    np.where(rows[side] >= 0, new[rows[side]], -1) if len(new) else rows[side]
                )
        levels, all_levels = _levels(judgments.labels, own.relevant_from)
        binary = "rel" in {each.name for each in definition.parameters} and not (
            measure.name == "RBP" and own.rbp_gain == "label"
        )
        query = np.array([query for query, _ in pairs], np.int64)
        return cls(
            measure=measure,
            conventions=conventions,
            depth=depth,
            lists=joined,
            rows=[each[~known] for each in rows],
            query=query[~known],
            document_ids=tuple(np.array([each for _, each in pairs], object)[~known].tolist()),
            levels=levels,
            bound_levels=levels[[0, -1]] if binary else levels if all_levels else levels[:0],
            has_best_order=definition.monotone and own.ties != "quicksort",
            every_query=query,
            every_rank=ranks,
            known=known,
            known_levels=np.abs(labels[known, None] - levels).argmin(axis=1),
        )

    @property
    def ranks(self) -> Ints:
        """The ranks of unjudged documents, 0 if they are not among the first."""
        ranks = self.every_rank[~self.known]
        return np.where(ranks <= self.depth, ranks, 0)

    def as_judged(self) -> Doubles:
        """Each query's difference, system minus baseline; NaN where the measure has no value."""
        one, other = (self._values(each) for each in self.lists)
        return other - one

    def likely_labels(self, random_state: int = 0) -> LikelyLabels:
        """Draw the labels of unjudged documents, by what is learned from the judged ones."""
        levels, known = self.known_levels, self.known
        why = why_unknown(self.every_rank, self.every_query, known, levels, self.depth)
        learned = np.flatnonzero(known)
        if not (levels == 0).any():  # relevant documents say nothing of how rare they are
            learned, levels = learned[:0], levels[:0]
        features = features_of(self.every_rank)
        model = LabelModel.fit(
            features[learned],
            self.every_query[learned],
            levels,
            len(self.levels),
            len(self.lists[0].query_ids),
        )
        drawn, chances = model.draw(features[~known], self.query, _DRAWS, generator(random_state))
        return LikelyLabels(self.levels[drawn], chances, why if len(self.query) else "")

    def bounds(self, most_tried: int = 256) -> list[_QueryBounds] | None:
        """Bounds of every query with unjudged documents; None if there are none for one of them.

        Few labelings are all tried. Of many, those with the same numbers of each label are taken
        together: the ideal ranking is the same, and no order of these labels is better for a
        system than that of its ranks, or worse than the reverse. The two systems' extremes need
        not go together, so the bounds are safe, but not exact.
        """
        queries, first, sizes = np.unique(self.query, return_index=True, return_counts=True)
        count = len(self.bound_levels)
        ways = [math.comb(size + count - 1, size) for size in sizes.tolist()]
        exact = [count**size <= most_tried for size in sizes.tolist()]
        if not len(queries):
            return []
        if not count or any(
            not few and (many > _MOST_BOUNDED or not self.has_best_order)
            for few, many in zip(exact, ways, strict=True)
        ):
            return None
        low, high = [], []
        for side, ranks in enumerate(self.every_rank[~self.known].T):
            tried = []
            for begin, size, few in zip(first.tolist(), sizes.tolist(), exact, strict=True):
                levels = tuple(self.bound_levels.tolist())
                if few:
                    tried.append(np.array(list(product(levels, repeat=size))))
                    continue
                own = ranks[begin : begin + size]
                order = np.argsort(np.where(own > 0, own, np.inf), kind="stable")
                sorted_labels = _multisets(levels, size)
                both = np.empty((2, *sorted_labels.shape))
                both[0][:, order], both[1][:, order] = sorted_labels, sorted_labels[:, ::-1]
                tried.append(both.reshape(-1, size))
            values = self._values_of(side, queries, first, tried)
            both_ends = [
                each[None] if few else each.reshape(2, -1)
                for each, few in zip(values, exact, strict=True)
            ]
            low.append([each.min(axis=0) for each in both_ends])
            high.append([each.max(axis=0) for each in both_ends])
        bounds = []
        for index, query in enumerate(queries.tolist()):
            least, most = low[1][index] - high[0][index], high[1][index] - low[0][index]
            certain = ~np.isnan(least)
            bounds.append(
                _QueryBounds(
                    query,
                    float(least[certain].min()) if certain.any() else math.nan,
                    float(most[certain].max()) if certain.any() else math.nan,
                    bool(certain.all()),
                    exact[index],
                )
            )
        return bounds

    def _values_of(
        self, side: int, queries: Ints, first: Ints, tried: list[NDArray[np.float64]]
    ) -> list[Doubles]:
        """One system's values for labelings of each query's documents, a row per labeling."""
        lengths = np.diff(self.lists[side].offsets)[queries]
        costs = np.cumsum(
            [len(each) * (size + 1) for each, size in zip(tried, lengths, strict=True)]
        )
        values = []
        for batch in np.split(
            np.arange(len(queries)), np.flatnonzero(np.diff(costs // _AT_ONCE)) + 1
        ):
            repeats = [len(tried[index]) for index in batch]
            sizes = [tried[index].shape[1] for index in batch]
            every = [
                np.tile(first[index] + np.arange(size), repeat)
                for index, size, repeat in zip(batch, sizes, repeats, strict=True)
            ]
            lists = relabeled(
                self.lists[side],
                np.repeat(queries[batch], repeats),
                np.repeat(np.arange(sum(repeats)), np.repeat(sizes, repeats)),
                self.rows[side][np.concatenate(every)],
                np.concatenate([tried[index].ravel() for index in batch]),
            )
            values += np.split(self._values(lists), np.cumsum(repeats)[:-1])
        return values

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

    def expectation(self, likely: LikelyLabels) -> tuple[float, float]:
        """The mean difference over all draws of labels, and its standard deviation."""
        # Means of equal numbers are not always equal to them, but those of zeros are.
        now = float(np.nanmean(self.as_judged()))
        shifts = np.nanmean(self.of_draws(likely.labels), axis=1) - now
        return now + float(shifts.mean()), float(shifts.std(ddof=1))

    def swings(self, likely: LikelyLabels) -> Doubles:
        """The variance of its query's difference that is due to each document's label.

        The labels of others are as drawn.
        """
        labels, chances = likely.labels[:_TRIALS], likely.chances
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
                    changed = self._differences(self.query[documents], copies, every, tried)
                    values[:, column] = np.nan_to_num(changed)
                means = np.sum(chances[documents] * values, axis=1, keepdims=True)
                swings[documents] += np.sum(chances[documents] * (values - means) ** 2, axis=1)
        return swings / len(labels)

    def _differences(self, queries: Ints, copies: Ints, every: Ints, labels: Doubles) -> Doubles:
        one, other = (
            self._values(relabeled(lists, queries, copies, rows[every], labels))
            for lists, rows in zip(self.lists, self.rows, strict=True)
        )
        return other - one

    def _values(self, lists: Joined) -> Doubles:
        return measure_all([self.measure], self.conventions, inputs_of(lists, None))[self.measure]


def relabeled(
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
    """A run with labels, its ranks, and which of its documents are among the first."""

    joined: Joined
    rank_of_row: Ints
    is_first: NDArray[np.bool_]
    row_of: dict[tuple[int, str], int]

    @classmethod
    def of(cls, joined: Joined, depth: int, conventions: Conventions) -> _List:
        sizes = np.diff(joined.offsets)
        query = np.repeat(np.arange(len(sizes)), sizes)
        scores = comparable_scores(joined.scores, conventions.score_precision)
        documents = joined.document_ids.to_pylist()
        keys = [-scores, query]
        by_id = conventions.ties in ("id descending", "id ascending")
        if by_id and documents:
            ids = np.unique(documents, return_inverse=True)[1]
            keys.insert(0, -ids if conventions.ties == "id descending" else ids)
        order = np.lexsort(keys)
        rank = np.arange(len(order)) - np.repeat(joined.offsets[:-1], sizes) + 1
        best = rank
        if not by_id and conventions.ties != "input order":
            # Whatever is tied with the last document of the first may be among them.
            begins = np.diff(scores[order], prepend=np.inf) != 0
            begins |= rank == 1
            best = rank[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
        ranks, is_first = np.empty_like(rank), np.empty(len(rank), np.bool_)
        ranks[order], is_first[order] = rank, best <= depth
        row_of = dict(
            zip(zip(query.tolist(), documents, strict=True), range(len(rank)), strict=True)
        )
        return cls(joined, ranks, is_first, row_of)

    @property
    def first(self) -> set[tuple[int, str]]:
        is_first = self.is_first.tolist()
        return {pair for pair, row in self.row_of.items() if is_first[row]}

    def rows_of(self, pairs: list[tuple[int, str]]) -> Ints:
        """The row of each document, -1 if the run does not have it."""
        return np.array([self.row_of.get(pair, -1) for pair in pairs], np.int64)

    def ranks_of(self, rows: Ints) -> Ints:
        """The ranks of rows, 0 of those that do not exist."""
        return np.where(rows >= 0, self.rank_of_row[rows], 0) if len(self.rank_of_row) else 0 * rows

    def shortened(self) -> tuple[Joined, Ints]:
        """The list without what is not among the first, and the new row of each one, or -1."""
        kept = np.flatnonzero(self.is_first)
        rows = np.where(self.is_first, np.cumsum(self.is_first) - 1, -1)
        before = np.concatenate(([0], np.cumsum(self.is_first)))
        return replace(
            self.joined,
            offsets=before[self.joined.offsets],
            document_ids=take_rows(self.joined.document_ids, kept),
            scores=self.joined.scores[kept],
            labels=self.joined.labels[kept],
        ), rows


def _levels(labels: NDArray[Any], relevant_from: float) -> tuple[Doubles, bool]:
    """The labels in use, and whether these are all; of very many, a few from least to greatest.

    There is always an irrelevant one and a relevant one: judgments may list nothing but relevant
    documents, and where all that were judged are irrelevant, another need not be.
    """
    levels = np.unique(np.append(np.asarray(labels, np.float64), 0.0))
    if levels[-1] < relevant_from:
        levels = np.append(levels, max(relevant_from, 1.0))
    if len(levels) > _MOST_LEVELS:
        return levels[np.linspace(0, len(levels) - 1, _MOST_LEVELS).round().astype(int)], False
    return levels, True


@cache
def _multisets(levels: tuple[float, ...], size: int) -> NDArray[np.float64]:
    """All ways to choose a number of labels, one per row, largest first."""
    return np.array(list(combinations_with_replacement(levels[::-1], size)))

"""As much of a column as requirements allow: margin or freshness beside relevance.

The column gets a growing share of the weight: of the score in a fusion, of the loss in a ranker.
Requirements are tested at one share after the other, on queries that did not choose the other
weights, up to the first that is not shown: so however many shares there are, one that breaks a
requirement ships at most as often as the level says (fixed-sequence testing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from podium.data import Dataset, Judgments, Rankings
from podium.data.dataset import concat_datasets
from podium.data.preferences import Preferences
from podium.data.sources import TableSource
from podium.errors import ArgumentError, DataError
from podium.hybrid.fusion import Fusion
from podium.hybrid.tuning import (
    Chooser,
    Columns,
    JudgedLists,
    held_out_parts,
)
from podium.kernels import Doubles, Ints
from podium.measures import Conventions, require
from podium.measures.comparison.decision import Decision, Requirement
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.slices import QueryProperties
from podium.measures.comparison.statistics import Difference, paired_difference
from podium.measures.evaluation import ByMeasure
from podium.measures.registry import Measure
from podium.rankers import Ranker

SHARES = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
LOSS_SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_PARTS = 10
"""In how many parts of the queries prices are taken of the share that the others choose."""
_OBJECTIVE = re.compile(r"\s*mean\(\s*([^()]{1,200}?)\s*\)\s*@\s*([1-9]\d{0,3})\s*")


@dataclass(frozen=True)
class ColumnShare:
    """What a share of the weight for the column does on held-out queries.

    Attributes:
        share: The share.
        objective: The mean of the objective.
        gain: Its difference from the baseline.
        value: The mean of the measure.
        price: The measure's difference from the baseline.
        decision: Whether the requirements are shown; None after the first share where they are not.
    """

    share: float
    objective: float
    gain: Difference
    value: float
    price: Difference
    decision: Decision | None

    @property
    def shown(self) -> bool:
        """Whether all requirements are shown."""
        return self.decision is not None and self.decision.shown


@dataclass(frozen=True, eq=False)
class Balance:
    """A fusion, or a fitted ranker, with as much of a column as the requirements allow.

    Attributes:
        model: The fusion, its other weights chosen on all queries, or the ranker fitted to all.
        column: The column.
        depth: The depth of the objective's mean.
        measure: The measure that the other weights were chosen for.
        baseline: The objective's mean, and the measure's, of the baseline.
        shares: The frontier, by growing share; of a ranker, up to the first that is not shown.
        chosen: The share that ships; None if the requirements are not shown for the smallest, or
            nothing is gained.
        price: What that costs in the measure: the mean over queries, each under the share that is
            chosen without it and a tenth of the others; NaN if nothing ships. The price of the
            chosen row itself may be too good, since a share that looked cheap was chosen.
        counts: How many queries and documents were used and left out, in words.
        coverage: What there is to know of unjudged documents, of each list and of the baseline.
    """

    model: Fusion | Ranker
    column: str
    depth: int
    measure: Measure
    baseline: tuple[float, float]
    shares: tuple[ColumnShare, ...]
    chosen: ColumnShare | None
    price: float
    counts: Mapping[str, int]
    coverage: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What ships, in a sentence."""
        if self.chosen is None:
            shown = any(each.shown for each in self.shares)
            lacks = "gains anything" if shown else "is shown to meet the requirements"
            return f"No share of {self.column} {lacks}: it is left out."
        gain = self.chosen.gain
        ends = f" ({gain.low:+.4g} to {gain.high:+.4g})" if np.isfinite(gain.low) else ""
        return (
            f"A share of {self.chosen.share:g} for {self.column}: {gain.mean:+.4g}{ends} for "
            f"{self.price:+.4f} {self.measure!r}."
        )


def balance_fusion(
    truth: Judgments | Preferences | TableSource,
    runs: Mapping[str, Rankings | TableSource],
    maximize: str,
    requirements: Sequence[str],
    columns: Columns,
    *,
    measure: str | Measure = "nDCG@10",
    conventions: Conventions | str | None = None,
    baseline: Fusion | None = None,
    properties: QueryProperties | None = None,
    level: float = 0.05,
    folds: int = 10,
    depth: int | None = None,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Balance:
    """Give a column of the documents as much weight as the requirements allow.

    Args:
        truth: Judgments or preferences.
        runs: What each list returned, by its name: result lists, or the run of any ranker.
        maximize: ``"mean(margin)@10"``: the mean of a column over the first 10 documents that
            have a number.
        requirements: In the language of ``require``: ``"nDCG@10 >= baseline - 0.5%"``.
        columns: The column, and others that are lists.
        measure: What the other weights are chosen for.
        conventions: What to do where tools disagree.
        baseline: What the requirements call ``baseline``; by default what is chosen for the
            measure alone.
        properties: Properties of the queries, for requirements of slices.
        level: How often what ships may break a requirement.
        folds: How many parts of the queries are held out in turn.
        depth: How many documents of each list count; all by default.
        random_state: The seed of the folds.
        progress: Called with the number of folds done, and all.

    Example:
        >>> truth = {f"q{number}": {"a": 1, "b": 0, "c": 0} for number in range(60)}
        >>> run = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in truth}
        >>> margin = {"margin": {"a": 1.0, "b": 2.0, "c": 9.0}}
        >>> requirement = ["nDCG@2 >= baseline - 20%"]
        >>> result = balance_fusion(truth, {"bm25": run}, "mean(margin)@2", requirement, margin)
        >>> result.chosen.gain.mean > 0, round(result.chosen.price.mean, 3)
        (True, 0.0)
    """
    column, top, parsed = _parsed(maximize, requirements)
    if column not in columns:
        raise ArgumentError(f"there is no column {column!r}", hint=f"Give {column}=TABLE.")
    others = {name: values for name, values in columns.items() if name != column}
    base = JudgedLists.of(truth, runs, measure, conventions, others, least_lists=1)
    assert base.inputs.document_ids is not None
    documents = base.inputs.document_ids.to_pylist()
    numbers = np.array([columns[column].get(each, np.nan) for each in documents], np.float64)
    counts = base.counts | {f"documents without {column}": int(np.isnan(numbers).sum())}
    if np.isnan(numbers).all():
        raise DataError(f"no document of the lists has a {column}", hint="Compare the ids.")
    judged = replace(
        base, lists=(*base.lists, column), columns=(*base.columns, column),
        votes=np.column_stack([base.votes, numbers]), known={},
    )  # fmt: skip
    # Weights of other means are not shares of the score.
    choose = Chooser(
        base, combinations=("arithmetic", "rrf"), depth=depth, random_state=random_state
    ).choice
    scores = {share: np.full(base.rows, np.nan) for share in (0.0, *SHARES)}
    parts = held_out_parts(base.usable, folds, random_state)
    for number, part in enumerate(parts):
        rows = base.rows_of(part)
        fusion = choose(np.setdiff1d(base.usable, part))
        for share, of_rows in scores.items():
            of_rows[rows] = judged.scores(_with_share(fusion, column, share))[rows]
        if progress is not None:
            progress(number + 1, len(parts))
    if baseline is not None:
        scores[0.0] = judged.scores(_of_lists(baseline, judged))
    tests = _Frontier(judged, numbers, top, parsed, properties, level, random_state)
    shares = tuple(tests.follow(scores[0.0], ((share, scores[share]) for share in SHARES)))
    chosen = _largest(shares)
    fusion = choose(base.usable)
    if chosen is not None:
        fusion = _with_share(fusion, column, chosen.share)
    elif baseline is not None:
        fusion = baseline
    return tests.balance(fusion, column, shares, counts)


def balance_ranker(
    ranker: Ranker,
    data: Dataset,
    maximize: str,
    requirements: Sequence[str],
    *,
    measure: str | Measure = "nDCG@10",
    conventions: Conventions | str | None = None,
    properties: QueryProperties | None = None,
    level: float = 0.05,
    folds: int = 5,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Balance:
    """Fit a ranker to relevance and to as much of a feature as the requirements allow.

    Labels stay relevance. The ranker's own loss is minimized of both: of the labels, and with the
    share as its weight, of the order of each query's documents by the feature. For every ranker
    that takes weights of queries: linear, trees, networks.

    Args:
        ranker: The ranker; a copy is fitted.
        data: Features and labels of queries.
        maximize: ``"mean(margin)@10"``: the mean of a feature over the first 10 documents that
            have a number.
        requirements: In the language of ``require``; ``baseline`` is the ranker fitted to the
            labels alone.
        measure: The measure that reports show the price in.
        conventions: What to do where tools disagree.
        properties: Properties of the queries, for requirements of slices.
        level: How often what ships may break a requirement.
        folds: How many parts of the queries are held out in turn.
        random_state: The seed of the folds.
        progress: Called with the number of fits done, and the most there may be.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((3000, 2))
        >>> data = Dataset.from_arrays(
        ...     X, np.round(2 * X[:, 0]), group=[20] * 150, feature_names=["words", "margin"]
        ... )
        >>> ranker, requirement = LinearRanker("PairLogistic(k=10)"), "nDCG@10 >= baseline - 5%"
        >>> result = balance_ranker(ranker, data, "mean(margin)@10", [requirement], folds=2)
        >>> result.chosen.gain.mean > 0.05, bool(result.model.coef_[1] > 0)
        (True, True)
    """
    column, top, parsed = _parsed(maximize, requirements)
    if column not in data.feature_names:
        raise ArgumentError(
            f"there is no feature {column!r}",
            hint=f"There are {', '.join(data.feature_names[:9])}.",
        )
    if not ranker.takes_weights:
        raise ArgumentError(
            f"{type(ranker).__name__} has no weights of queries",
            hint="Use a linear, tree or neural ranker, or weigh its run: podium hybrid tune.",
        )
    values = np.asarray(data.features[:, data.feature_names.index(column)], np.float64)
    if np.isnan(values).all():
        raise DataError(f"no document has a {column}", hint="Compare the ids.")
    queries = data.query_id_of_row()
    rows = np.arange(data.rows)
    names = rows.astype(str)
    judged = JudgedLists.of(
        Judgments.from_columns(queries, names, data.labels),
        {"rows": Rankings.from_columns(queries, names, rows.astype(np.float64))},
        measure, conventions, least_lists=1,
    )  # fmt: skip
    order = judged.votes[:, 0].astype(np.int64)
    at = {name: number for number, name in enumerate(data.query_ids.to_pylist())}
    usable = np.array([at[judged.inputs.query_ids[each].as_py()] for each in judged.usable])
    parts = held_out_parts(usable, folds, random_state)
    most, done = 1 + folds * (1 + len(LOSS_SHARES)), 0

    def fitted(share: float, rows: Dataset) -> Ranker:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, most)
        copy: Ranker = clone(ranker)
        if not share:
            return copy.fit(rows)
        second = _ordered_by(rows, column)
        weights = np.repeat([1 - share, share], len(rows))
        return copy.fit(concat_datasets([rows, second]), sample_weight=weights)

    def held_out(share: float) -> Doubles:
        scores = np.full(data.rows, np.nan)
        for part in parts:
            others = np.setdiff1d(np.arange(len(data)), part)
            own = np.concatenate([rows[data.offsets[q] : data.offsets[q + 1]] for q in part])
            scores[own] = fitted(share, data.select(others)).predict(data.select(part))
        return scores[order]

    tests = _Frontier(judged, values[order], top, parsed, properties, level, random_state)
    shares = []
    for each in tests.follow(held_out(0.0), ((share, held_out(share)) for share in LOSS_SHARES)):
        shares.append(each)
        if not each.shown:
            break
    chosen = _largest(shares)
    model = fitted(0.0 if chosen is None else chosen.share, data)
    if progress is not None:
        progress(most, most)
    counts = {
        "queries": len(usable),
        "queries that prefer no document": len(data) - len(usable),
        f"documents without {column}": int(np.isnan(values).sum()),
    }
    return tests.balance(model, column, tuple(shares), counts)


def _parsed(maximize: str, requirements: Sequence[str]) -> tuple[str, int, list[Requirement]]:
    match = _OBJECTIVE.fullmatch(maximize)
    if match is None:
        raise ArgumentError(f"{maximize[:60]!r} is not an objective", hint="Write mean(COLUMN)@10.")
    if not requirements:
        raise ArgumentError(
            f"{maximize} without a requirement would be all that counts",
            hint="Add one, such as 'nDCG@10 >= baseline - 0.5%'.",
        )
    return match[1], int(match[2]), [Requirement.parse(text) for text in requirements]


class _Frontier:
    """Tests shares in turn, up to the first whose requirements are not shown."""

    def __init__(
        self,
        judged: JudgedLists,
        numbers: Doubles,
        top: int,
        requirements: Sequence[Requirement],
        properties: QueryProperties | None,
        level: float,
        random_state: int,
    ) -> None:
        self._judged, self._numbers, self._top = judged, numbers, top
        self._requirements, self._properties = requirements, properties
        self._level, self._seed = level, random_state
        self._comparison: Comparison | None = None
        self._parts = held_out_parts(
            np.arange(len(judged.usable)), min(_PARTS, len(judged.usable)), random_state
        )
        self._prices = np.zeros(len(judged.usable))

    def follow(
        self, baseline: Doubles, shares: Iterable[tuple[float, Doubles]]
    ) -> Iterator[ColumnShare]:
        """Yield what each share does, given the scores of the rows."""
        judged = self._judged
        first = judged.rankings(baseline, judged.usable, "baseline")
        before = self._before = self._objective(baseline)
        measures = [each.measure for each in self._requirements]
        testing, parts = True, self._parts
        for share, scores in shares:
            name = f"share {share:g}"
            run = judged.rankings(scores, judged.usable, name)
            comparison = judged.compare({"baseline": first, name: run}, self._seed, measures)
            decision = None
            if testing:
                decision = self._decision(comparison)
                testing = decision.shown
                if testing or self._comparison is not None:
                    parts = self._priced(comparison, parts)
            after = self._objective(scores)
            both = ~np.isnan(before) & ~np.isnan(after)
            if not both.any():
                raise DataError(
                    f"no list has a number in its first {self._top}", hint="Compare the ids."
                )
            self._comparison = comparison
            yield ColumnShare(
                share,
                float(after[both].mean()),
                paired_difference(after[both], before[both], random_state=self._seed),
                comparison.summaries[judged.measure][name].mean,
                comparison.against_baseline[judged.measure][name].difference,
                decision,
            )

    def _decision(self, comparison: Comparison) -> Decision:
        return require(
            comparison, *self._requirements, properties=self._properties, level=self._level
        )

    def _priced(self, comparison: Comparison, parts: Sequence[Ints]) -> list[Ints]:
        """Take prices for the parts of the queries whose others show a share; return these."""
        shown = []
        values = comparison.values[self._judged.measure]
        for part in parts:
            rest = np.delete(np.arange(len(values)), part)
            tables = (comparison.values, comparison.empty_values)
            some, nothing = (ByMeasure({m: rows[rest] for m, rows in t.items()}) for t in tables)
            ids = tuple(comparison.query_ids[each] for each in rest)
            without = replace(
                comparison, query_ids=ids, values=some, empty_values=nothing, source=None
            )  # without a source, which has all queries: their coverage is decided on with all
            if self._decision(without).shown:
                self._prices[part] = values[part, 1] - values[part, 0]
                shown.append(part)
        return shown

    def balance(
        self,
        model: Fusion | Ranker,
        column: str,
        shares: tuple[ColumnShare, ...],
        counts: Mapping[str, int],
    ) -> Balance:
        """Return the frontier with the largest share that is shown."""
        comparison, measure = self._comparison, self._judged.measure
        assert comparison is not None
        values = float(np.nanmean(self._before)), comparison.summaries[measure]["baseline"].mean
        chosen = _largest(shares)
        price = float("nan") if chosen is None else float(self._prices.mean())
        return Balance(
            model, column, self._top, measure, values, shares, chosen, price, counts,
            self._judged.coverage_of(comparison, "baseline"),
        )  # fmt: skip

    def _objective(self, scores: Doubles) -> Doubles:
        """Return the mean of the column over each query's first documents that have a number."""
        offsets = self._judged.inputs.offsets
        values = np.full(len(offsets) - 1, np.nan)
        for query in self._judged.usable:
            rows = slice(offsets[query], offsets[query + 1])
            shown = self._numbers[rows][np.argsort(-scores[rows], kind="stable")[: self._top]]
            known = shown[~np.isnan(shown)]
            if len(known):
                values[query] = known.mean()
        return values


def _largest(shares: Sequence[ColumnShare]) -> ColumnShare | None:
    """Return the largest share whose requirements are shown, and which gains."""
    return next((each for each in reversed(shares) if each.shown and each.gain.mean > 0), None)


def _ordered_by(data: Dataset, column: str) -> Dataset:
    """Return the queries with labels by the order of a feature, on the scale of the labels.

    A document without a number is in the middle of its query.
    """
    from scipy.stats import rankdata

    values = data.features[:, data.feature_names.index(column)]
    places = np.full(data.rows, 0.5)
    for begin, end in pairwise(data.offsets):
        known = begin + np.flatnonzero(~np.isnan(values[begin:end]))
        if len(known) > 1:
            places[known] = (rankdata(values[known]) - 1) / (len(known) - 1)
    low, high = float(data.labels.min()), float(data.labels.max())
    ids = [f"{column} of {name}" for name in data.query_ids.to_pylist()]
    labels = (low + places * (high - low)).astype(np.float32)
    return replace(data, query_ids=pa.array(ids, data.query_ids.type), labels=labels)


def _with_share(fusion: Fusion, column: str, share: float) -> Fusion:
    """Return a fusion that gives a column a share of the weight."""
    weights = (*((1.0 - share) * each for each in fusion.weights), share)
    return replace(
        fusion, lists=(*fusion.lists, column), weights=weights, columns=(*fusion.columns, column)
    )


def _of_lists(fusion: Fusion, judged: JudgedLists) -> Fusion:
    """Return a fusion with weight 0 for the lists that it does not have."""
    unknown = [name for name in fusion.lists if name not in judged.lists]
    if unknown:
        raise DataError(
            f"the baseline has a list {unknown[0]!r}", hint=f"Give {unknown[0]}=RUN, too."
        )
    weights = dict(zip(fusion.lists, fusion.weights, strict=True))
    every = tuple(weights.get(name, 0.0) for name in judged.lists)
    return replace(fusion, lists=judged.lists, weights=every, columns=judged.columns)

"""Weights of a fusion chosen on judged queries, and what they gain on queries that chose nothing.

Whole queries are held out in turn. Everything that looks at judgments, the baselines that have a
choice included, sees the other queries only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias
from warnings import catch_warnings

import numpy as np
from numpy.typing import ArrayLike

from podium.aggregation import stack_runs, tuned_weights
from podium.data import Dataset, Judgments, Rankings
from podium.data.preferences import Preferences
from podium.data.query_rows import take_rows
from podium.data.seeds import generator
from podium.data.sources import TableSource, as_judgments, as_rankings
from podium.errors import ArgumentError, CoverageWarning, DataError
from podium.hybrid.fusion import (
    COMBINATIONS,
    Combination,
    Fusion,
    Normalization,
    QueryWeights,
    fuse,
    normalize,
)
from podium.judging import preference_judgments
from podium.kernels import Doubles, Ints
from podium.losses import Loss
from podium.measures import Conventions, compare, require
from podium.measures.comparison.decision import Decision
from podium.measures.comparison.result import Comparison
from podium.measures.comparison.statistics import Difference, holm
from podium.measures.coverage import coverage_of, refuse_unjudged
from podium.measures.evaluating import measure_all
from podium.measures.inputs import Inputs, fixed, inputs_of
from podium.measures.presets import resolve_measures
from podium.measures.registry import Measure, definition_of

CHOICE = "choice"
RRF = "RRF 60"
EQUAL = "equal weights"
SINGLE = "best single list"
GRID = "grid of 0.1"
PER_QUERY = "weights per query"

TRIED: tuple[Normalization, ...] = ("min-max", "l2", "z-score", "rank")
"""What is tried: lists whose scores need no normalization are rare."""
_INNER_FOLDS = 5
_LEAST_QUERIES = 10
_RANDOM_WEIGHTS = 150
"""How many weights are drawn for more lists than a grid is for."""

Columns: TypeAlias = Mapping[str, Mapping[str, float]]
"""A number for documents, by the name of the column and the document's id."""


@dataclass(frozen=True)
class Row:
    """What one way to choose a fusion is worth.

    Attributes:
        name: How the fusion is chosen.
        fusion: What it chooses on all queries.
        in_sample: The mean of that on the queries which chose it.
        held_out: The mean on queries that chose nothing.
        gain: What Podium's choice gains over it, on the latter, as ``with_optimism`` returns it;
            None for the choice itself.
        p_value: The p-value of the gain, Holm-corrected over the other ways.
    """

    name: str
    fusion: Fusion
    in_sample: float
    held_out: float
    gain: Difference | None = None
    p_value: float = float("nan")

    @property
    def optimism(self) -> float:
        """How much more the mean is on the queries that chose."""
        return self.in_sample - self.held_out


@dataclass(frozen=True, eq=False)
class HybridTuning:
    """A fusion chosen on judged queries.

    Attributes:
        fusion: The fusion, chosen on all queries.
        measure: What it was chosen for.
        rows: The choice, and the baselines that it is compared with.
        comparison: The held-out results of all of them; the choice is the first system.
        folds: What was chosen in each fold.
        counts: How many queries and documents were used and left out, in words.
        per_query: Whether weights per query gain on held-out queries; None if not asked for.
        coverage: What there is to know of unjudged documents, of each list and of the choice.
    """

    fusion: Fusion
    measure: Measure
    rows: tuple[Row, ...]
    comparison: Comparison = field(repr=False)
    folds: tuple[Fusion, ...] = field(repr=False)
    counts: Mapping[str, int] = field(default_factory=dict)
    per_query: Decision | None = field(default=None, repr=False)
    coverage: tuple[str, ...] = ()

    def behind(self, level: float = 0.05) -> list[str]:
        """Return the baselines that the choice is significantly behind on held-out queries."""
        worse = -1.0 if self.measure.larger_is_better else 1.0
        return [
            row.name
            for row in self.rows
            if row.gain is not None and worse * row.gain.mean > 0 and row.p_value < level
        ]


def tune_fusion(
    truth: Judgments | Preferences | TableSource,
    runs: Mapping[str, Rankings | TableSource],
    *,
    measure: str | Measure = "nDCG@10",
    conventions: Conventions | str | None = None,
    folds: int = 10,
    columns: Columns | None = None,
    normalizations: Sequence[Normalization] = TRIED,
    combinations: Sequence[Combination] = COMBINATIONS,
    depth: int | None = None,
    loss: Loss | str | None = None,
    query_features: Mapping[str, Sequence[float]] | None = None,
    feature_names: Sequence[str] = (),
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> HybridTuning:
    """Choose a fusion of result lists on judged queries, and measure it on held-out ones.

    In each fold the best weights of every form are averaged over near-best ones, and the best form
    is found by a cross-validation within the fold. It is chosen only if it gains more than one
    standard error over the best of the simple fusions: RRF 60, equal weights, a single list.

    Args:
        truth: Judgments or preferences, in any form that ``evaluate`` takes. For a measure of
            labels, preferences become the labels of their top k, as ``preference_judgments`` does.
        runs: What each list returned, by its name.
        measure: What to choose for.
        conventions: What to do where tools disagree, as ``evaluate`` takes it.
        folds: How many parts of the queries are held out in turn.
        columns: Numbers of documents that are lists too, such as their popularity.
        normalizations: The normalizations to try.
        combinations: The combinations to try.
        depth: How many documents of each list count; all by default.
        loss: Learn the weights by this loss instead, with a linear ranker over normalized scores;
            for arithmetic means, and labels.
        query_features: The features of each query, to learn weights per query from labels. They
            are kept only if they are shown to gain over the fixed ones on held-out queries.
        feature_names: Their names.
        random_state: The seed of the folds.
        progress: Called with the number of folds done, and all.

    Example:
        >>> truth = {f"q{number}": {"a": 1, "b": 0} for number in range(20)}
        >>> good = {query: {"a": 2.0, "b": 1.0} for query in truth}
        >>> bad = {query: {"b": 2.0, "a": 1.0} for query in truth}
        >>> result = tune_fusion(truth, {"good": good, "bad": bad}, measure="RR", folds=5)
        >>> [round(row.held_out, 2) for row in result.rows if row.name == CHOICE]
        [1.0]
    """
    judged = JudgedLists.of(truth, runs, measure, conventions, columns)
    if loss is not None:  # the other means are not sums of weighted scores
        combinations = [each for each in combinations if each in ("arithmetic", "rrf")]
    chooser = Chooser(
        judged, normalizations, combinations, depth=depth, loss=loss, random_state=random_state
    )
    ways: dict[str, Callable[[Ints], Fusion]] = {
        CHOICE: chooser.choice,
        RRF: lambda _queries: chooser.rrf,
        EQUAL: lambda _queries: chooser.equal,
        SINGLE: chooser.single,
        GRID: chooser.grid,
    }
    parts = held_out_parts(judged.usable, folds, random_state)
    held_out = {name: np.full(judged.rows, np.nan) for name in ways}
    chosen = []
    learned = None
    if query_features is not None:
        learned = _QueryModel(judged, query_features, feature_names)
        held_out[PER_QUERY] = np.full(judged.rows, np.nan)
    for number, part in enumerate(parts):
        others = np.setdiff1d(judged.usable, part)
        rows = judged.rows_of(part)
        for name, way in ways.items():
            fusion = way(others)
            held_out[name][rows] = judged.scores(fusion)[rows]
            if name == CHOICE:
                chosen.append(fusion)
        if learned is not None:
            model = learned.fitted(chosen[-1], others)
            held_out[PER_QUERY][rows] = learned.scores(model)[rows]
        if progress is not None:
            progress(number + 1, len(parts))
    systems = {
        name: judged.rankings(held_out[name], judged.usable, name)
        for name in held_out
        if name != PER_QUERY
    }
    comparison = judged.compare(systems, random_state)
    final = {name: way(judged.usable) for name, way in ways.items()}
    fusion = final[CHOICE]
    decision = None
    if learned is not None:
        pair = {
            "fixed weights": systems[CHOICE],
            PER_QUERY: judged.rankings(held_out[PER_QUERY], judged.usable, PER_QUERY),
        }
        sign = ">" if judged.measure.larger_is_better else "<"
        decision = require(
            judged.compare(pair, random_state), f"{judged.measure!r} {sign} baseline"
        )
        if decision.shown:
            fusion = learned.fitted(fusion, judged.usable)
    return HybridTuning(
        fusion,
        judged.measure,
        _rows(comparison, judged, final),
        comparison,
        tuple(chosen),
        judged.counts | ({} if learned is None else {"queries without features": learned.without}),
        decision,
        judged.coverage_of(comparison, CHOICE),
    )


def with_optimism(gain: Difference, optimism: float) -> Difference:
    """Return a gain of a choice with an interval, and p-value, of what it gains on new queries.

    Held-out values are not independent: every query chose for the others, so their mean varies more
    than its standard error. How much more is of the size of the optimism, as in the mean of
    ``u_i u_j`` over pairs of queries, whose deviation is that of the diagonal which it leaves out.
    The error is the root of the sum of both squares; ``benchmarks.hybrid`` measures how often the
    interval has the gain of the fusion that ships.

    Args:
        gain: The gain on held-out queries.
        optimism: How much more it is on the queries that chose.

    Example:
        >>> from podium.measures.comparison.statistics import paired_difference
        >>> gain = paired_difference(np.array([0.1, 0.3, 0.5]), np.zeros(3))
        >>> [round(with_optimism(gain, each).low, 3) for each in (0.0, 0.1)]
        [-0.197, -0.357]
    """
    from scipy import special

    if math.isnan(gain.low):
        return gain
    freedom = gain.wins + gain.ties + gain.losses - 1
    quantile = float(special.stdtrit(freedom, 0.975))
    error = math.hypot((gain.high - gain.low) / 2 / quantile, optimism)
    p_value = 2 * float(special.stdtr(freedom, -abs(gain.mean) / error))
    return replace(
        gain, low=gain.mean - quantile * error, high=gain.mean + quantile * error,
        p_values={"t": p_value},
    )  # fmt: skip


def _rows(
    comparison: Comparison, judged: JudgedLists, final: Mapping[str, Fusion]
) -> tuple[Row, ...]:
    measure = judged.measure
    rows = [
        Row(
            name, fusion, judged.sign * float(judged.values(fusion)[judged.usable].mean()),
            comparison.summaries[measure][name].mean,
        )
        for name, fusion in final.items()
    ]  # fmt: skip
    gains = []
    for row in rows[1:]:
        other = comparison.against_baseline[measure][row.name].difference
        # It is of the other one from the choice: the gain is its negative.
        gain = replace(
            other, mean=0.0 - other.mean, low=0.0 - other.high, high=0.0 - other.low,
            effect=0.0 - other.effect,
            wins=other.losses, losses=other.wins,
        )  # fmt: skip
        gains.append(with_optimism(gain, rows[0].optimism - row.optimism))
    corrected = holm(np.array([each.p_values["t"] for each in gains]))
    return rows[0], *(
        replace(row, gain=gain, p_value=float(p_value))
        for row, gain, p_value in zip(rows[1:], gains, corrected, strict=True)
    )


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Lists of the judged queries, and what fusions of them are worth by a measure.

    Attributes:
        lists: The names of the lists, columns included.
        columns: The names of the columns among them.
        votes: A row for each document of a judged query, a column for each list.
        inputs: The rows with the truth about them; their scores are of no use.
        measure: The measure.
        conventions: Its conventions.
        truth: The truth.
        usable: The queries that have documents and a value.
        counts: What was left out, in words.
        coverage: What there is to know of each list's unjudged documents, and of its ranks.
    """

    lists: tuple[str, ...]
    columns: tuple[str, ...]
    votes: Doubles
    inputs: Inputs
    measure: Measure
    conventions: Conventions
    truth: Judgments | Preferences
    usable: Ints
    counts: dict[str, int]
    coverage: tuple[str, ...]
    known: dict[Fusion, Doubles] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        truth: Judgments | Preferences | TableSource,
        runs: Mapping[str, Rankings | TableSource],
        measure: str | Measure,
        conventions: Conventions | str | None,
        columns: Columns | None = None,
        *,
        least_lists: int = 2,
    ) -> JudgedLists:
        """Align lists with the truth; a DataError says what does not fit."""
        judgments = truth if isinstance(truth, Judgments | Preferences) else as_judgments(truth)
        (parsed,), chosen = resolve_measures([measure], conventions)
        counts = {}
        if isinstance(judgments, Preferences) and not definition_of(parsed).on_pairs:
            top = dict(parsed.parameters).get("k")
            k = top if isinstance(top, int) else parsed.cut_off or 10
            counts[f"preferences made labels of the top {k}"] = len(judgments.left)
            judgments = preference_judgments(judgments, k)
        rankings = {name: as_rankings(run) for name, run in runs.items()}
        coverage: list[str] = []
        for name, run in rankings.items():
            try:
                alone = inputs_of(judgments, run)
            except DataError as error:
                raise error.at(name) from error
            covered = coverage_of(alone, [parsed], chosen)
            refuse_unjudged(covered, alone, name)
            coverage += [f"{name}: {each}" for each in covered.document_warnings(chosen)]
        lists = (*rankings, *(columns or {}))
        if len(lists) < least_lists or not rankings:
            raise ArgumentError(
                f"there are {len(lists)} lists", hint=f"Give at least {least_lists}."
            )
        stacked = stack_runs(list(rankings.values()))
        # Their scores are their numbers, so that they are known after the judgments are joined.
        numbered = stacked.rankings(np.arange(len(stacked.votes), dtype=np.float64))
        inputs = inputs_of(judgments, numbered)
        rows = inputs.scores.astype(np.int64)
        votes = stacked.votes[rows]
        documents = inputs.document_ids
        assert documents is not None
        for name, known in (columns or {}).items():
            column = np.array([known.get(each, np.nan) for each in documents.to_pylist()])
            counts[f"documents without {name}"] = int(np.isnan(column).sum())
            votes = np.column_stack([votes, column])
        first = cls(
            lists, tuple(columns or {}), np.ascontiguousarray(votes), inputs, parsed, chosen,
            judgments, np.arange(0), counts, tuple(coverage),
        )  # fmt: skip
        values = first.values(Fusion(lists, "rank", "rrf", columns=first.columns))
        answered = np.diff(inputs.offsets) > 0
        usable = np.flatnonzero(answered & ~np.isnan(values))
        counts["queries"] = len(usable)
        counts["judged queries without documents"] = int((~answered).sum())
        counts["judged queries without a value"] = int((answered & np.isnan(values)).sum())
        counts["queries of the lists without judgments"] = inputs.others
        judged = set(inputs.query_ids.take(usable).to_pylist())
        for name, run in rankings.items():
            missing = len(judged.difference(run.query_ids.to_pylist()))
            counts[f"queries without {name}"] = missing
        if len(usable) < _LEAST_QUERIES:
            raise DataError(
                f"there are {len(usable)} queries with judgments and lists",
                hint=f"Give at least {_LEAST_QUERIES}.",
            )
        return replace(first, usable=usable, known={})

    @property
    def rows(self) -> int:
        """The number of documents of all queries."""
        return len(self.votes)

    @property
    def sign(self) -> float:
        """1 if larger values of the measure are better, else -1."""
        return 1.0 if self.measure.larger_is_better else -1.0

    def scores(self, fusion: Fusion, query_weights: ArrayLike | None = None) -> Doubles:
        """Return the score of each row."""
        return fuse(self.votes, self.inputs.offsets, fusion, query_weights=query_weights)

    def values(self, fusion: Fusion) -> Doubles:
        """Return the value of each query, such that larger is better."""
        if fusion not in self.known:
            scores = fixed(self.scores(fusion), np.dtype(np.float64))
            inputs = replace(self.inputs, scores=scores)
            values = measure_all([self.measure], self.conventions, inputs)[self.measure]
            self.known[fusion] = self.sign * values
        return self.known[fusion]

    def rows_of(self, queries: Ints) -> Ints:
        """Return the rows of queries."""
        offsets = self.inputs.offsets
        return np.concatenate([np.arange(offsets[each], offsets[each + 1]) for each in queries])

    def rankings(self, scores: Doubles, queries: Ints, name: str) -> Rankings:
        """Return the rows of queries as a run."""
        rows, sizes = self.rows_of(queries), np.diff(self.inputs.offsets)[queries]
        assert self.inputs.document_ids is not None
        return Rankings(
            query_ids=self.inputs.query_ids.take(queries),
            offsets=np.concatenate(([0], np.cumsum(sizes))),
            document_ids=take_rows(self.inputs.document_ids, rows),
            scores=scores[rows],
            name=name,
        )

    def compare(
        self, systems: Mapping[str, Rankings], seed: int, measures: Iterable[Measure] = ()
    ) -> Comparison:
        """Compare runs on the queries that all of them have."""
        asked = list(dict.fromkeys([self.measure, *measures]))
        # Reports say it of the choice, and once.
        with catch_warnings(action="ignore", category=CoverageWarning):
            return compare(
                asked, self.truth, systems, conventions=replace(self.conventions, missing="skip"),
                random_state=seed,
            )  # fmt: skip

    def coverage_of(self, comparison: Comparison, system: str) -> tuple[str, ...]:
        """Return what to know of unjudged documents, of each list and of a system of them."""
        assert comparison.source is not None
        covered, conventions = comparison.coverage[system], comparison.source.conventions
        of_system = [f"{system}: {each}" for each in covered.warnings(conventions)]
        of_labels = covered.label_warnings(comparison.measures, conventions)
        return (*self.coverage, *of_system, *of_labels)


def held_out_parts(queries: Ints, folds: int, random_state: int) -> list[Ints]:
    """Split queries at random into parts of about the same size."""
    if not 2 <= folds <= len(queries):
        raise ArgumentError(
            f"folds is {folds}, of {len(queries)} queries", hint="Give 2 to the number of queries."
        )
    mixed = generator(random_state).permutation(queries)
    return [np.sort(part) for part in np.array_split(mixed, folds)]


def _forms(
    lists: tuple[str, ...],
    columns: tuple[str, ...],
    normalizations: Sequence[Normalization],
    combinations: Sequence[Combination],
    depth: int | None,
) -> list[Fusion]:
    """Return a fusion with equal weights for each form that is tried."""
    forms = [
        Fusion(lists, normalization, combination, depth=depth, columns=columns)
        for normalization in normalizations
        for combination in combinations
        if normalization != "rank" and combination != "rrf"
        # OpenSearch has z-scores in arithmetic means only.
        if normalization != "z-score" or combination == "arithmetic"
    ]
    if "rank" in normalizations and "rrf" in combinations:
        forms += [
            Fusion(lists, "rank", "rrf", (), constant, depth, columns)
            for constant in (2, 10, 60, 200)
        ]
    if not forms:
        raise ArgumentError(
            "no form is left to try", hint="rrf is of rank, and the means are of all others."
        )
    return forms


def _weights(lists: int) -> list[tuple[float, ...]]:
    """Return weights to try: a grid for two or three lists, else random ones and corners."""
    if lists == 1:
        return [(1.0,)]
    if lists == 2:
        return [(at / 20, 1 - at / 20) for at in range(21)]
    if lists == 3:
        return [
            (one / 10, other / 10, (10 - one - other) / 10)
            for one in range(11)
            for other in range(11 - one)
        ]
    drawn = generator(0).dirichlet(np.full(lists, 0.5), _RANDOM_WEIGHTS)
    return [*map(tuple, np.vstack([np.eye(lists), np.full(lists, 1 / lists), drawn]).tolist())]


class Chooser:
    """Ways to choose a fusion on some of the queries."""

    def __init__(
        self,
        judged: JudgedLists,
        normalizations: Sequence[Normalization] = TRIED,
        combinations: Sequence[Combination] = COMBINATIONS,
        *,
        depth: int | None = None,
        loss: Loss | str | None = None,
        random_state: int = 0,
    ) -> None:
        lists, columns = judged.lists, judged.columns
        self._judged, self._loss, self._seed = judged, loss, random_state
        self._forms = _forms(lists, columns, normalizations, combinations, depth)
        self.rrf = Fusion(lists, "rank", "rrf", (), 60, depth, columns)
        self.equal = Fusion(lists, depth=depth, columns=columns)
        self._singles = [replace(self.rrf, weights=tuple(row)) for row in np.eye(len(lists))]
        self._pool = _weights(len(lists))

    def _mean(self, fusion: Fusion, queries: Ints) -> float:
        return float(self._judged.values(fusion)[queries].mean())

    def _best(self, fusions: Sequence[Fusion], queries: Ints) -> Fusion:
        return max(fusions, key=lambda fusion: self._mean(fusion, queries))

    def single(self, queries: Ints) -> Fusion:
        """Return the best single list."""
        return self._best(self._singles, queries)

    def simple(self, queries: Ints) -> Fusion:
        """Return the best fusion that has no weights to choose."""
        return self._best([self.equal, self.rrf, *self._singles], queries)

    def grid(self, queries: Ints) -> Fusion:
        """Return the best of OpenSearch's Search Relevance Workbench: pairs, in steps of 0.1.

        It takes two clauses; of more lists, these are the pairs of the three best ones.
        """
        singles = sorted(self._singles, key=lambda fusion: -self._mean(fusion, queries))
        best = [int(np.argmax(fusion.weights)) for fusion in singles[:3]]
        tried = []
        for one, other in combinations(best, 2):
            for tenths in range(11):
                weights = np.zeros(len(singles))
                weights[[one, other]] = tenths / 10, (10 - tenths) / 10
                tried += [
                    replace(self.equal, normalization=normalization, combination=combination,
                            weights=tuple(weights))
                    for normalization in ("min-max", "l2")
                    for combination in ("arithmetic", "geometric", "harmonic")
                ]  # fmt: skip
        return self._best(tried, queries)

    def choice(self, queries: Ints) -> Fusion:
        """Return the best form with its weights, or the best simple fusion if that is as good."""
        judged = self._judged
        values = {form: np.full(len(judged.inputs.query_ids), np.nan) for form in self._forms}
        simple = np.full(len(judged.inputs.query_ids), np.nan)
        for part in held_out_parts(queries, min(_INNER_FOLDS, len(queries)), self._seed):
            others = np.setdiff1d(queries, part)
            simple[part] = judged.values(self.simple(others))[part]
            for form in self._forms:
                values[form][part] = judged.values(self._weighted(form, others))[part]
        best = max(self._forms, key=lambda form: values[form][queries].mean())
        gain = (values[best] - simple)[queries]
        if gain.mean() <= gain.std(ddof=1) / np.sqrt(len(gain)):
            return self.simple(queries)
        fusion = self._weighted(best, queries)
        return fusion if self._loss is not None else self._searched(fusion, queries)

    def _weighted(self, form: Fusion, queries: Ints) -> Fusion:
        """Return a form with the mean of near-best weights, or those that a loss learns."""
        if self._loss is not None:
            return replace(form, weights=self._learned(form, queries))
        tried = [replace(form, weights=weights) for weights in self._pool]
        means = np.array([self._mean(fusion, queries) for fusion in tried])
        near = max(3, len(tried) // 10) if len(form.lists) < 4 else 3
        best = np.argsort(-means, kind="stable")[:near]
        return replace(form, weights=tuple(np.mean([tried[at].weights for at in best], axis=0)))

    def _searched(self, fusion: Fusion, queries: Ints) -> Fusion:
        """Search on from weights that no grid covered."""
        if len(fusion.lists) < 4:
            return fusion
        judged = self._judged

        def aggregate(_votes: ArrayLike, _offsets: object, *, ranker_weights: Doubles) -> Doubles:
            return judged.values(replace(fusion, weights=tuple(ranker_weights.round(6))))

        weights = tuned_weights(
            judged.votes[:1], lambda values: float(values[queries].mean()), aggregate,
            start=fusion.weights, factors=(0.0, 0.5, 2.0), rounds=2,
        )  # fmt: skip
        return replace(fusion, weights=tuple(weights))

    def _learned(self, form: Fusion, queries: Ints) -> tuple[float, ...]:
        """Learn weights by a loss: a linear ranker of normalized scores, without negative ones."""
        from podium.rankers import LinearRanker

        assert self._loss is not None
        scores = normalize(self._judged.votes, self._judged.inputs.offsets, form)
        ranker = LinearRanker(self._loss).fit(labeled_rows(self._judged, scores, queries))
        weights = np.maximum(ranker.coef_, 0.0)
        return tuple(weights) if weights.any() else form.weights


def labeled_rows(judged: JudgedLists, features: Doubles, queries: Ints) -> Dataset:
    """Return rows of some queries as a data set; what is not judged has label 0."""
    labels = judged.inputs.labels
    if labels is None:
        raise ArgumentError(
            "a loss learns from labels, and these are preferences",
            hint="Leave out the loss and the features of queries: weights are searched then.",
        )
    rows = judged.rows_of(queries)
    sizes = np.diff(judged.inputs.offsets)[queries]
    return Dataset.from_arrays(features[rows], np.nan_to_num(labels[rows]), group=sizes)


class _QueryModel:
    """Weights that depend on features of the query, learned by a loss."""

    def __init__(
        self,
        judged: JudgedLists,
        query_features: Mapping[str, Sequence[float]],
        names: Sequence[str],
    ) -> None:
        count = len(names)
        queries = judged.inputs.query_ids.to_pylist()
        empty = (np.nan,) * count
        table = [query_features.get(query, empty) for query in queries]
        self._judged, self._names = judged, tuple(names)
        self._features = np.array(table, np.float64).reshape(len(queries), count)
        self.without = sum(queries[at] not in query_features for at in judged.usable)

    def fitted(self, fusion: Fusion, queries: Ints) -> Fusion:
        """Return a fusion with weights per query, learned on some of the queries."""
        from podium.rankers import LinearRanker

        judged, count = self._judged, len(self._names)
        if fusion.combination not in ("arithmetic", "rrf"):
            fusion = replace(fusion, normalization="min-max", combination="arithmetic")
        with np.errstate(invalid="ignore"):
            known = self._features[queries]
            means = np.nan_to_num(np.nanmean(known, axis=0))
            scales = np.nan_to_num(np.nanstd(known, axis=0))
        scales[scales <= 0] = 1.0
        scaled = np.nan_to_num((self._features - means) / scales)
        scores = normalize(judged.votes, judged.inputs.offsets, fusion)
        spread = scores.std() or 1.0
        of_row = np.repeat(scaled, np.diff(judged.inputs.offsets), axis=0)
        products = [scores, *(scores * of_row[:, [at]] for at in range(count))]
        data = labeled_rows(judged, np.column_stack(products) / spread, queries)
        ranker = LinearRanker("PairLogistic(k=10)", alpha=0.01).fit(data)
        weights = ranker.coef_.reshape(1 + count, len(fusion.lists))
        fixed_weights = np.maximum(weights[0], 0.0)
        total = float(fixed_weights.sum())
        if total <= 0:
            return fusion
        rows = tuple(map(tuple, (weights[1:] / total).T.tolist()))
        model = QueryWeights(self._names, tuple(means), tuple(scales), rows)
        return replace(fusion, weights=tuple(fixed_weights / total), per_query=model)

    def scores(self, fusion: Fusion) -> Doubles:
        """Return the score of each row."""
        if fusion.per_query is None:
            return self._judged.scores(fusion)
        weights = fusion.per_query.weights(fusion.weights, self._features)
        return self._judged.scores(fusion, weights)

"""Rankers in stages: cheap ones for all documents of a query, costly ones for the best of those."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from typing import Any, Never, Self, TypeAlias

import numpy as np
import pyarrow as pa

from podium.data import Dataset
from podium.data.columns import are_numbers
from podium.data.definitions_hash import require_same_definitions
from podium.data.frames import to_arrow
from podium.data.grouping import Grouping, group_rows, group_sizes, ungrouped_rows
from podium.data.numbers import as_numbers
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.base import NotFittedError, Ranker
from podium.rankers.explanation import Explanation, adding_up, query_documents
from podium.rankers.inputs import FittedFeatures
from podium.rankers.loading import load_ranker
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.storage import Archive
from podium.registry import unknown_name

DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""The depths that ``StagedRanker`` chooses from by default."""

# So much more than a number of documents, relative to it, is rounding.
_ROUNDING = 1e-12

Pair: TypeAlias = tuple[str, str]

ScoreRows = Callable[[int, Ints], Doubles]
"""Scores rows by the stage of a number."""


@dataclass(frozen=True)
class Stage:
    """One stage: what scores documents, and what that costs.

    Attributes:
        input: The name of the input that it reads.
        ranker: What has ``predict``, such as a ``TextRanker`` or a ``TreeRanker``, or a function of
            rows; None if the input has the scores already, such as BM25's.
        cost: The cost of scoring one document, in any unit, such as milliseconds.
        depth: The number of documents of a query that it scores at most; None for ``fit`` to
            choose.
    """

    input: str
    ranker: Any = None
    cost: float = 0.0
    depth: int | None = None

    def __post_init__(self) -> None:
        check_number(f"the cost of {self.input!r}", self.cost)
        check_integer("depth", self.depth, minimum=0, optional=True)
        scores = callable(self.ranker) or hasattr(self.ranker, "predict")
        if self.ranker is not None and (isinstance(self.ranker, type) or not scores):
            raise ArgumentError(
                f"the ranker of {self.input!r} is {self.ranker!r}",
                hint="Give a fitted ranker, a function of rows, or None for scores.",
            )

    @property
    def saved(self) -> Ranker:
        """Its ranker, if that is one of Podium's, which can be saved, served and explained."""
        if not isinstance(self.ranker, Ranker):
            raise ArgumentError(
                f"the stage {self.input!r} is a {type(self.ranker).__name__}, which can only be "
                "called",
                hint="Give a ranker of Podium, or its scores as an input.",
            )
        return self.ranker

    def columns(self, names: tuple[str, ...]) -> list[int]:
        """Return which of some features it reads; scores are the feature of the input's name."""
        own = (self.input,) if self.ranker is None else self.saved.feature_names_
        return [names.index(name) for name in own]

    def scores(self, rows: Any) -> Doubles:
        """Score rows of the input."""
        predict = getattr(self.ranker, "predict", self.ranker)
        values = rows if predict is None else predict(rows)
        return self.checked(values, _length(rows))

    def checked(self, values: Any, rows: int) -> Doubles:
        """Return the scores of a number of rows as numbers."""
        numbers = as_numbers(values, np.float64, f"scores of {self.input}", dimensions=1)
        if len(numbers) != rows or np.isnan(numbers).any():
            raise DataError(
                f"the stage {self.input!r} has no score for some of {rows} rows",
                hint="A stage returns a number for each row.",
            )
        return numbers


class StagedRanker(Ranker):
    """Rerank in stages, within a budget for each query.

    The rows of a query start in the order that they have, such as an engine's. Each stage scores
    the first of them, as many as its depth and what is left of the budget allow, and puts those in
    the order of its scores, equal scores as they were; the next stage sees only these. No query
    costs more than the budget, however many documents it has, but for the rounding of floats.

    Its input has several parts, each with the rows of some stages, so scikit-learn cannot split it.
    Where all stages are rankers of Podium or scores, it is saved, served and explained as a whole:
    a stage of scores then reads the feature that has the name of its input.

    Args:
        stages: From the cheapest to the most costly.
        budget: What a query may cost, in the unit of the stages' costs.
        measure: What ``fit`` chooses depths by.
        depths: What ``fit`` chooses from, for each stage without a depth, besides 0 and all.

    Attributes:
        depths_: The depth of each stage, after ``fit``; None if it scores all that reach it.
        value_: The mean of the measure that these had.

    Example:
        >>> stages = [Stage("bm25"), Stage("text", lambda texts: [len(t) for t in texts], cost=2.0)]
        >>> ranker = StagedRanker(stages, budget=4.0)
        >>> inputs = {"bm25": [1.0, 3.0, 2.0], "text": ["aaa", "b", "cc"]}
        >>> ranker.fit(inputs, [0, 0, 1], group=[3]).predict(inputs, group=[3]).tolist()
        [1.0, 2.0, 3.0]
        >>> ranker.cost(3)
        4.0
    """

    whole_queries = True
    limits = ("It ranks whole queries: a document has no score without the others.",)

    depths_: tuple[int | None, ...]
    value_: float

    def __init__(
        self,
        stages: Iterable[Stage],
        *,
        budget: float,
        measure: Measure | str = "nDCG@10",
        depths: Sequence[int] = DEPTHS,
    ) -> None:
        self.stages = tuple(stages) if isinstance(stages, Iterable) else ()
        if not self.stages or not all(isinstance(stage, Stage) for stage in self.stages):
            raise ArgumentError("there are no stages", hint="Give a list with at least one Stage.")
        check_number("budget", budget, positive=True)
        if not isinstance(measure, Measure | str):
            raise ArgumentError(
                f"measure is {measure!r}", hint="Give one measure, such as 'nDCG@10'."
            )
        parse_measure(measure)  # of several, such as trec_eval's "official", none can decide
        for depth in depths:
            check_integer("a depth", depth)
        self.budget = float(budget)
        self.measure = measure
        self.depths = tuple(depths)

    def __repr__(self) -> str:
        names = ", ".join(stage.input for stage in self.stages)
        return f"StagedRanker({names}; budget={self.budget:g}, measure={self.measure!r})"

    def fit(  # type: ignore[override]
        self, inputs: Mapping[str, Any], y: Any, *, qid: Any = None, group: Any = None
    ) -> Self:
        """Choose the depths with the best mean of the measure; of equal ones the cheapest.

        All combinations are tried: three stages have at most a thousand. Every stage scores every
        row once. Give queries that no stage was trained on: a ranker is too good on its own
        training queries.

        Args:
            inputs: The rows of each input, by its name.
            y: One label per row.
            qid: One query id per row; or
            group: the number of rows of each query.
        """
        grouping, rows = self._grouped(inputs, qid, group)
        labels = as_numbers(y, np.float64, "labels", dimensions=1)
        if len(labels) != rows:
            raise DataError(f"{len(labels)} labels for {rows} rows", hint="Give one for each row.")
        every = np.arange(rows)
        known = [stage.scores(_taken(inputs[stage.input], every)) for stage in self.stages]
        sizes = np.diff(grouping.offsets)
        ordered = labels if grouping.order is None else labels[grouping.order]
        best = (-math.inf, -math.inf)
        for depths in self._depths(int(sizes.max(initial=0))):
            order, costs = self._run(depths, grouping, lambda number, at: known[number][at])
            scores = _places(order, grouping)
            ranked = scores if grouping.order is None else scores[grouping.order]
            evaluation = evaluate(self.measure, ordered, ranked, group=sizes)
            ((measure, value),) = evaluation.means.items()
            key = (value if measure.larger_is_better else -value, -float(costs.sum()))
            if key > best:
                best, self.depths_, self.value_ = key, depths, value
        if best[0] == -math.inf:  # NaN is no larger
            raise DataError(
                "the measure has no value for any query",
                hint="Give queries with labels.",
            )
        return self

    @property
    def features_(self) -> FittedFeatures:  # type: ignore[override]
        """The features that its stages read."""
        names: dict[str, None] = {}
        categories: dict[str, list[str]] = {}
        named, definitions = False, None
        for stage in self.stages:
            if stage.ranker is None:
                names[stage.input] = None
                continue
            own = stage.saved.features_
            names |= dict.fromkeys(own.names)
            for name, values in own.categories.items():
                if categories.setdefault(name, values) != values:
                    raise ArgumentError(
                        f"the stages know other categories of {name!r}",
                        hint="Train their rankers on the same rows.",
                    )
            require_same_definitions(
                definitions, own.definitions_hash, "one stage", f"the stage {stage.input!r}"
            )
            named, definitions = named or own.named, definitions or own.definitions_hash
        return FittedFeatures(
            tuple(names), named or not are_numbers(tuple(names)), categories, definitions
        )

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether any of its stages does."""
        return bool(self.features_.names)

    @property
    def reads_texts(self) -> bool:  # type: ignore[override]
        """Whether any of its stages does."""
        return any(each.ranker is not None and each.saved.reads_texts for each in self.stages)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "depths_")

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("the depths are not chosen: call fit first")

    def predict(  # type: ignore[override]
        self, inputs: Mapping[str, Any] | Dataset, *, qid: Any = None, group: Any = None
    ) -> Doubles:
        """Return scores that have the order: the last of a query has 1, the one above it 2.

        Each stage scores its rows of all queries at once.

        Args:
            inputs: The rows of each input, by its name; or a data set, if no stage reads texts.
            qid: One query id per row; or
            group: the number of rows of each query.
        """
        self._require_fitted()
        if isinstance(inputs, Dataset):
            self._rows_only()
            data = self.features_.data_set(inputs)
            return np.concatenate([np.empty(0), *(self.score_query(q.features) for q in data)])
        grouping, _ = self._grouped(inputs, qid, group)

        def score(number: int, rows: Ints) -> Doubles:
            stage = self.stages[number]
            return stage.scores(_taken(inputs[stage.input], rows))

        return _places(self._run(self.depths_, grouping, score)[0], grouping)

    def _rows_only(self) -> None:
        if self.reads_texts:
            raise ArgumentError(
                "a data set has no texts, which a stage reads",
                hint="Give the rows of each input by its name: {'pairs': pairs, ...}.",
            )

    def score_query(self, rows: Any, pairs: Sequence[Pair] = ()) -> Doubles:
        """Score the documents of one query.

        Args:
            rows: Their features, in the order of ``feature_names_``.
            pairs: The query and each document as texts, if a stage reads them.
        """
        count = len(pairs) if self.reads_texts else len(rows)
        one = group_sizes([count], count, None)
        return _places(self._run(self.depths_, one, self._scores_of(rows, pairs))[0], one)

    def _scores_of(self, rows: Any, pairs: Sequence[Pair]) -> ScoreRows:
        """Return what scores some documents of a query by a stage."""
        names = self.feature_names_

        def score(number: int, at: Ints) -> Doubles:
            stage = self.stages[number]
            if stage.ranker is None:
                values = rows[at, stage.columns(names)[0]]
            elif stage.saved.reads_texts:
                values = stage.saved.predict([pairs[row] for row in at])
            else:
                columns = rows[at][:, stage.columns(names)]
                values = stage.saved.score_query(np.ascontiguousarray(columns))
            return stage.checked(values, len(at))

        return score

    def explain(
        self, X: Any, *, query: str | None = None, qid: Any = None, group: Any = None
    ) -> Explanation:
        """Explain the order of a query's documents: how far each stage moves them.

        ``explanation.values`` are the scores of the stages, NaN where a stage did not score a
        document, and ``explanation.parts`` explains what each ranker of features makes of them.

        Args:
            X: The rows of each input, by its name; or a data set, if no stage reads texts.
            query: The id of the query, where there are several.
            qid: One query id per row of the inputs, where there are several queries; or
            group: the number of rows of each query.
        """
        self._require_fitted()
        if isinstance(X, Mapping):
            return self._explain_inputs(X, query, qid, group)
        self._rows_only()
        data = self.features_.one_query(X, query)
        return self._explained(
            *query_documents(data),
            self._scores_of(data.features, ()),
            lambda stage: stage.saved.explain(data.select_features(stage.saved.feature_names_)),
        )

    def _explain_inputs(
        self, inputs: Mapping[str, Any], query: str | None, qid: Any, group: Any
    ) -> Explanation:
        if qid is None and group is None:
            group = [_length(next(iter(inputs.values())))]
        grouping, rows = self._grouped(inputs, qid, group)
        ids = grouping.query_ids.to_pylist()
        if query is None and len(ids) > 1:
            raise ArgumentError(
                f"there are {len(ids)} queries", hint="Name the one to explain: query=."
            )
        if query is not None and str(query) not in ids and len(ids) > 1:
            raise unknown_name("query", str(query), ids)
        position = ids.index(str(query)) if len(ids) > 1 else 0
        order = np.arange(rows) if grouping.order is None else grouping.order
        own = order[grouping.offsets[position] : grouping.offsets[position + 1]]
        parts = {name: _taken(values, own) for name, values in inputs.items()}

        def score(number: int, at: Ints) -> Doubles:
            stage = self.stages[number]
            return stage.scores(_taken(parts[stage.input], at))

        return self._explained(
            ids[position] if query is None else str(query),
            tuple(map(str, range(len(own)))),
            score,
            lambda stage: stage.saved.explain(parts[stage.input]),
        )

    def _explained(
        self,
        query_id: str,
        documents: tuple[str, ...],
        score: ScoreRows,
        explain: Callable[[Stage], Explanation],
    ) -> Explanation:
        count = len(documents)
        one = group_sizes([count], count, None)
        names: list[str] = ["first order"]
        for stage in self.stages:
            same = sum(name.partition(" (stage")[0] == stage.input for name in names)
            names.append(stage.input if not same else f"{stage.input} (stage {len(names)})")
        known = np.full((count, len(names)), np.nan)
        orders = [np.arange(count)]

        def followed(number: int, at: Ints) -> Doubles:
            scores = score(number, at)
            known[at, number + 1] = scores
            return scores

        self._run(self.depths_, one, followed, lambda order: orders.append(order.copy()))
        ranks = np.column_stack([_places(order, one) for order in orders])
        known[:, 0] = ranks[:, 0]
        contributions = np.column_stack([ranks[:, :1], np.diff(ranks, axis=1)])
        return Explanation(
            query_id, documents, tuple(names), ranks[:, -1],
            adding_up(contributions, ranks[:, -1], type(self).__name__), known,
            self.contribution_method(),
            parts={
                name: explain(stage)
                for name, stage in zip(names[1:], self.stages, strict=True)
                if isinstance(stage.ranker, Ranker) and stage.ranker.reads_features
            },
        )  # fmt: skip

    def contribution_method(self) -> str:
        """Return how contributions of its stages are defined, as a phrase."""
        return "how many ranks each stage moves a document, beginning with the order before all"

    def _fitted_model(self) -> Never:
        raise ArgumentError(
            "stages rank the documents of a query one after the other, which no target can express",
            hint="Export the ranker of each stage, or serve all by podium serve.",
        )

    def archive(self) -> Archive:
        """Return the content that ``save`` writes: depths, and the rankers of all stages."""
        self._require_fitted()
        stages = [
            {"input": each.input, "cost": each.cost, "depth": each.depth} for each in self.stages
        ]
        measure = self.measure if isinstance(self.measure, str) else repr(self.measure)
        parameters = {"budget": self.budget, "measure": measure, "depths": list(self.depths)}
        metadata = {
            "parameters": parameters, "stages": stages, "depths": list(self.depths_),
            "value": vars(self).get("value_"),  # none where depths were set by hand
        }  # fmt: skip
        blobs = {
            f"stage{number}": stage.saved.to_bytes()
            for number, stage in enumerate(self.stages)
            if stage.ranker is not None
        }
        return Archive(type(self).__name__, metadata, {}, blobs)

    @classmethod
    def from_archive(cls, archive: Archive) -> Self:
        """Return the ranker whose ``archive`` it is; any error of Python's for another archive."""
        stages = []
        for number, stage in enumerate(archive.metadata["stages"]):
            blob = archive.blobs.get(f"stage{number}")
            ranker = None if blob is None else load_ranker(BytesIO(blob))
            stages.append(Stage(str(stage["input"]), ranker, stage["cost"], stage["depth"]))
        loaded = cls(stages, **archive.metadata["parameters"])
        depths = archive.metadata["depths"]
        for depth in depths:
            check_integer("a depth", depth, minimum=0, optional=True)
        if len(depths) != len(stages):
            raise ValueError("the numbers of stages and depths differ")
        loaded.depths_ = tuple(depths)
        if archive.metadata["value"] is not None:
            loaded.value_ = float(archive.metadata["value"])
        return loaded

    def cost(self, documents: int) -> float:
        """Return the cost of a query by its number of documents."""
        self._require_fitted()
        check_integer("documents", documents, minimum=1)
        one = group_sizes([documents], documents, None)
        return float(self._run(self.depths_, one, lambda _number, rows: np.zeros(len(rows)))[1][0])

    def _depths(self, longest: int) -> Iterator[tuple[int | None, ...]]:
        """Yield choices of depths, but for those that an earlier stage cuts to another choice."""
        grid = [0, *sorted(set(self.depths)), None]
        ways = [grid if each.depth is None else [each.depth] for each in self.stages]
        for depths in product(*ways):
            reached = longest
            for stage, depth in zip(self.stages, depths, strict=True):
                if depth is not None:
                    if stage.depth is None and depth >= max(reached, 1):
                        break  # all that reach it
                    reached = min(reached, depth) or reached
            else:
                yield depths

    def _run(
        self,
        depths: Sequence[int | None],
        grouping: Grouping,
        score: ScoreRows,
        follow: Callable[[Ints], None] = lambda _order: None,
    ) -> tuple[Ints, Doubles]:
        """Return the rows of all queries in their order, and what each query cost.

        ``follow`` is called with the order after each stage.
        """
        sizes = np.diff(grouping.offsets)
        query = np.repeat(np.arange(len(sizes)), sizes)
        rank = np.arange(len(query)) - grouping.offsets[query]
        order = np.arange(len(query)) if grouping.order is None else grouping.order.copy()
        longest = int(sizes.max(initial=0))
        reached, spent = sizes, np.zeros(len(sizes))
        for number, (stage, depth) in enumerate(zip(self.stages, depths, strict=True)):
            scored = np.minimum(reached, longest if depth is None else min(depth, longest))
            if stage.cost > 0:
                with np.errstate(over="ignore"):  # a budget that pays for any number
                    paid = np.maximum(self.budget - spent, 0.0) / float(stage.cost)
                scored = np.minimum(scored, np.floor(paid * (1 + _ROUNDING))).astype(np.int64)
            chosen = rank < scored[query]
            rows = order[chosen]
            if len(rows):
                order[chosen] = rows[np.lexsort((-score(number, rows), query[chosen]))]
                spent = spent + scored * stage.cost
                reached = np.where(scored > 0, scored, reached)
            follow(order)
        return order, spent

    def _grouped(self, inputs: Mapping[str, Any], qid: Any, group: Any) -> tuple[Grouping, int]:
        if not isinstance(inputs, Mapping):
            raise ArgumentError(
                f"the inputs are a {type(inputs).__name__}",
                hint="Give the rows of each stage by the name of its input: {'bm25': scores}.",
            )
        missing = [stage.input for stage in self.stages if stage.input not in inputs]
        if missing:
            raise ArgumentError(
                f"there is no input {missing[0]!r}",
                hint=f"Give {', '.join(repr(each.input) for each in self.stages)}.",
            )
        for stage in self.stages:
            if not _has_rows(inputs[stage.input]):
                raise DataError(
                    f"the input {stage.input!r} is a {type(inputs[stage.input]).__name__}",
                    hint="Give a list, an array, a sparse matrix or a table with the rows.",
                )
        lengths = {stage.input: _length(inputs[stage.input]) for stage in self.stages}
        rows = next(iter(lengths.values()))
        if (qid is None) == (group is None):
            raise ungrouped_rows(qid)
        grouping = group_rows(qid) if group is None else group_sizes(group, rows, None)
        for name, length in lengths.items():
            if length != grouping.offsets[-1]:
                raise DataError(
                    f"the input {name!r} has {length} rows, and the queries have "
                    f"{grouping.offsets[-1]}",
                    hint="Give all inputs for the same rows.",
                )
        return grouping, rows


def _places(order: Ints, grouping: Grouping) -> Doubles:
    """Return a score for each row, in the rows' own order: how far it is from the end."""
    sizes = np.diff(grouping.offsets)
    scores = np.empty(len(order))
    scores[order] = np.repeat(grouping.offsets[1:], sizes) - np.arange(len(order))
    return scores


def _has_rows(values: Any) -> bool:
    if hasattr(values, "shape"):
        return len(values.shape) > 0
    return hasattr(values, "__getitem__") and not isinstance(values, str | bytes | Mapping | Set)


def _length(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def _taken(values: Any, rows: Ints) -> Any:
    """Return rows of an array, a sparse matrix, a table or a sequence."""
    if isinstance(values, pa.Array | pa.ChunkedArray | pa.Table):
        return values.take(to_arrow(rows))
    if hasattr(values, "tocsr"):  # of sparse matrices, some formats have no rows
        return values.tocsr()[rows]
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows]

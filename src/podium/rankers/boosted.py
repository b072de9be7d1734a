"""Boosting of weak rankers: RankBoost, AdaRank and FocusedBoost as one algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from podium.data import Dataset
from podium.data.gains import exponential_gains
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats, Ints
from podium.losses import PairExponential
from podium.losses.orders import top_documents
from podium.measures import evaluate
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.base import FitInterrupted, Ranker
from podium.rankers.fit_progress import Progress
from podium.rankers.linear_kernels import linear_scores, missing_feature
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.sample_weights import FitWeights
from podium.rankers.storage import Archive
from podium.rankers.stumps import (
    AVERAGE_PRECISION,
    NDCG,
    ListObjective,
    SortedFeatures,
    Stump,
    discount_sums,
    stump_scores,
)
from podium.rankers.training_data import TrainingData, in_memory
from podium.rankers.validation_monitor import ValidationMonitor
from podium.scorers.models import LinearModel
from podium.scorers.trees import TreeModel, concatenate_trees

# A weak ranker without errors would get infinite weight.
_MAX_EDGE = 1 - 1e-9


class BoostedRanker(Ranker):
    """A weighted sum of weak rankers, each chosen for the errors of those before it.

    Each round chooses the weak ranker h with the largest edge
    ``r = beta * sum P(q) E(h, q) + (1 - beta) * sum D(u, v) (h(u) - h(v))``: E is a measure of the
    lists, u is preferred to v, and P and D are distributions over queries and pairs. It is added
    with weight ``1/2 ln((1 + r) / (1 - r))``. Then queries are weighted by ``exp(-E)`` of the sum
    so far, and pairs by ``exp(score(v) - score(u))``, so that what is already right counts less.

    ``beta=0`` is RankBoost (Freund et al. 2003), ``beta=1`` is AdaRank (Xu and Li 2007), and values
    in between are FocusedBoost (Niu et al. 2012): its lists are the top documents only, its pairs
    have one document among them and one below, and E is measured relative to tied documents, so
    that its range is comparable with that of the pairs. A round is one pass over the sorted values
    of each feature.

    Args:
        beta: The weight of the lists, from 0 to 1; the weight of the pairs is ``1 - beta``.
        k: The top-k form: only pairs whose preferred document is in the top k; for lists, see
            ``beta``. None for the full order.
        list_measure: The measure of the lists: ``AP``, or ``nDCG`` with or without a cut-off.
        weak_ranker: ``"threshold"``: 1 for documents whose feature is above (or below) a threshold,
            else 0. ``"feature"``: the value of a feature, as in the AdaRank paper; only with
            ``beta=1``.
        n_estimators: The maximum number of weak rankers.
        early_stopping_rounds: With an ``eval_set``: stop after this many rounds without a better
            measure; None never stops early.
        measure: The measure of the validation queries.

    Attributes:
        feature_indices_: The column of the feature of each weak ranker.
        thresholds_: Its threshold (NaN if it is the value of a feature).
        estimator_weights_: Its weight, negative if documents below the threshold come first.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((400, 3))
        >>> y = np.round(3 * X[:, 1])
        >>> ranker = BoostedRanker(n_estimators=5).fit(X, y, group=[20] * 20)
        >>> ranker.feature_indices_.tolist()
        [1, 1, 1, 1, 1]
    """

    takes_weights = True

    def __init__(
        self,
        *,
        beta: float = 0.0,
        k: int | None = None,
        list_measure: str = "nDCG@10",
        weak_ranker: Literal["threshold", "feature"] = "threshold",
        n_estimators: int = 300,
        early_stopping_rounds: int | None = 50,
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.beta = beta
        self.k = k
        self.list_measure = list_measure
        self.weak_ranker = weak_ranker
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.measure = measure

    def _check_weights(self, weights: FitWeights) -> None:
        weights.require_queries_only("BoostedRanker")

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        weights: FitWeights | None = None,
    ) -> None:
        train = in_memory(data)
        eval_set = None if validation is None else in_memory(validation)
        beta = float(self.beta)
        query_weights = np.ones(len(train)) if weights is None else weights.queries
        state = _BoostingState(train, query_weights, beta, self.k, parse_measure(self.list_measure))
        learner = (
            _FeatureLearner(train, state)
            if self.weak_ranker == "feature"
            else _ThresholdLearner(train)
        )
        scores = np.zeros(train.rows)
        validation_scores = np.zeros(0 if eval_set is None else eval_set.rows)
        stumps: list[Stump] = []
        stump_weights: list[float] = []
        excluded: set[int] = set()
        monitor: ValidationMonitor[int] = ValidationMonitor(
            lambda _count, _block: validation_scores, self.measure, eval_set, progress
        )
        try:
            for step in range(1, self.n_estimators + 1):
                stump = learner.best(state, excluded)
                edge = 0.0 if stump is None else stump.edge - state.tied_edge
                if stump is None or edge <= 0:
                    break
                weight = stump.sign * _weight(edge)
                stumps.append(stump)
                stump_weights.append(weight)
                scores += weight * learner.output(stump, train.features)
                if eval_set is not None:
                    validation_scores += weight * learner.output(stump, eval_set.features)
                before = state.lists.weights
                monitor(step, step, state.update(scores))
                # A feature that changed nothing would be chosen again forever.
                unchanged = beta == 1 and np.array_equal(before, state.lists.weights)
                excluded = excluded | {stump.feature} if unchanged else set()
                if monitor.stops_early(step, self.early_stopping_rounds):
                    break
        except KeyboardInterrupt as stop:
            if not monitor.model:
                raise
            self._keep(stumps[: monitor.model], stump_weights)
            raise FitInterrupted from stop
        self._keep(stumps[: monitor.model or 0], stump_weights)

    def _keep(self, stumps: list[Stump], weights: list[float]) -> None:
        self.feature_indices_ = np.array([stump.feature for stump in stumps], np.int64)
        self.thresholds_ = np.array([stump.threshold for stump in stumps], np.float64)
        self.estimator_weights_ = np.array(weights[: len(stumps)])

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        check_integer("n_estimators", self.n_estimators)
        check_integer("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if self.k is not None:
            check_integer("k", self.k)
        check_number("beta", self.beta)
        if self.beta > 1:
            raise ArgumentError(f"beta is {self.beta}", hint="Give a number from 0 to 1.")
        if self.weak_ranker not in ("threshold", "feature"):
            raise ArgumentError(
                f"weak_ranker is {self.weak_ranker!r}", hint="Give 'threshold' or 'feature'."
            )
        if self.weak_ranker == "feature" and self.beta < 1:
            raise ArgumentError("weak_ranker='feature' is for lists only", hint="Give beta=1.")

    def _predict(self, features: Floats) -> Doubles:
        result = np.zeros(len(features))
        if self.weak_ranker == "feature":
            scores = linear_scores(features, self._weights(), np.arange(len(features) + 1))
            if np.isnan(scores).any():  # as in the fit
                raise missing_feature()
            return scores
        stump_scores(
            features, self.feature_indices_, self.thresholds_, self.estimator_weights_, result
        )
        return result

    def _weights(self) -> Doubles:
        """Return the weight of each feature, if weak rankers are features."""
        weights = np.zeros(self.n_features_in_)
        np.add.at(weights, self.feature_indices_, self.estimator_weights_)
        return weights

    def _contributions(self, features: Floats) -> Doubles:
        if self.weak_ranker == "feature":
            return features * self._weights()
        contributions = np.zeros((self.n_features_in_, len(features)))
        outputs = (features[:, self.feature_indices_] > self.thresholds_) * self.estimator_weights_
        np.add.at(contributions, self.feature_indices_, outputs.T)
        return contributions.T

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "the sum of the weak rankers of the feature"

    def _fitted_model(self) -> LinearModel | TreeModel:
        if self.weak_ranker == "feature":
            return LinearModel(self.feature_names_, self._weights())
        # A threshold is a tree of one split: above it the weight, below it and for missing values
        # 0.
        stumps = zip(self.feature_indices_, self.thresholds_, self.estimator_weights_, strict=True)
        return concatenate_trees(
            [
                {
                    "feature": [feature, -1, -1], "threshold": [threshold, 0, 0],
                    "left": [1, 0, 0], "right": [2, 0, 0], "missing_left": [True, False, False],
                    "value": [0, 0, weight],
                }
                for feature, threshold, weight in stumps
            ],
            self.feature_names_,
        )  # fmt: skip

    def facts(self) -> dict[str, str]:
        """Return the number of weak rankers."""
        return {"weak rankers": f"{len(self.estimator_weights_):,}"}

    def _archive(self) -> Archive:
        arrays = {"features": self.feature_indices_, "thresholds": self.thresholds_}
        return Archive("", {}, arrays | {"weights": self.estimator_weights_})

    def _restore(self, archive: Archive) -> None:
        self.feature_indices_ = np.asarray(archive.arrays["features"], np.int64)
        self.thresholds_ = np.asarray(archive.arrays["thresholds"], np.float64)
        self.estimator_weights_ = np.asarray(archive.arrays["weights"], np.float64)
        shapes = {
            self.feature_indices_.shape,
            self.thresholds_.shape,
            self.estimator_weights_.shape,
        }
        if len(shapes) > 1 or self.feature_indices_.ndim != 1:
            raise ValueError("the arrays of weak rankers differ in length")
        if not ((self.feature_indices_ >= 0) & (self.feature_indices_ < self.n_features_in_)).all():
            raise ValueError("the feature of a weak ranker is out of range")


def _weight(edge: float) -> float:
    bounded = min(edge, _MAX_EDGE)
    return 0.5 * float(np.log((1 + bounded) / (1 - bounded)))


class _BoostingState:
    """The distributions over pairs and over lists, which say what is still wrong."""

    def __init__(
        self, data: Dataset, query_weights: Doubles, beta: float, k: int | None, measure: Measure
    ) -> None:
        self.beta = beta
        self._query_weights = self._list_weights = query_weights
        self._data = data
        self._measure = measure
        # With both, the lists are the top documents, and the pairs cross their boundary.
        focused = 0 < beta < 1
        self._pairs = PairExponential(k=k, pairs="across" if focused else "all")
        self.potential = np.zeros(data.rows)
        self.rows: Ints | None = None
        self.listed = data
        if focused:
            self.rows, self.listed, filled = _top_lists(data, k)
            self._list_weights = query_weights[filled]
        if focused and measure.name == "AP":
            raise ArgumentError(
                "AP cannot order the top documents, which are all relevant",
                hint="Give list_measure='nDCG'.",
            )
        self.lists = _list_objective(self.listed, self.rows, data.rows, measure)
        # Whether a list has a relevant document and more than one order.
        self._countable = (self.lists.gains > 0) & (self.lists.sizes > 1)
        if beta > 0 and not self._countable.any():
            raise _no_gain_error()
        self._count = 1.0  # the number of pairs: each has the weight of its query at zero scores
        self._count = self._reweight_pairs(np.zeros(data.rows))
        self._reweight_lists(np.zeros(len(self.listed)))

    def update(self, scores: Doubles) -> float:
        """Reweight pairs and lists by the errors of the scores; return the loss."""
        pairs = self._reweight_pairs(scores)
        lists = self._reweight_lists(self.list_values(scores)) if self.beta > 0 else 0.0
        return (1 - self.beta) * pairs + self.beta * lists

    def _reweight_pairs(self, scores: Doubles) -> float:
        """Set the potentials; return the mean weight of the pairs."""
        if self.beta == 1:
            return 0.0
        pairs = self._pairs.evaluate(
            scores, self._data.labels, self._data.offsets, query_weights=self._query_weights
        )
        if not pairs.total:
            raise DataError("no document is preferred to another", hint="Check the labels.")
        np.divide(pairs.gradient, -pairs.total, out=self.potential)
        return pairs.total / self._count

    def _reweight_lists(self, values: Doubles) -> float:
        """Set the weights of the lists by their measure; return their mean."""
        weights = self._countable * self._list_weights * np.exp(-values)
        if self.beta > 0:
            self.lists = self.lists._replace(weights=weights / weights.sum())
        return float(weights.sum() / self._list_weights.sum())

    @property
    def tied_edge(self) -> float:
        """The edge of a weak ranker that ties all documents.

        Tied documents have a positive measure, but no pair in order: with lists and pairs together,
        only the edge above this is comparable. AdaRank, which has lists only, uses the edge itself.
        """
        if not 0 < self.beta < 1:
            return 0.0
        lists = self.lists
        tied = lists.gains / np.maximum(lists.sizes, 1)
        tied *= lists.sums[np.minimum(lists.sizes, lists.cut)]
        return self.beta * float(lists.weights @ tied)

    def list_values(self, scores: Doubles) -> Doubles:
        """Evaluate the measure of each list."""
        list_scores = scores if self.rows is None else scores[self.rows]
        return evaluate(self._measure, self.listed, list_scores)[self._measure]


class _ThresholdLearner:
    """Learns weak rankers that are thresholds."""

    def __init__(self, data: Dataset) -> None:
        self._sorted = SortedFeatures(data.features)

    def best(self, state: _BoostingState, excluded: set[int]) -> Stump | None:
        return self._sorted.best(state.potential, state.lists, state.beta, excluded)

    def output(self, stump: Stump, features: Floats) -> Doubles:
        # In double precision, as predictions do: a float32 cannot be between two neighbors.
        column = features[:, stump.feature].astype(np.float64)
        return (column > stump.threshold).astype(np.float64)


class _FeatureLearner:
    """Learns weak rankers that are features, whose measure of each list is computed once."""

    def __init__(self, data: Dataset, state: _BoostingState) -> None:
        if not np.isfinite(data.features).all():
            raise missing_feature()
        columns = data.features.T.astype(np.float64)
        self._values = np.array([state.list_values(column) for column in columns])

    def best(self, state: _BoostingState, excluded: set[int]) -> Stump | None:
        edges = self._values @ state.lists.weights
        edges[list(excluded)] = -1.0
        feature = int(np.argmax(edges))
        return Stump(feature, np.nan, float(edges[feature]), 1.0)

    def output(self, stump: Stump, features: Floats) -> Doubles:
        return features[:, stump.feature].astype(np.float64)


def _top_lists(data: Dataset, k: int | None) -> tuple[Ints, Dataset, NDArray[np.bool_]]:
    """Return the rows of each query's top k, including ties with the last, as a data set.

    And which queries have any.
    """
    rows, starts = top_documents(data.labels.astype(np.float64), data.offsets, k)
    filled = np.diff(starts) > 0  # a query without a preference has no list
    if not filled.any():
        raise _no_gain_error()
    listed = replace(
        data,
        features=data.features[rows, :0],
        feature_names=(),
        labels=data.labels[rows],
        query_ids=data.query_ids.filter(pa.array(filled)),
        offsets=np.append(starts[:-1][filled], starts[-1]),
        document_ids=None if data.document_ids is None else data.document_ids.take(rows),
    )
    return rows, listed, filled


def _no_gain_error() -> PodiumError:
    return PodiumError("no list has a relevant document", hint="Check the labels.")


def _list_objective(
    listed: Dataset, rows: Ints | None, count: int, measure: Measure
) -> ListObjective:
    kind = {"nDCG": NDCG, "AP": AVERAGE_PRECISION}.get(measure.name)
    if kind is None or measure.parameters:
        raise ArgumentError(
            f"list_measure is {measure!r}", hint="Give AP, nDCG, or nDCG with a cut-off."
        )
    query_of_row = np.full(count, -1)
    gain_of_row = np.zeros(count)
    selected = slice(None) if rows is None else rows
    sizes = listed.sizes
    longest = int(sizes.max(initial=0))
    sums = discount_sums(kind, longest)
    query_of_row[selected] = listed.query_of_row
    cut = measure.cut_off or longest
    if kind == AVERAGE_PRECISION:
        if measure.cut_off is not None:
            raise ArgumentError(f"list_measure is {measure!r}", hint="Give AP without a cut-off.")
        gains = (listed.labels >= 1).astype(np.float64)
    else:
        gains = _ndcg_gains(listed, sums, cut)
    gain_of_row[selected] = gains
    totals = np.bincount(listed.query_of_row, gains, minlength=len(listed)).astype(np.float64)
    weights = np.zeros(len(listed))
    return ListObjective(kind, cut, sums, query_of_row, gain_of_row, sizes, totals, weights)


def _ndcg_gains(listed: Dataset, sums: Doubles, cut: int) -> Doubles:
    """Return gains divided by the ideal DCG; scaled by the query's largest, so all are finite."""
    labels = listed.labels.astype(np.float64)
    query, begins = listed.query_of_row, listed.offsets[:-1]
    highest = np.maximum(np.maximum.reduceat(labels, begins), 0.0)
    gains = exponential_gains(labels, highest[query])
    order = np.lexsort((-gains, query))  # the ideal ranking of each query
    positions = np.arange(len(labels)) - listed.offsets[query]
    discounts = np.diff(sums)[positions] * (positions < cut)
    ideal = np.add.reduceat(gains[order] * discounts, begins)
    return np.asarray(gains / np.where(ideal > 0, ideal, 1.0)[query])

"""Boosting weak rankers: RankBoost, AdaRank and FocusedBoost are one algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa

from podium.data import Dataset
from podium.data.gains import exponential_gains
from podium.errors import ArgumentError, DataError, PodiumError
from podium.kernels import Doubles, Floats, Ints
from podium.losses import PairExponential
from podium.losses.top_documents import top_documents
from podium.measures import Measure, evaluate, parse_measure
from podium.rankers.base import FitInterrupted, Progress, Ranker, Training, in_memory
from podium.rankers.linear_kernels import linear_scores, missing_feature
from podium.rankers.parameter_checks import check_integer, check_number, check_patience
from podium.rankers.storage import Archive
from podium.rankers.stumps import (
    AVERAGE_PRECISION,
    NDCG,
    Lists,
    SortedFeatures,
    Stump,
    discount_sums,
    stump_scores,
)
from podium.rankers.validation_monitor import Watch

# A weak ranker that makes no mistake would get infinite weight.
_SUREST = 1 - 1e-9


class BoostedRanker(Ranker):
    """A weighted sum of weak rankers, each chosen for what those before it got wrong.

    Each round picks the weak ranker h with the largest
    ``r = beta * sum P(q) E(h, q) + (1 - beta) * sum D(u, v) (h(u) - h(v))``: E is a measure of the
    lists, u is preferred to v, and P and D are distributions over queries and pairs. It is added
    with weight ``1/2 ln((1 + r) / (1 - r))``; then queries weigh ``exp(-E)`` of the sum so far,
    and pairs ``exp(score(v) - score(u))``, so what is right already counts less.

    ``beta=0`` is RankBoost (Freund et al. 2003), ``beta=1`` AdaRank (Xu and Li 2007), between them
    FocusedBoost (Niu et al. 2012): its lists are the top documents alone, its pairs those across
    their edge, and E counts from what tying all documents gives, for a range comparable with the
    pairs'. A round is one pass over the sorted values of each feature.

    Args:
        beta: How much the lists count, from 0 to 1; the pairs count the rest.
        k: The top-k form: pairs with a preferred document in the top k; for lists, see ``beta``.
            None for the full order.
        lists: The measure of the lists: ``AP`` or ``nDCG``, with a cut-off or not.
        weak: ``"thresholds"``: 1 for documents whose feature is above a threshold, or below it.
            ``"features"``: the features themselves, as in the paper on AdaRank; for lists alone.
        rounds: The most weak rankers.
        patience: With validation queries: stop after this many rounds without a better measure.
        measure: What the validation queries are measured by.

    Attributes:
        features_: The feature of each weak ranker.
        thresholds_: Its threshold (NaN if it is a feature itself).
        weights_: Its weight, below 0 if documents below the threshold come first.

    Example:
        >>> random = np.random.default_rng(0)
        >>> X = random.random((400, 3))
        >>> y = np.round(3 * X[:, 1])
        >>> ranker = BoostedRanker(rounds=5).fit(X, y, group=[20] * 20)
        >>> ranker.features_.tolist()
        [1, 1, 1, 1, 1]
    """

    def __init__(
        self,
        *,
        beta: float = 0.0,
        k: int | None = None,
        lists: str = "nDCG@10",
        weak: Literal["thresholds", "features"] = "thresholds",
        rounds: int = 300,
        patience: int | None = 50,
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.beta = beta
        self.k = k
        self.lists = lists
        self.weak = weak
        self.rounds = rounds
        self.patience = patience
        self.measure = measure

    def _fit(self, data: Training, validation: Training | None, progress: Progress | None) -> None:
        train, held_out = in_memory(data), None if validation is None else in_memory(validation)
        beta = float(self.beta)
        teacher = _Teacher(train, beta, self.k, parse_measure(self.lists))
        student = _Features(train, teacher) if self.weak == "features" else _Thresholds(train)
        scores = np.zeros(train.rows)
        seen = np.zeros(0 if held_out is None else held_out.rows)
        chosen: list[Stump] = []
        weights: list[float] = []
        barred: set[int] = set()
        watch: Watch[int] = Watch(lambda _count, _block: seen, self.measure, held_out, progress)
        try:
            for step in range(1, self.rounds + 1):
                stump = student.best(teacher, barred)
                worth = 0.0 if stump is None else stump.worth - teacher.worth_of_nothing
                if stump is None or worth <= 0:
                    break
                weight = stump.sign * _weight(worth)
                chosen.append(stump)
                weights.append(weight)
                scores += weight * student.output(stump, train.features)
                if held_out is not None:
                    seen += weight * student.output(stump, held_out.features)
                before = teacher.lists.weights
                watch(step, step, teacher.learn(scores))
                # A feature that changed nothing would be chosen again, for ever.
                stuck = beta == 1 and np.array_equal(before, teacher.lists.weights)
                barred = barred | {stump.feature} if stuck else set()
                if self.patience is not None and step - watch.best_step >= self.patience:
                    break
        except KeyboardInterrupt as stop:
            if not watch.model:
                raise
            self._keep(chosen[: watch.model], weights)
            raise FitInterrupted from stop
        self._keep(chosen[: watch.model or 0], weights)

    def _keep(self, chosen: list[Stump], weights: list[float]) -> None:
        self.features_ = np.array([stump.feature for stump in chosen], np.int64)
        self.thresholds_ = np.array([stump.threshold for stump in chosen], np.float64)
        self.weights_ = np.array(weights[: len(chosen)])

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""
        check_integer("rounds", self.rounds)
        check_patience(self.patience)
        if self.k is not None:
            check_integer("k", self.k)
        check_number("beta", self.beta)
        if self.beta > 1:
            raise ArgumentError(f"beta is {self.beta}. Give a number from 0 to 1.")
        if self.weak not in ("thresholds", "features"):
            raise ArgumentError(f"weak is {self.weak!r}. Give 'thresholds' or 'features'.")
        if self.weak == "features" and self.beta < 1:
            raise ArgumentError("Features as weak rankers are for lists alone. Give beta=1.")

    def _predict(self, features: Floats) -> Doubles:
        result = np.zeros(len(features))
        if self.weak == "features":
            whole = np.zeros(self.n_features_in_)
            np.add.at(whole, self.features_, self.weights_)
            scores = linear_scores(features, whole, np.arange(len(features) + 1))
            if np.isnan(scores).any():  # as in the fit
                raise missing_feature()
            return scores
        stump_scores(features, self.features_, self.thresholds_, self.weights_, result)
        return result

    def _archive(self) -> Archive:
        arrays = {"features": self.features_, "thresholds": self.thresholds_}
        return Archive("", {}, arrays | {"weights": self.weights_})

    def _restore(self, archive: Archive) -> None:
        self.features_ = np.asarray(archive.arrays["features"], np.int64)
        self.thresholds_ = np.asarray(archive.arrays["thresholds"], np.float64)
        self.weights_ = np.asarray(archive.arrays["weights"], np.float64)
        shapes = {self.features_.shape, self.thresholds_.shape, self.weights_.shape}
        if len(shapes) > 1 or self.features_.ndim != 1:
            raise ValueError("weak rankers differ in number")
        if not ((self.features_ >= 0) & (self.features_ < self.n_features_in_)).all():
            raise ValueError("a weak ranker is of no feature")


def _weight(worth: float) -> float:
    bounded = min(worth, _SUREST)
    return 0.5 * float(np.log((1 + bounded) / (1 - bounded)))


class _Teacher:
    """What is still wrong: the distributions over pairs and over lists."""

    def __init__(self, data: Dataset, beta: float, k: int | None, measure: Measure) -> None:
        self.beta = beta
        self._data = data
        self._measure = measure
        # With both, the lists are the top documents, and the pairs go across their edge.
        focused = 0 < beta < 1
        self._pairs = PairExponential(k=k, pairs="across" if focused else "all")
        self.potential = np.zeros(data.rows)
        self.rows: Ints | None = None
        self.listed = data
        if focused:
            self.rows, self.listed = _listed(data, k)
        if focused and measure.name == "AP":
            raise ArgumentError("The top documents are all relevant. Measure them by nDCG.")
        self.lists = _lists(self.listed, self.rows, data.rows, measure)
        # 1 for each list that has something to find, and an order to get wrong.
        self._countable = (self.lists.gains > 0) & (self.lists.sizes > 1)
        if beta > 0 and not self._countable.any():
            raise _nothing_to_find()
        self._count = 1.0  # of pairs, each of which weighs 1 at scores of 0
        self._count = self._weigh_pairs(np.zeros(data.rows))
        self._weigh_lists(np.zeros(len(self.listed)))

    def learn(self, scores: Doubles) -> float:
        """Weigh pairs and lists by how wrong the scores have them; return the loss."""
        pairs = self._weigh_pairs(scores)
        lists = self._weigh_lists(self.list_values(scores)) if self.beta > 0 else 0.0
        return (1 - self.beta) * pairs + self.beta * lists

    def _weigh_pairs(self, scores: Doubles) -> float:
        """Set the potentials; return the mean weight of a pair."""
        if self.beta == 1:
            return 0.0
        found = self._pairs.evaluate(scores, self._data.labels, self._data.offsets)
        if not found.total:
            raise DataError("no document is preferred to another", hint="Check the labels.")
        np.divide(found.gradient, -found.total, out=self.potential)
        return found.total / self._count

    def _weigh_lists(self, values: Doubles) -> float:
        """Set the weights of lists by their measure; return their mean."""
        weights = self._countable * np.exp(-values)
        if self.beta > 0:
            self.lists = self.lists._replace(weights=weights / weights.sum())
        return float(weights.mean())

    @property
    def worth_of_nothing(self) -> float:
        """What a weak ranker is worth that ties all documents.

        Lists are worth much even then, and pairs nothing: with both, only what is above this is
        comparable. AdaRank, which has lists alone, takes their worth as it is.
        """
        if not 0 < self.beta < 1:
            return 0.0
        lists = self.lists
        tied = lists.gains / np.maximum(lists.sizes, 1)
        tied *= lists.sums[np.minimum(lists.sizes, lists.cut)]
        return self.beta * float(lists.weights @ tied)

    def list_values(self, scores: Doubles) -> Doubles:
        """The measure of each list."""
        own = scores if self.rows is None else scores[self.rows]
        return evaluate(self._measure, self.listed, own)[self._measure]


class _Thresholds:
    """Weak rankers that are thresholds."""

    def __init__(self, data: Dataset) -> None:
        self._sorted = SortedFeatures(data.features)

    def best(self, teacher: _Teacher, barred: set[int]) -> Stump | None:
        return self._sorted.best(teacher.potential, teacher.lists, teacher.beta, barred)

    def output(self, stump: Stump, features: Floats) -> Doubles:
        return (features[:, stump.feature] > stump.threshold).astype(np.float64)


class _Features:
    """Weak rankers that are features; what each is worth to each list is known from the start."""

    def __init__(self, data: Dataset, teacher: _Teacher) -> None:
        if not np.isfinite(data.features).all():
            raise missing_feature()
        columns = data.features.T.astype(np.float64)
        self._values = np.array([teacher.list_values(column) for column in columns])

    def best(self, teacher: _Teacher, barred: set[int]) -> Stump | None:
        worths = self._values @ teacher.lists.weights
        worths[list(barred)] = -1.0
        feature = int(np.argmax(worths))
        return Stump(feature, np.nan, float(worths[feature]), 1.0)

    def output(self, stump: Stump, features: Floats) -> Doubles:
        return features[:, stump.feature].astype(np.float64)


def _listed(data: Dataset, k: int | None) -> tuple[Ints, Dataset]:
    """The rows of each query's top k, ties with the last included, as lists of their own."""
    rows, starts = top_documents(data.labels.astype(np.float64), data.offsets, k)
    filled = np.diff(starts) > 0  # a query without a preference has no list
    if not filled.any():
        raise _nothing_to_find()
    return rows, replace(
        data,
        features=data.features[rows, :0],
        feature_names=(),
        labels=data.labels[rows],
        query_ids=data.query_ids.filter(pa.array(filled)),
        offsets=np.append(starts[:-1][filled], starts[-1]),
        document_ids=None if data.document_ids is None else data.document_ids.take(rows),
    )


def _nothing_to_find() -> PodiumError:
    return PodiumError("No list has anything to find. Check the labels.")


def _lists(listed: Dataset, rows: Ints | None, count: int, measure: Measure) -> Lists:
    kind = {"nDCG": NDCG, "AP": AVERAGE_PRECISION}.get(measure.name)
    if kind is None or measure.parameters:
        raise ArgumentError(f"Lists cannot be measured by {measure!r}. Give AP, nDCG or nDCG@10.")
    query_of_row = np.full(count, -1)
    gain_of_row = np.zeros(count)
    mine = slice(None) if rows is None else rows
    sizes = listed.sizes
    longest = int(sizes.max(initial=0))
    sums = discount_sums(kind, longest)
    query_of_row[mine] = listed.query_of_row
    cut = measure.cut_off or longest
    if kind == AVERAGE_PRECISION:
        if measure.cut_off is not None:
            raise ArgumentError("AP takes no cut-off here.")
        gains = (listed.labels >= 1).astype(np.float64)
    else:
        gains = _ndcg_gains(listed, sums, cut)
    gain_of_row[mine] = gains
    totals = np.bincount(listed.query_of_row, gains, minlength=len(listed)).astype(np.float64)
    weights = np.zeros(len(listed))
    return Lists(kind, cut, sums, query_of_row, gain_of_row, sizes, totals, weights)


def _ndcg_gains(listed: Dataset, sums: Doubles, cut: int) -> Doubles:
    """Gains by the ideal DCG, and before by the query's highest, so that all are finite."""
    labels = listed.labels.astype(np.float64)
    query, begins = listed.query_of_row, listed.offsets[:-1]
    highest = np.maximum(np.maximum.reduceat(labels, begins), 0.0)
    gains = exponential_gains(labels, highest[query])
    order = np.lexsort((-gains, query))  # the ideal ranking of each query
    places = np.arange(len(labels)) - listed.offsets[query]
    discounts = np.diff(sums)[places] * (places < cut)
    ideal = np.add.reduceat(gains[order] * discounts, begins)
    found: Doubles = gains / np.where(ideal > 0, ideal, 1.0)[query]
    return found

"""Cascades: a base ranker selects candidates, and rerankers vote on their order."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import combinations
from math import factorial
from typing import Any, Literal, Never

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from podium.aggregation import proportional_weights, supervised_kemeny, tuned_weights
from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures.names import parse_measure
from podium.measures.registry import Measure
from podium.rankers.base import FitInterrupted, Ranker, nested_rankers
from podium.rankers.explanation import Explanation, adding_up, query_documents
from podium.rankers.fit_progress import Progress
from podium.rankers.loading import load_ranker
from podium.rankers.parameter_checks import check_integer, check_number
from podium.rankers.sample_weights import FitWeights
from podium.rankers.sparse_rows import SparseMatrix
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData, in_memory
from podium.rankers.validation_monitor import mean_value

_MOST_PLAYERS = 10
"""Each player doubles the number of coalitions."""


class CascadeRanker(Ranker):
    """A base ranker selects candidates, and the votes of rerankers sort them (TopRank).

    The first ``candidates`` documents of the base ranker for each query are sorted by the weighted
    majority of the rerankers, starting from the base order (supervised Kemeny; Cheng et al. 2014).
    The other documents follow in the base order. Rankers with different losses or scorers correct
    each other's errors.

    The rank of a document depends on the other documents of its query, so ``predict`` needs a data
    set.

    Args:
        base: The ranker that selects the candidates.
        rerankers: The rankers that vote.
        candidates: The number of documents of a query to vote on.
        vote_fraction: The fraction of a query's candidates that each vote ranks (rounded, at least
            one): half in the paper. The others count as tied below.
        base_votes: Whether the base ranker votes as well.
        weights: The weights of the votes: ``"proportional"`` to each ranker's measure on the
            ``eval_set`` (as in the paper; larger must be better), ``"tuned"`` jointly on the
            ``eval_set``, or ``"uniform"``. Without an ``eval_set``, weights are uniform.
        measure: The measure of the validation queries.

    Attributes:
        base_: The fitted base ranker.
        rerankers_: The fitted rerankers.
        weights_: The weight of each vote; that of the base ranker, if it votes, is the last.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((200, 3))
        >>> data = Dataset.from_arrays(X, labels=np.round(3 * X[:, 0]), group=[20] * 10)
        >>> rerankers = [LinearRanker("PairHinge(k=5)"), LinearRanker("ListNet()")]
        >>> ranker = CascadeRanker(LinearRanker(), rerankers, candidates=5).fit(data)
        >>> ranker.weights_.tolist()
        [0.5, 0.5]
        >>> sorted(ranker.predict(data)[:20]) == list(range(1, 21))
        True
    """

    measures_steps = False
    takes_weights = True
    whole_queries = True
    limits = ("It ranks whole queries: a document has no score without the others.",)

    def __init__(
        self,
        base: Ranker | None = None,
        rerankers: Sequence[Ranker] = (),
        *,
        candidates: int = 100,
        vote_fraction: float = 0.5,
        base_votes: bool = False,
        weights: Literal["proportional", "tuned", "uniform"] = "proportional",
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.base = base
        self.rerankers = rerankers
        self.candidates = candidates
        self.vote_fraction = vote_fraction
        self.base_votes = base_votes
        self.weights = weights
        self.measure = measure

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether all of its rankers stream."""
        return all(ranker.streams for ranker in nested_rankers(self))

    def _check_weights(self, weights: FitWeights) -> None:
        for ranker in nested_rankers(self):
            ranker._check_weights(weights)

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,
        progress: Progress | None,
        weights: FitWeights | None = None,
    ) -> None:
        sample_weight = None
        if weights is not None:
            sample_weight = weights.queries if weights.rows is None else weights.rows
        fitted = []
        for step, ranker in enumerate([self.base, *self.rerankers], start=1):
            try:
                fitted.append(
                    clone(ranker).fit(data, eval_set=validation, sample_weight=sample_weight)
                )
            except FitInterrupted as stop:  # a single ranker is fitted, but not the cascade
                raise KeyboardInterrupt from stop
            if progress is not None:
                progress(step, np.nan, None)
        self.base_, *self.rerankers_ = fitted
        voters = len(self.rerankers_) + self.base_votes
        self.weights_ = np.full(voters, 1 / voters)
        if validation is not None and self.weights != "uniform":
            self.weights_ = self._learned_weights(in_memory(validation))

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are invalid for any data."""
        if self.base is None or not len(self.rerankers):
            raise ArgumentError(
                "a cascade needs a base ranker and a reranker", hint="Give base and rerankers."
            )
        check_integer("candidates", self.candidates)
        check_number("vote_fraction", self.vote_fraction, positive=True)
        if self.vote_fraction > 1:
            raise ArgumentError(
                f"vote_fraction is {self.vote_fraction}", hint="Give a number above 0, up to 1."
            )
        if self.weights not in ("proportional", "tuned", "uniform"):
            raise ArgumentError(
                f"weights is {self.weights!r}", hint="Give 'proportional', 'tuned' or 'uniform'."
            )
        if self.weights == "proportional" and not parse_measure(self.measure).larger_is_better:
            raise ArgumentError(
                f"weights cannot be proportional to {self.measure}, for which smaller is better",
                hint="Give weights='tuned' or 'uniform', or another measure.",
            )
        for ranker in nested_rankers(self):
            ranker.check_parameters()

    def _learned_weights(self, validation: Dataset) -> Doubles:
        larger_is_better = parse_measure(self.measure).larger_is_better
        sign = 1.0 if larger_is_better else -1.0
        base_scores = self._base_scores(validation)
        votes = self._votes(validation)

        def quality(scores: Doubles) -> float:
            return sign * mean_value(self.measure, validation, scores)

        start = self.weights_
        if larger_is_better:
            start = proportional_weights(votes, quality, validation.offsets)
        if self.weights == "proportional":
            return start

        def aggregate(_votes: ArrayLike, _offsets: Any, *, ranker_weights: ArrayLike) -> Doubles:
            return self._combine(votes, ranker_weights, base_scores, validation.offsets)

        return tuned_weights(votes, quality, aggregate, validation.offsets, start=start)

    def predict(self, X: ArrayLike | SparseMatrix | Dataset) -> Doubles:
        """Score each row of a data set: its rank from the bottom of its query."""
        if not isinstance(X, Dataset):
            raise DataError(
                "a cascade ranks whole queries, and an array does not have query boundaries",
                hint="Give a Dataset: Dataset.from_arrays(X, labels, group=...).",
            )
        self._require_fitted()
        return self._scores(self.features_.data_set(X))

    def _scores(self, data: Dataset) -> Doubles:
        return self._combine(
            self._votes(data), self.weights_, self._base_scores(data), data.offsets
        )

    def score_query(
        self,
        rows: Any,
        pairs: Sequence[tuple[str, str]] = (),  # noqa: ARG002
    ) -> Doubles:
        """Score the documents of one query, without checks."""
        labels = np.zeros(len(rows), np.float32)
        names = self.feature_names_
        return self._scores(
            Dataset.from_arrays(rows, labels, group=[len(rows)], feature_names=names)
        )

    def _fitted_model(self) -> Never:
        raise ArgumentError(
            "a cascade ranks the documents of a query by votes, which no target can express",
            hint="Export its base and its rerankers each.",
        )

    def _base_scores(self, data: Dataset) -> Doubles:
        base: Ranker = self.base_
        return base.predict(data)

    def _votes(self, data: Dataset) -> Doubles:
        voters = [*self.rerankers_, *([self.base_] if self.base_votes else [])]
        return np.stack([ranker.predict(data) for ranker in voters], axis=1)

    def _combine(
        self, votes: Doubles, weights: ArrayLike, base_scores: Doubles, offsets: Ints
    ) -> Doubles:
        """Sort the candidates of each query by the weighted majority of votes."""
        ranks = _ranks(base_scores, offsets)
        is_candidate = ranks < self.candidates
        rows = np.flatnonzero(is_candidate)
        starts = np.concatenate(([0], np.cumsum(is_candidate)))[offsets]
        sizes, counts = np.diff(offsets), np.diff(starts)
        candidate_scores = supervised_kemeny(
            votes[rows],
            starts,
            ranker_weights=weights,
            start=base_scores[rows],
            top=np.maximum(1, np.rint(self.vote_fraction * counts).astype(np.int64)),
        )
        result = (np.repeat(sizes, sizes) - ranks).astype(np.float64)
        # Candidates have scores from 1 to their number; the other documents come below.
        result[rows] = candidate_scores + np.repeat(sizes - counts, counts)
        return result

    def _explain(self, data: Dataset) -> Explanation:
        names = ("base", *(f"reranker {number}" for number in range(1, len(self.rerankers_) + 1)))
        rankers = dict(zip(names, [self.base_, *self.rerankers_], strict=True))
        parts = {name: ranker.explain(data) for name, ranker in rankers.items()}
        base_scores, votes, offsets = self._base_scores(data), self._votes(data), data.offsets
        base_order = (data.rows - _ranks(base_scores, offsets)).astype(np.float64)

        def ranked(voters: list[int]) -> Doubles:
            if not self.weights_[voters].any():
                return base_order
            return self._combine(votes[:, voters], self.weights_[voters], base_scores, offsets)

        # The base order is there without any vote; votes move documents from it.
        effects = shapley_values(ranked, votes.shape[1])
        contributions = np.column_stack([base_order, effects[:, : len(self.rerankers_)]])
        if self.base_votes:
            contributions[:, 0] += effects[:, -1]
        scores = self.predict(data)
        return Explanation(
            *query_documents(data),
            names,
            scores,
            adding_up(contributions, scores, type(self).__name__),
            np.column_stack([part.scores for part in parts.values()]),
            self.contribution_method(),
            parts=parts,
        )

    def contribution_method(self) -> str:
        """Return how contributions of its rankers are defined, as a phrase."""
        return "Shapley values of the votes, in ranks, beginning with the base order"

    def _archive(self) -> Archive:
        blobs = {"base": self.base_.to_bytes()}
        for number, ranker in enumerate(self.rerankers_):
            blobs[f"reranker{number}"] = ranker.to_bytes()
        return Archive("", {"rerankers": len(self.rerankers_)}, {"weights": self.weights_}, blobs)

    def _restore(self, archive: Archive) -> None:
        names = [f"reranker{number}" for number in range(int(archive.metadata["rerankers"]))]
        loaded = [load_ranker(io.BytesIO(archive.blobs[name])) for name in ("base", *names)]
        self.base_, *self.rerankers_ = loaded
        self.base, self.rerankers = clone(self.base_), [clone(ranker) for ranker in self.rerankers_]
        self.weights_ = np.asarray(archive.arrays["weights"], np.float64)
        if self.weights_.shape != (len(names) + bool(self.base_votes),):
            raise ValueError("the numbers of votes and weights differ")


def _ranks(scores: Doubles, offsets: Ints) -> Ints:
    """Rank each row in its query by score, from 0; rows with equal scores keep their order."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, query))
    ranks = np.empty(len(scores), np.int64)
    ranks[order] = np.arange(len(scores)) - offsets[query[order]]
    return ranks


def shapley_values(value: Callable[[list[int]], Doubles], players: int) -> Doubles:
    """Return what each player adds on average over all orders in which they join.

    Args:
        value: Returns the values of a coalition, one per row.
        players: The number of players.

    Returns:
        A row per row, a column per player; they add up to what all players add to none.

    Example:
        >>> worth = {(): 0.0, (0,): 1.0, (1,): 2.0, (0, 1): 5.0}
        >>> shapley_values(lambda coalition: np.array([worth[tuple(coalition)]]), 2).tolist()
        [[2.0, 3.0]]
    """
    if players > _MOST_PLAYERS:
        raise ArgumentError(
            f"a cascade of {players} votes is not explained",
            hint=f"Explain one of at most {_MOST_PLAYERS}, or its rankers each.",
        )
    everyone = range(players)
    values = {
        coalition: value(list(coalition))
        for size in range(players + 1)
        for coalition in combinations(everyone, size)
    }
    result = np.zeros((len(values[()]), players))
    for coalition, without in values.items():
        for player in set(everyone) - set(coalition):
            orders = factorial(len(coalition)) * factorial(players - len(coalition) - 1)
            joined = tuple(sorted((*coalition, player)))
            result[:, player] += orders / factorial(players) * (values[joined] - without)
    return result

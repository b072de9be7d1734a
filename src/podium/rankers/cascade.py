"""Cascades: a base ranker keeps candidates, rerankers vote on them, weighted Kemeny decides."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from podium.aggregation import proportional_weights, supervised_kemeny, tuned_weights
from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.kernels import Doubles, Ints
from podium.measures import Measure, parse_measure
from podium.rankers.base import (
    FitInterrupted,
    Progress,
    Ranker,
    Training,
    in_memory,
    load_ranker,
    mean_value,
    members_of,
)
from podium.rankers.feature_columns import aligned_dataset
from podium.rankers.storage import Archive


class CascadeRanker(Ranker):
    """Candidates of one ranker, put in order by the votes of others (TopRank, Cheng et al. 2014).

    The base ranker's first ``candidates`` documents of each query are sorted by the weighted
    majority of the rerankers, starting from the base order; the others follow in the base order.
    Rankers that differ (in their loss or their scorer) make up for one another's mistakes.

    A document's place depends on the others of its query, so ``predict`` needs a data set.

    Args:
        base: The ranker that keeps the candidates.
        rerankers: The rankers that vote.
        candidates: How many documents of a query are voted on.
        ballot: How many of a query's candidates each reranker's vote orders, as a share of them
            (rounded, at least one): half in the paper. What it leaves out counts as below.
        base_votes: Whether the base ranker votes too.
        weighing: How votes weigh, by validation queries: ``"proportional"`` to each reranker's
            measure (the paper; of which larger must be better), ``"tuned"`` together, or
            ``"equal"``. Equal without validation.
        measure: What the validation queries are measured by.

    Attributes:
        base_: The fitted base ranker.
        rerankers_: The fitted rerankers.
        weights_: What each vote weighs; the base ranker's, if it votes, is the last.

    Example:
        >>> from podium.rankers import LinearRanker
        >>> random = np.random.default_rng(0)
        >>> X = random.random((200, 3))
        >>> data = Dataset.from_arrays(X, labels=np.round(3 * X[:, 0]), group=[20] * 10)
        >>> rerankers = [LinearRanker("PairHinge(k=5)"), LinearRanker("ListNet()")]
        >>> ranker = CascadeRanker(LinearRanker(), rerankers, candidates=5).fit(data)
        >>> ranker.weights_.tolist()
        [0.5, 0.5]
        >>> sorted(ranker.predict(data)[:20]) == list(range(1, 21))
        True
    """

    def __init__(
        self,
        base: Ranker | None = None,
        rerankers: Sequence[Ranker] = (),
        *,
        candidates: int = 100,
        ballot: float = 0.5,
        base_votes: bool = False,
        weighing: Literal["proportional", "tuned", "equal"] = "proportional",
        measure: str | Measure = "nDCG@10",
    ) -> None:
        self.base = base
        self.rerankers = rerankers
        self.candidates = candidates
        self.ballot = ballot
        self.base_votes = base_votes
        self.weighing = weighing
        self.measure = measure

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether all its rankers do."""
        return all(member.streams for member in members_of(self))

    def _fit(self, data: Training, validation: Training | None, progress: Progress | None) -> None:
        fitted = []
        for step, ranker in enumerate([self.base, *self.rerankers], start=1):
            try:
                fitted.append(clone(ranker).fit(data, validation=validation))
            except FitInterrupted as stop:  # one of its rankers is fitted, but not the cascade
                raise KeyboardInterrupt from stop
            if progress is not None:
                progress(step, np.nan, None)
        self.base_, *self.rerankers_ = fitted
        voters = len(self.rerankers_) + self.base_votes
        self.weights_ = np.full(voters, 1 / voters)
        if validation is not None and self.weighing != "equal":
            self.weights_ = self._learned_weights(in_memory(validation))

    def check_parameters(self) -> None:
        """Raise an ArgumentError for parameters that are wrong whatever the data are."""
        if self.base is None or not len(self.rerankers):
            raise ArgumentError("A cascade needs a base ranker and at least one reranker.")
        if self.candidates < 1 or not 0 < self.ballot <= 1:
            raise ArgumentError("candidates is at least 1, and ballot a share above 0, up to 1.")
        if self.weighing == "proportional" and not parse_measure(self.measure).larger_is_better:
            raise ArgumentError(
                f"weights cannot be proportional to {self.measure}, of which smaller is better",
                hint="Give weighing='tuned' or 'equal', or another measure.",
            )
        if self.weighing not in ("proportional", "tuned", "equal"):
            raise ArgumentError("weighing is 'proportional', 'tuned' or 'equal'.")
        for member in members_of(self):
            member.check_parameters()

    def _learned_weights(self, validation: Dataset) -> Doubles:
        larger_is_better = parse_measure(self.measure).larger_is_better
        sign = 1.0 if larger_is_better else -1.0
        first = self._first(validation)
        votes = self._votes(validation)

        def quality(scores: Doubles) -> float:
            return sign * mean_value(self.measure, validation, scores)

        start = self.weights_
        if larger_is_better:
            start = proportional_weights(votes, quality, validation.offsets)
        if self.weighing == "proportional":
            return start

        def aggregate(_votes: ArrayLike, _offsets: Any, *, ranker_weights: ArrayLike) -> Doubles:
            return self._decide(votes, ranker_weights, first, validation.offsets)

        return tuned_weights(votes, quality, aggregate, validation.offsets, start=start)

    def predict(self, X: ArrayLike | Dataset) -> Doubles:
        """A score for each row of a data set: its place from the bottom of its query."""
        if not isinstance(X, Dataset):
            raise DataError(
                "a cascade ranks whole queries, and an array does not say where they begin",
                hint="Give a Dataset: Dataset.from_arrays(X, labels, group=...).",
            )
        self._refuse_unfitted()
        data = aligned_dataset(X, self.feature_names_)
        return self._decide(self._votes(data), self.weights_, self._first(data), data.offsets)

    def _first(self, data: Dataset) -> Doubles:
        base: Ranker = self.base_
        return base.predict(data)

    def _votes(self, data: Dataset) -> Doubles:
        voters = [*self.rerankers_, *([self.base_] if self.base_votes else [])]
        return np.stack([ranker.predict(data) for ranker in voters], axis=1)

    def _decide(self, votes: Doubles, weights: ArrayLike, first: Doubles, offsets: Ints) -> Doubles:
        places = _places(first, offsets)
        kept = places < self.candidates
        rows = np.flatnonzero(kept)
        starts = np.concatenate(([0], np.cumsum(kept)))[offsets]
        sizes, counts = np.diff(offsets), np.diff(starts)
        decided = supervised_kemeny(
            votes[rows],
            starts,
            ranker_weights=weights,
            start=first[rows],
            top=np.maximum(1, np.rint(self.ballot * counts).astype(np.int64)),
        )
        result = (np.repeat(sizes, sizes) - places).astype(np.float64)
        # Candidates have scores from 1 to their number, and all others of their query are below.
        result[rows] = decided + np.repeat(sizes - counts, counts)
        return result

    def _archive(self) -> Archive:
        blobs = {"base": self.base_.to_bytes()}
        for number, ranker in enumerate(self.rerankers_):
            blobs[f"reranker{number}"] = ranker.to_bytes()
        return Archive("", {"rerankers": len(self.rerankers_)}, {"weights": self.weights_}, blobs)

    def _restore(self, archive: Archive) -> None:
        names = [f"reranker{number}" for number in range(int(archive.facts["rerankers"]))]
        loaded = [load_ranker(io.BytesIO(archive.blobs[name])) for name in ("base", *names)]
        self.base_, *self.rerankers_ = loaded
        self.base, self.rerankers = clone(self.base_), [clone(one) for one in self.rerankers_]
        self.weights_ = np.asarray(archive.arrays["weights"], np.float64)
        if self.weights_.shape != (len(names) + bool(self.base_votes),):
            raise ValueError("votes and weights differ in number")


def _places(scores: Doubles, offsets: Ints) -> Ints:
    """The place of each row in its query by score, from 0; equal scores as given."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((-scores, query))
    places = np.empty(len(scores), np.int64)
    places[order] = np.arange(len(scores)) - offsets[query[order]]
    return places

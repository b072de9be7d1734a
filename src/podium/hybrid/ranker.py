"""A fusion as a ranker: its features are the scores of the lists, missing where not returned."""

from __future__ import annotations

from typing import Any, Never

import numpy as np
from numpy.typing import ArrayLike

from podium.data import Dataset, Judgments, Rankings
from podium.errors import ArgumentError, DataError
from podium.hybrid.fusion import COMBINATIONS, Combination, Fusion, Normalization, fuse, normalize
from podium.hybrid.tuning import TRIED, Chooser, JudgedLists
from podium.kernels import Doubles
from podium.losses import Loss
from podium.measures.registry import Measure
from podium.rankers.base import Ranker
from podium.rankers.explanation import Explanation, explain_features
from podium.rankers.fit_progress import Progress
from podium.rankers.sparse_rows import SparseMatrix
from podium.rankers.storage import Archive
from podium.rankers.training_data import TrainingData, in_memory


class HybridRanker(Ranker):
    """A fusion of result lists, chosen on labeled queries.

    A feature is a list: its score of the document, NaN where the list did not return it.

    Args:
        normalization: How scores become comparable; by default the best of those of OpenSearch.
        combination: How they become one; by default the best.
        depth: How many documents of each list count; all by default.
        loss: Learn the weights of an arithmetic mean by this loss; by default they are searched
            for the measure itself.
        measure: What is searched for.
        random_state: The seed of the inner folds.

    Attributes:
        fusion_: The fusion, which ``save`` of its own writes as TOML.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((400, 2))
        >>> ranker = HybridRanker("min-max", "arithmetic").fit(X, X[:, 1] > 0.8, group=[20] * 20)
        >>> bool(ranker.fusion_.weights[1] > 0.8)
        True
    """

    measures_steps = False
    whole_queries = True
    limits = ("It normalizes within a query: a document has no score without the others.",)

    fusion_: Fusion

    def __init__(
        self,
        normalization: Normalization | None = None,
        combination: Combination | None = None,
        *,
        depth: int | None = None,
        loss: Loss | str | None = None,
        measure: str | Measure = "nDCG@10",
        random_state: int = 0,
    ) -> None:
        self.normalization = normalization
        self.combination = combination
        self.depth = depth
        self.loss = loss  # type: ignore[assignment]
        self.measure = measure
        self.random_state = random_state

    def _fit(
        self,
        data: TrainingData,
        validation: TrainingData | None,  # noqa: ARG002
        progress: Progress | None,
    ) -> None:
        rows = in_memory(data)
        runs, judgments = _as_runs(rows)
        judged = JudgedLists.of(judgments, runs, self.measure, None, least_lists=1)
        combination = self.combination
        if self.loss is not None and combination is None:
            combination = "rrf" if self.normalization == "rank" else "arithmetic"
        chooser = Chooser(
            judged,
            TRIED if self.normalization is None else (self.normalization,),
            COMBINATIONS if combination is None else (combination,),
            depth=self.depth,
            loss=self.loss,
            random_state=self.random_state,
        )
        self.fusion_ = chooser.choice(judged.usable)
        if progress is not None:
            progress(1, float("nan"), None)

    def predict(self, X: ArrayLike | SparseMatrix | Dataset) -> Doubles:
        """Score each row of a data set; an array is one query."""
        self._require_fitted()
        if isinstance(X, Dataset):
            data = self.features_.data_set(X)
            return fuse(data.features, data.offsets, self.fusion_)
        self._rules().require_readable(X)
        return self.score_query(self.features_.matrix(X))

    def score_query(self, rows: Any, pairs: Any = ()) -> Doubles:  # noqa: ARG002
        """Score the documents of one query, without checks."""
        return fuse(rows, [0, len(rows)], self.fusion_)

    def _explain(self, data: Dataset) -> Explanation:
        fusion = self.fusion_
        if fusion.combination not in ("arithmetic", "rrf"):
            raise ArgumentError(
                f"what lists contribute to a {fusion.combination} mean does not add up",
                hint="Explain an arithmetic mean, or rrf.",
            )
        parts = normalize(data.features, data.offsets, fusion) * np.array(fusion.weights)
        if (parts < 0).any() and fusion.normalization != "none":
            raise DataError(
                "a score is negative, and means leave it out", hint="Use min-max or rank."
            )
        return explain_features(
            data, self.predict(data), parts, self.categories_, ranker=type(self).__name__,
            method=self.contribution_method(),
        )  # fmt: skip

    def contribution_method(self) -> str:
        """Return how contributions of features are defined, as a phrase."""
        return "the weight of the list times its normalized score"

    def _fitted_model(self) -> Never:
        raise ArgumentError(
            "a fusion needs the lists of a query, not the features of a row",
            hint="Save fusion_ as hybrid.toml, and export that.",
        )

    def facts(self) -> dict[str, str]:
        """Return the fusion in a line."""
        return {"fusion": str(self.fusion_)}

    def _archive(self) -> Archive:
        return Archive("", {"fusion": self.fusion_.to_toml()}, {})

    def _restore(self, archive: Archive) -> None:
        self.fusion_ = Fusion.from_toml(archive.metadata["fusion"])
        if len(self.fusion_.lists) != self.n_features_in_:
            raise ValueError("the numbers of lists and features differ")


def _as_runs(data: Dataset) -> tuple[dict[str, Rankings], Judgments]:
    """Return the features of a data set as runs, and its labels as judgments."""
    queries = np.array([str(each) for each in data.query_of_row])
    documents = np.array([str(row) for row in range(data.rows)])
    runs = {}
    for at, name in enumerate(data.feature_names):
        scores = np.asarray(data.features[:, at], np.float64)
        known = ~np.isnan(scores)
        runs[str(name)] = Rankings.from_columns(queries[known], documents[known], scores[known])
    return runs, Judgments.from_columns(queries, documents, np.asarray(data.labels))

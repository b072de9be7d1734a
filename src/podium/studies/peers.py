"""What people train today, as rankers that are tuned and measured like Podium's own.

Each is the library's own ranking objective with the library's own early stopping on NDCG@10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from podium.data import Dataset
from podium.errors import ArgumentError, PodiumError
from podium.kernels import Doubles, Floats
from podium.rankers.base import Progress, Ranker, TrainingData, in_memory
from podium.rankers.engines import import_engine
from podium.rankers.storage import Archive
from podium.threads import thread_count


class PeerRanker(Ranker):
    """A library's own ranking objective.

    Args:
        objective: One of ``PEERS``.
        n_estimators: The most trees.
        patience: Trees without a better NDCG@10 on the validation queries before it stops.
        parameters: The library's own.
        seed: The library's.
    """

    def __init__(
        self,
        objective: str = "LightGBM lambdarank",
        *,
        n_estimators: int = 300,
        patience: int = 50,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.patience = patience
        self.parameters = parameters
        self.seed = seed

    def _fit(
        self, data: TrainingData, validation: TrainingData | None, _progress: Progress | None
    ) -> None:
        if validation is None:
            raise ArgumentError("A peer stops early: give it validation queries.")
        train = PEERS[self.objective][0]
        self._scores = train(in_memory(data), in_memory(validation), self)

    def _predict(self, features: Floats) -> Doubles:
        return np.asarray(self._scores(features), np.float64)

    def _archive(self) -> Archive:
        raise PodiumError("Peers are only compared with. Save them with their own libraries.")

    def _restore(self, _archive: Archive) -> None:
        self._archive()


_Scorer = Callable[[Floats], Any]


def _lightgbm(objective: str) -> Callable[[Dataset, Dataset, PeerRanker], _Scorer]:
    def train(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
        lightgbm = import_engine("lightgbm", "studies")

        settings = {
            "objective": objective,
            "metric": "ndcg",
            "eval_at": [10],
            "verbosity": -1,
            "num_threads": thread_count(),
            "deterministic": True,
            "force_row_wise": True,
            "seed": peer.seed,
            **(peer.parameters or {}),
        }
        rows = lightgbm.Dataset(data.features, data.labels, group=data.sizes, params=settings)
        held_out = lightgbm.Dataset(
            validation.features, validation.labels, group=validation.sizes, reference=rows
        )
        stop = lightgbm.early_stopping(peer.patience, verbose=False)
        model = lightgbm.train(
            settings, rows, peer.n_estimators, valid_sets=[held_out], callbacks=[stop]
        )
        return lambda features: model.predict(features, num_iteration=model.best_iteration)

    return train


def _xgboost(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
    xgboost = import_engine("xgboost", "studies")

    settings = {
        "objective": "rank:ndcg",
        "eval_metric": "ndcg@10",
        "tree_method": "hist",
        "nthread": thread_count(),
        "seed": peer.seed,
        **(peer.parameters or {}),
    }
    rows, held_out = (
        xgboost.DMatrix(each.features, each.labels, group=each.sizes, nthread=thread_count())
        for each in (data, validation)
    )
    model = xgboost.train(
        settings,
        rows,
        peer.n_estimators,
        evals=[(held_out, "validation")],
        early_stopping_rounds=peer.patience,
        verbose_eval=False,
    )
    last = (0, model.best_iteration + 1)
    return lambda features: model.predict(xgboost.DMatrix(features), iteration_range=last)


def _catboost(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
    catboost = import_engine("catboost", "studies")

    model = catboost.CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Exp",
        iterations=peer.n_estimators,
        early_stopping_rounds=peer.patience,
        thread_count=thread_count(),
        random_seed=peer.seed,
        verbose=False,
        allow_writing_files=False,
        **(peer.parameters or {}),
    )
    rows, held_out = (
        catboost.Pool(each.features, each.labels, group_id=each.query_of_row)
        for each in (data, validation)
    )
    model.fit(rows, eval_set=held_out)
    return lambda features: model.predict(features)


PEERS: dict[str, tuple[Callable[[Dataset, Dataset, PeerRanker], _Scorer], Mapping[str, Any]]] = {
    "LightGBM lambdarank": (
        _lightgbm("lambdarank"),
        {"num_leaves": [7, 15, 31], "learning_rate": [0.03, 0.1]},
    ),
    "LightGBM rank_xendcg": (
        _lightgbm("rank_xendcg"),
        {"num_leaves": [7, 15, 31], "learning_rate": [0.03, 0.1]},
    ),
    "XGBoost rank:ndcg": (_xgboost, {"max_depth": [3, 4, 6], "learning_rate": [0.03, 0.1]}),
    "CatBoost YetiRank": (_catboost, {"depth": [4, 5, 6], "learning_rate": [0.03, 0.1]}),
}
"""Every peer: how it is trained, and the grid it is tuned over."""

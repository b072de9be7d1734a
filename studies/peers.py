"""What people train today, as rankers that are tuned and measured like Podium's own.

Each is the library's own ranking objective with the library's own early stopping on NDCG@10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.threads import thread_count
from studies.arrays import Doubles, Floats


class PeerRanker(BaseEstimator):  # type: ignore[misc]
    """A library's own ranking objective, with as much of a ranker as ``tune`` needs.

    Args:
        objective: One of ``PEERS``.
        n_estimators: The most trees.
        early_stopping_rounds: Stop after this many trees without a better NDCG@10.
        engine_params: The library's own parameters.
        random_state: The library's random seed.
    """

    streams: ClassVar[bool] = False

    def __init__(
        self,
        objective: str = "LightGBM lambdarank",
        *,
        n_estimators: int = 300,
        early_stopping_rounds: int = 50,
        engine_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.engine_params = engine_params
        self.random_state = random_state

    def fit(self, data: Dataset, *, eval_set: Dataset | None = None) -> Self:
        """Train, and stop early by the validation queries."""
        if eval_set is None:
            raise ArgumentError("A peer stops early: give it validation queries.")
        self._scores = PEERS[self.objective][0](data, eval_set, self)
        return self

    def predict(self, data: Dataset) -> Doubles:
        """A score for each row."""
        return np.asarray(self._scores(data.features), np.float64)


_Scorer = Callable[[Floats], Any]


def _lightgbm(objective: str) -> Callable[[Dataset, Dataset, PeerRanker], _Scorer]:
    def train(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
        import lightgbm

        settings = {
            "objective": objective,
            "metric": "ndcg",
            "eval_at": [10],
            "verbosity": -1,
            "num_threads": thread_count(),
            "deterministic": True,
            "force_row_wise": True,
            "seed": peer.random_state,
            **(peer.engine_params or {}),
        }
        rows = lightgbm.Dataset(data.features, data.labels, group=data.sizes, params=settings)
        held_out = lightgbm.Dataset(
            validation.features, validation.labels, group=validation.sizes, reference=rows
        )
        stop = lightgbm.early_stopping(peer.early_stopping_rounds, verbose=False)
        model = lightgbm.train(
            settings, rows, peer.n_estimators, valid_sets=[held_out], callbacks=[stop]
        )
        return lambda features: model.predict(features, num_iteration=model.best_iteration)

    return train


def _xgboost(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
    import xgboost

    settings = {
        "objective": "rank:ndcg",
        "eval_metric": "ndcg@10",
        "tree_method": "hist",
        "nthread": thread_count(),
        "seed": peer.random_state,
        **(peer.engine_params or {}),
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
        early_stopping_rounds=peer.early_stopping_rounds,
        verbose_eval=False,
    )
    last = (0, model.best_iteration + 1)
    return lambda features: model.predict(xgboost.DMatrix(features), iteration_range=last)


def _catboost(data: Dataset, validation: Dataset, peer: PeerRanker) -> _Scorer:
    import catboost

    model = catboost.CatBoostRanker(
        loss_function="YetiRank",
        eval_metric="NDCG:top=10;type=Exp",
        iterations=peer.n_estimators,
        early_stopping_rounds=peer.early_stopping_rounds,
        thread_count=thread_count(),
        random_seed=peer.random_state,
        verbose=False,
        allow_writing_files=False,
        **(peer.engine_params or {}),
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
    "LightGBM regression": (
        _lightgbm("regression"),
        {"num_leaves": [7, 15, 31], "learning_rate": [0.03, 0.1]},
    ),
    "XGBoost rank:ndcg": (_xgboost, {"max_depth": [3, 4, 6], "learning_rate": [0.03, 0.1]}),
    "CatBoost YetiRank": (_catboost, {"depth": [4, 5, 6], "learning_rate": [0.03, 0.1]}),
}
"""Every peer: how it is trained, and the grid it is tuned over."""

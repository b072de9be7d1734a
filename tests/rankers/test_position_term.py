"""Offsets of ranks: learned by every scorer, and LightGBM's own where it has them."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest
from scipy import optimize, sparse

import podium
from podium.errors import DataError
from podium.losses import PairLogistic

QUERIES, SIZE = 60, 6
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(QUERIES * SIZE, 3)).astype(np.float32)
GROUP = [SIZE] * QUERIES
QID = np.repeat(np.arange(QUERIES), SIZE)
RANK = np.concatenate([RANDOM.permutation(SIZE) + 1 for _ in range(QUERIES)])
OFFSETS = -np.log(np.arange(1.0, SIZE + 1))
CLICKED = (RANDOM.random(len(X)) < 1 / (1 + np.exp(-X[:, 0] - OFFSETS[RANK - 1]))).astype(float)


def lightgbm_scores(regularization: float, **data: Any) -> np.ndarray:
    parameters = {
        "objective": "lambdarank", "lambdarank_norm": False, "sigmoid": 1.0, "label_gain": [0, 1],
        "lambdarank_truncation_level": SIZE, "num_leaves": 4, "min_data_in_leaf": 1,
        "lambdarank_position_bias_regularization": regularization, "learning_rate": 0.1,
        "verbosity": -1, "deterministic": True, "force_row_wise": True,
    }  # fmt: skip
    rows = lightgbm.Dataset(X[UP], CLICKED[UP], group=GROUP, **data)
    return np.asarray(lightgbm.train(parameters, rows, 30).predict(X, raw_score=True))


# Among equal scores, Podium has the worse document first, LightGBM the first row.
UP = np.lexsort((CLICKED, QID))


@pytest.mark.parametrize("regularization", [0.0, 0.5])
def test_it_is_lightgbms(regularization: float) -> None:
    ranker = podium.TreeRanker(
        "lambdarank", n_estimators=30, learning_rate=0.1, num_leaves=4, min_data_in_leaf=1,
        lambdarank_position_bias_regularization=regularization,
    )  # fmt: skip
    ranker.fit(X[UP], CLICKED[UP], group=GROUP, position=RANK[UP])
    expected = lightgbm_scores(regularization, position=RANK[UP])
    assert np.allclose(ranker.predict(X), expected, rtol=1e-3, atol=1e-5)
    assert not np.allclose(expected, lightgbm_scores(regularization), rtol=1e-2, atol=1e-2)


def test_a_linear_scorer_minimizes_over_both() -> None:
    alpha, regularization, loss = 0.01, 0.3, PairLogistic()
    ranker = podium.LinearRanker(loss, alpha=alpha, tol=1e-9)
    ranker.fit(X, CLICKED, qid=QID, position=RANK, position_regularization=regularization)
    starts = np.arange(QUERIES + 1) * SIZE

    def objective(point: np.ndarray) -> float:
        scores = X @ point[:3] + point[3:][RANK - 1]
        penalty = alpha * point[:3] @ point[:3] + regularization * point[3:] @ point[3:]
        return loss.evaluate(scores, CLICKED, starts).total / QUERIES + penalty / 2

    best = optimize.minimize(objective, np.zeros(3 + SIZE), tol=1e-10).x
    assert np.allclose(ranker.coef_, best[:3], atol=1e-3)
    bias = best[3:] - best[3]
    assert np.allclose(list(ranker.position_bias_.values()), bias, atol=2e-3)
    assert ranker.predict(X).shape == ranker.fit(X, CLICKED, qid=QID).predict(X).shape
    assert ranker.position_bias_ == {}


def test_every_scorer_learns_the_offsets() -> None:
    # Labels are a score plus an offset of the rank, and the best documents were shown first.
    features = np.random.default_rng(1).normal(size=(400 * SIZE, 1)).astype(np.float32)
    rank = np.argsort(np.argsort(-features.reshape(-1, SIZE), axis=1), axis=1).ravel()
    swapped = np.random.default_rng(2).random((400, 1)) < 0.5
    shuffled = np.random.default_rng(3).permuted(rank.reshape(-1, SIZE), axis=1)
    rank = np.where(swapped, shuffled, rank.reshape(-1, SIZE)).ravel()
    labels = 2 * features[:, 0] - 1.5 * rank
    group = [SIZE] * 400
    rankers = [
        podium.LinearRanker("SquaredError()"),
        podium.TreeRanker(n_estimators=200),
        podium.TreeRanker(n_estimators=200, engine="xgboost"),
        podium.NeuralRanker(
            "SquaredError()", hidden_layer_sizes=[8], learning_rate=0.01, epochs=40
        ),
    ]
    for ranker in rankers:
        ranker.fit(features, labels, group=group, position=rank + 1)
        bias = [ranker.position_bias_[str(number)] for number in range(1, SIZE + 1)]
        assert np.allclose(bias, -1.5 * np.arange(SIZE), rtol=0.15, atol=0.15), ranker
        scores = ranker.predict(features)
        slope = np.polyfit(features[:, 0], scores, 1)[0]
        assert slope == pytest.approx(2.0, rel=0.15)
    # A column for each rank does not change the model's shape.
    assert vars(rankers[0])["coef_"].shape == (1,)


def test_rows_in_any_order_sparse_and_weighted() -> None:
    ranker = podium.LinearRanker("PairLogistic()", tol=1e-8)
    expected = ranker.fit(X, CLICKED, qid=QID, position=RANK).coef_
    order = np.random.default_rng(4).permutation(len(X))
    again = ranker.fit(X[order], CLICKED[order], qid=QID[order], position=RANK[order]).coef_
    assert np.allclose(again, expected, rtol=1e-3)
    # A context may be anything that decides how often a rank is examined.
    contexts = [f"phone {rank}" for rank in RANK]
    assert np.allclose(ranker.fit(X, CLICKED, qid=QID, position=contexts).coef_, expected)
    assert list(ranker.position_bias_) == [f"phone {rank}" for rank in range(1, SIZE + 1)]
    rows = sparse.csr_array(X)
    assert np.allclose(ranker.fit(rows, CLICKED, qid=QID, position=RANK).coef_, expected, rtol=1e-3)
    # A query of weight 2 is one that comes twice.
    weights = np.random.default_rng(5).integers(0, 3, QUERIES)
    twice = np.concatenate(
        [np.flatnonzero(q == QID) for q in range(QUERIES) for _ in range(weights[q])]
    )
    group = [SIZE] * int(weights.sum())
    repeated = ranker.fit(X[twice], CLICKED[twice], group=group, position=RANK[twice]).coef_
    weighted = ranker.fit(
        X, CLICKED, qid=QID, position=RANK, sample_weight=weights.astype(float)
    ).coef_
    assert np.allclose(weighted, repeated, rtol=1e-3, atol=1e-4)


def test_validation_queries_have_no_ranks() -> None:
    data = podium.Dataset.from_arrays(X, CLICKED, group=GROUP)
    for ranker in (podium.LinearRanker(), podium.TreeRanker(n_estimators=3)):
        ranker.fit(data, position=RANK, eval_set=data)
        assert ranker.evals_result_["valid_0"]["nDCG@10"][-1] == pytest.approx(
            float(podium.evaluate("nDCG@10", data, ranker.predict(data))["nDCG@10"].mean()),
            abs=0.02,
        )


PENALIZED: dict[str, Any] = {"position": RANK, "position_regularization": 1.0}


@pytest.mark.parametrize(
    ("ranker", "options", "message"),
    [
        (podium.BoostedRanker(), {"position": RANK}, "no loss that could take position"),
        (podium.LinearRanker(), {"position": RANK[1:]}, "position has the shape"),
        (podium.LinearRanker(), {"position_regularization": 1.0}, "but there are none"),
        (podium.LinearRanker(alpha=0.0), PENALIZED, "alpha is 0"),
        (podium.LinearRanker(), PENALIZED | {"position_regularization": -1.0}, "is -1.0"),
        (podium.TreeRanker(lambdarank_position_bias_regularization=1.0), {}, "but there are none"),
    ],
)  # fmt: skip
def test_refusals(ranker: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.PodiumError, match=message):
        ranker.fit(X, CLICKED, group=GROUP, **options)


def test_xgboosts_own_parameter_is_named() -> None:
    with pytest.raises(podium.ArgumentError, match="Give fit position="):
        podium.TreeRanker(engine="xgboost", lambdarank_unbiased=True)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_row_without_a_rank_is_refused(missing: Any) -> None:
    ranks: list[Any] = [float(rank) for rank in RANK]
    ranks[4] = missing
    with pytest.raises(DataError, match="row 5 has no position"):
        podium.LinearRanker().fit(X, CLICKED, qid=QID, position=ranks)

"""``fit(sample_weight=)``: what a weight means for each loss and each ranker."""

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

import podium
from podium.losses import (
    Focused,
    LambdaLoss,
    ListMLE,
    ListNet,
    Loss,
    PairExponential,
    PairHinge,
    PairLogistic,
    PairRounded,
    RankCosine,
    SquaredError,
    StructuralHinge,
)

RNG = np.random.default_rng(8)
SIZE, QUERIES = 8, 12
# Few different values, so that LightGBM has the same bins for rows that are there twice.
X = np.round(8 * RNG.random((SIZE * QUERIES, 3)))
Y = np.digitize(X[:, 0] - 0.5 * X[:, 1] + 2 * RNG.normal(size=len(X)), [1.0, 4.0])
QID = np.repeat(np.arange(QUERIES), SIZE)
WEIGHTS = np.array([2, 1, 0, 1, 2, 1, 3, 1, 0, 1, 1, 1])

LOSSES: list[Loss] = [
    SquaredError(),
    PairHinge(),
    PairRounded(),
    PairLogistic(),
    PairExponential(),
    LambdaLoss(),
    ListMLE(),
    ListNet(),
    RankCosine(),
    StructuralHinge(),
    Focused(ListNet(), PairLogistic(), k=3),
]
BOOSTED: list[dict[str, Any]] = [{}, {"beta": 1}, {"beta": 0.5, "k": 3, "list_measure": "nDCG"}]
LEAVES: dict[str, Any] = {"min_data_in_leaf": 1, "num_leaves": 4, "n_estimators": 4}


def rankers() -> list[Any]:
    every: list[Any] = [podium.TreeRanker(loss, **LEAVES) for loss in LOSSES]
    every += [podium.TreeRanker(loss, engine="xgboost", n_estimators=4) for loss in LOSSES[:2]]
    every += [podium.LinearRanker(loss, alpha=0.01, tol=1e-7) for loss in LOSSES]
    every += [podium.BoostedRanker(n_estimators=4, **settings) for settings in BOOSTED]
    every += [podium.NeuralRanker(LOSSES[0], epochs=1, batch_queries=100)]
    every += [podium.CascadeRanker(podium.LinearRanker(), [podium.TreeRanker(**LEAVES)])]
    return every


def repeated() -> podium.Dataset:
    """The rows with each query as often as its weight says."""
    parts = [(query, copy) for query in range(QUERIES) for copy in range(WEIGHTS[query])]
    rows = np.concatenate([np.flatnonzero(query == QID) for query, _ in parts])
    ids = np.repeat([f"{query} {copy}" for query, copy in parts], SIZE)
    return podium.Dataset.from_arrays(X[rows], Y[rows], qid=ids)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("ranker", rankers(), ids=repr)
def test_a_weight_is_the_number_of_times_that_a_query_is_there(ranker: Any) -> None:
    data = podium.Dataset.from_arrays(X, Y, qid=QID)

    def scores(train: podium.Dataset, weights: Any = None) -> np.ndarray:
        found = ranker.fit(train, sample_weight=weights).predict(data)
        # A cosine does not depend on the scale of the scores, and the penalty only just does.
        return np.asarray(found / np.abs(found).max())

    expected = scores(repeated())
    by_query = scores(data, WEIGHTS)
    tolerance = 1e-3 if isinstance(ranker, podium.LinearRanker) else 1e-5
    assert np.allclose(by_query, expected, rtol=0, atol=tolerance)
    assert np.array_equal(scores(data, WEIGHTS[QID]), by_query)
    assert not np.allclose(by_query, scores(data), rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_queries_of_weight_0_leave_no_trace(engine: Any) -> None:
    # They would count in the bins of features and in the sizes of leaves.
    values = np.random.default_rng(5).random((len(X), 3))
    values[QID % 2 == 1] *= 100
    data = podium.Dataset.from_arrays(values, Y, qid=QID)
    ranker = podium.TreeRanker(engine=engine, n_estimators=4)
    expected = ranker.fit(data.select(np.arange(0, QUERIES, 2))).predict(data)
    found = ranker.fit(data, sample_weight=np.arange(QUERIES) % 2 == 0).predict(data)
    assert np.array_equal(found, expected)


def test_rows_of_queries_in_any_order() -> None:
    order = np.random.default_rng(1).permutation(len(X))
    ranker = podium.LinearRanker("SquaredError()", tol=1e-9)
    row_weights = RNG.random(len(X))
    sorted_rows = ranker.fit(X, Y, qid=QID, sample_weight=row_weights).coef_
    any_order = ranker.fit(X[order], Y[order], qid=QID[order], sample_weight=row_weights[order])
    assert np.allclose(any_order.coef_, sorted_rows, rtol=1e-4)


@pytest.mark.parametrize(
    "weights",
    [
        {str(query): float(weight) for query, weight in enumerate(WEIGHTS)},
        {query: float(weight) for query, weight in enumerate(WEIGHTS)},
        {**{str(query): float(weight) for query, weight in enumerate(WEIGHTS)}, "another": 3.0},
        WEIGHTS.tolist(),
        pd.Series(WEIGHTS),
        WEIGHTS.astype(np.float32),
        10 * WEIGHTS,
    ],
)
def test_forms_of_query_weights(weights: Any) -> None:
    ranker = podium.LinearRanker("ListNet()")
    expected = ranker.fit(X, Y, qid=QID, sample_weight=WEIGHTS).coef_
    found = ranker.fit(X, Y, qid=QID, sample_weight=weights).coef_
    assert np.allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), "5 weights for 12 queries with 96 rows. Give one per query, or one per row"),
        (-np.ones(QUERIES), "a weight is -1"),
        (np.full(QUERIES, np.nan), "a weight is nan"),
        (np.zeros(QUERIES), "all weights are 0"),
        (np.ones((QUERIES, 1)), "weights have 2 dimensions"),
        (["a"] * QUERIES, "weights are not numbers"),
        ({"0": 1.0}, "query '1' has no weight"),
        ({str(query): None for query in range(QUERIES)}, "weights are not numbers"),
    ],
)
def test_refused_weights(weights: Any, message: str) -> None:
    with pytest.raises(podium.DataError) as caught:
        podium.LinearRanker().fit(X, Y, qid=QID, sample_weight=weights)
    assert message in str(caught.value)


ROW_WEIGHTS = 0.1 + RNG.random(len(X))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_list_losses_have_no_weights_of_rows(loss: Loss) -> None:
    ranker = podium.TreeRanker(loss, **LEAVES)
    if loss in (ListMLE(), ListNet(), RankCosine(), StructuralHinge(), LOSSES[-1]):
        with pytest.raises(podium.ArgumentError, match="has no weights of single rows"):
            ranker.fit(X, Y, qid=QID, sample_weight=ROW_WEIGHTS)
    else:
        plain = ranker.fit(X, Y, qid=QID).predict(X)
        weighted = ranker.fit(X, Y, qid=QID, sample_weight=ROW_WEIGHTS).predict(X)
        assert not np.allclose(weighted, plain)


def test_rankers_that_take_only_weights_of_queries() -> None:
    rankers = [
        (podium.LinearRanker("PairLogistic()"), "PairLogistic"),
        (podium.BoostedRanker(), "BoostedRanker has no weights of single rows"),
    ]
    for ranker, message in rankers:
        with pytest.raises(podium.ArgumentError) as caught:
            ranker.fit(X, Y, qid=QID, sample_weight=ROW_WEIGHTS)
        assert message in str(caught.value)
        assert "one weight per query" in str(caught.value)


def test_squared_errors_have_weights_of_rows() -> None:
    # A row as often as its weight says, in its own query.
    counts = np.random.default_rng(2).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    scores = np.random.default_rng(3).normal(size=len(X))
    loss = SquaredError()
    offsets = np.arange(QUERIES + 1) * SIZE
    weighted = loss.evaluate(scores, Y, offsets, row_weights=counts)
    sizes = np.bincount(QID[rows], minlength=QUERIES)
    several = loss.evaluate(scores[rows], Y[rows], np.concatenate(([0], np.cumsum(sizes))))
    assert np.allclose(weighted.values, several.values)
    assert np.allclose(weighted.gradient, np.bincount(rows, several.gradient, len(X)))


def test_row_weights_are_those_of_weighted_regression() -> None:
    # With one query, the intercept of the query is that of the regression.
    from sklearn.linear_model import LinearRegression

    expected = LinearRegression().fit(X, Y, sample_weight=ROW_WEIGHTS).coef_
    ranker = podium.LinearRanker("SquaredError()", alpha=0.0, tol=1e-9)
    found = ranker.fit(X, Y, group=[len(X)], sample_weight=ROW_WEIGHTS).coef_
    assert np.allclose(found, expected, rtol=1e-4)


def lightgbm_scores(**data: Any) -> np.ndarray:
    parameters = {
        "objective": "lambdarank",
        "lambdarank_norm": False,
        "sigmoid": 1.0,
        "lambdarank_truncation_level": SIZE,
        "label_gain": [0, 1, 3],
        "num_leaves": 4,
        "min_data_in_leaf": 1,
        "learning_rate": 0.05,
        "verbosity": -1,
        "seed": 0,
        "deterministic": True,
        "force_row_wise": True,
    }
    rows = lightgbm.Dataset(np.float32(X[UP]), Y[UP], group=[SIZE] * QUERIES, **data)
    return np.asarray(lightgbm.train(parameters, rows, 4).predict(X, raw_score=True))


# Among equal scores, Podium has the worse document first, LightGBM the first row.
UP = np.lexsort((Y, QID))


@pytest.mark.parametrize("weights", [None, WEIGHTS[QID] + 0.5, ROW_WEIGHTS], ids=str)
def test_weights_are_those_of_lightgbm(weights: Any) -> None:
    ranker = podium.TreeRanker("lambdarank", **LEAVES)
    ranker.fit(X[UP], Y[UP], group=[SIZE] * QUERIES, sample_weight=weights)
    assert np.allclose(ranker.predict(X), lightgbm_scores(weight=weights), rtol=1e-4, atol=1e-6)


def test_score_with_weights() -> None:
    ranker = podium.LinearRanker().fit(X, Y, qid=QID)
    values = podium.evaluate("nDCG@10", Y, ranker.predict(X), qid=QID)["nDCG@10"]
    expected = float(values @ WEIGHTS) / WEIGHTS.sum()
    for weights in (WEIGHTS, WEIGHTS[QID]):
        assert ranker.score(X, Y, qid=QID, sample_weight=weights) == pytest.approx(expected)
    with pytest.raises(podium.ArgumentError, match="weights differ within a query"):
        ranker.score(X, Y, qid=QID, sample_weight=ROW_WEIGHTS)


def test_a_ranker_without_weights() -> None:
    from tests.rankers.one_feature import OneFeature

    with pytest.raises(podium.ArgumentError, match="OneFeature does not support sample_weight"):
        OneFeature().fit(X, Y, qid=QID, sample_weight=WEIGHTS)


def test_neural_rankers_weigh_rows() -> None:
    settings: dict[str, Any] = {"epochs": 1, "batch_queries": 5}
    losses = [SquaredError(), PairLogistic()]
    for loss in losses:
        ranker = podium.NeuralRanker(loss, **settings)
        weighted = ranker.fit(X, Y, qid=QID, sample_weight=ROW_WEIGHTS).predict(X)
        double = ranker.fit(X, Y, qid=QID, sample_weight=2 * ROW_WEIGHTS).predict(X)
        assert np.allclose(weighted, double, atol=1e-5)
        assert not np.allclose(weighted, ranker.fit(X, Y, qid=QID).predict(X), atol=1e-4)


def test_shards_have_weights_of_queries(tmp_path: Any) -> None:
    data = podium.Dataset.from_arrays(X, Y, qid=QID)
    shards = podium.data.write_shards(data, tmp_path / "set", shard_bytes=1)
    assert len(shards.shards) == QUERIES
    ranker = podium.LinearRanker("ListNet()", tol=1e-8)
    expected = ranker.fit(data, sample_weight=WEIGHTS).coef_
    assert np.allclose(ranker.fit(shards, sample_weight=WEIGHTS).coef_, expected, rtol=1e-4)
    by_id = dict(zip(data.query_ids.to_pylist(), WEIGHTS.tolist(), strict=True))
    assert np.allclose(ranker.fit(shards, sample_weight=by_id).coef_, expected, rtol=1e-4)

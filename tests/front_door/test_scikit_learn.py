"""Rankers in scikit-learn's pipelines, searches and cross-validation: every score is a number."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import podium

RNG = np.random.default_rng(4)
NAMES = ["bm25", "clicks", "age"]
X = RNG.random((240, 3))
Y = np.digitize(2 * X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=240), [0.2, 0.8])
QID = np.repeat(np.arange(12), 20)
FRAME = pd.DataFrame(X, columns=NAMES)
FOLDS = GroupKFold(3)
RANKERS: list[Any] = [
    podium.LinearRanker(),
    podium.TreeRanker(n_estimators=3, min_child_samples=5),
    podium.BoostedRanker(n_estimators=3),
    podium.NeuralRanker(epochs=1),
    podium.CascadeRanker(podium.LinearRanker(), [podium.LinearRanker("ListNet()")]),
]


@pytest.fixture(autouse=True)
def _no_failed_fits() -> Iterator[None]:
    """Searches turn an error into a warning and a score of nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


def by_hand(ranker: Any, weights: Any = None) -> list[float]:
    """The score of each fold, without scikit-learn's cross-validation."""
    values = []
    for train, test in FOLDS.split(X, Y, QID):
        own = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(ranker).fit(X[train], Y[train], qid=QID[train], **own)
        data = podium.Dataset.from_arrays(X[test], Y[test], qid=QID[test])
        scores = fitted.predict(data)
        per_query = podium.evaluate("nDCG@10", data, scores)["nDCG@10"]
        query_weights = None if weights is None else weights[test][::20]
        values.append(float(np.average(per_query, weights=query_weights)))
    return values


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_cross_validation_with_metadata_routing(ranker: Any) -> None:
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(ranker, X, Y, cv=FOLDS, params={"qid": QID, "groups": QID})
    assert found.tolist() == pytest.approx(by_hand(ranker))


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_cross_validation_with_a_column_of_query_ids(ranker: Any) -> None:
    frame = FRAME.assign(qid=QID)
    found = cross_val_score(ranker, frame, Y, cv=FOLDS, groups=QID)
    assert found.tolist() == pytest.approx(by_hand(ranker))


def test_weights_are_routed_to_fit_and_score() -> None:
    weights = np.repeat(RNG.integers(1, 4, 12), 20)
    ranker = RANKERS[0]
    with config_context(enable_metadata_routing=True):
        params = {"qid": QID, "groups": QID, "sample_weight": weights}
        found = cross_val_score(ranker, X, Y, cv=FOLDS, params=params)
    assert found.tolist() == pytest.approx(by_hand(ranker, weights))


def test_grid_search_with_metadata_routing() -> None:
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(podium.LinearRanker(), {"alpha": [1e-4, 1.0]}, cv=FOLDS)
        search.fit(X, Y, qid=QID, groups=QID)
        expected = [np.mean(by_hand(podium.LinearRanker(alpha=alpha))) for alpha in (1e-4, 1.0)]
        assert search.cv_results_["mean_test_score"].tolist() == pytest.approx(expected)
        assert search.best_score_ == pytest.approx(max(expected))
        best = podium.LinearRanker(**search.best_params_).fit(X, Y, qid=QID)
        assert search.predict(X).tolist() == best.predict(X).tolist()
        assert search.score(X, Y, qid=QID) == best.score(X, Y, qid=QID)


def test_grid_search_with_a_column_of_query_ids() -> None:
    frame = FRAME.assign(qid=QID)
    search = GridSearchCV(podium.LinearRanker(), {"alpha": [1e-4, 1.0]}, cv=FOLDS)
    search.fit(frame, Y, groups=QID)
    expected = [np.mean(by_hand(podium.LinearRanker(alpha=alpha))) for alpha in (1e-4, 1.0)]
    assert search.cv_results_["mean_test_score"].tolist() == pytest.approx(expected)
    assert search.best_estimator_.feature_names_in_.tolist() == NAMES
    assert search.score(frame, Y) == search.best_estimator_.score(X_named(), Y, qid=QID)


def X_named() -> pd.DataFrame:
    return FRAME[NAMES[::-1]]


def test_random_search_over_a_loss() -> None:
    search = RandomizedSearchCV(
        podium.LinearRanker(),
        {"loss": ["ListNet()", "PairLogistic()"], "alpha": [1e-3, 1e-2]},
        n_iter=2,
        cv=FOLDS,
        random_state=0,
    )
    search.fit(FRAME.assign(qid=QID), Y, groups=QID)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.cv_results_["params"]) == 2


def test_pipelines() -> None:
    pipeline = make_pipeline(StandardScaler(), podium.LinearRanker())
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = podium.LinearRanker().fit(scaled, Y, qid=QID)
    pipeline.fit(X, Y, linearranker__qid=QID)
    assert np.allclose(pipeline.predict(X), expected.predict(scaled))
    with config_context(enable_metadata_routing=True):
        routed = clone(pipeline).fit(X, Y, qid=QID)
        assert routed.predict(X).tolist() == pipeline.predict(X).tolist()
        score = routed.score(X, Y, qid=QID)
        assert score == pytest.approx(expected.score(scaled, Y, qid=QID))
        search = GridSearchCV(pipeline, {"linearranker__alpha": [1e-4, 1.0]}, cv=FOLDS)
        search.fit(X, Y, qid=QID, groups=QID)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        several = cross_validate(pipeline, X, Y, cv=FOLDS, params={"qid": QID, "groups": QID})
        assert np.isfinite(several["test_score"]).all()


def test_pipelines_with_names_and_missing_values() -> None:
    frame = FRAME.copy()
    frame.loc[::7, "clicks"] = np.nan
    filled = frame.fillna(frame.mean())
    expected = podium.LinearRanker().fit(filled, Y, qid=QID)
    pipeline = make_pipeline(SimpleImputer(), podium.LinearRanker())
    pipeline.set_output(transform="pandas")
    pipeline.fit(frame, Y, linearranker__qid=QID)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES
    assert np.allclose(pipeline.predict(frame), expected.predict(filled))
    with pytest.raises(podium.DataError, match=r"SimpleImputer\(\), LinearRanker"):
        podium.LinearRanker().fit(frame, Y, qid=QID)
    with pytest.raises(podium.DataError, match=r"SimpleImputer\(\), LinearRanker"):
        expected.predict(frame)


def test_a_pipeline_passes_the_column_of_query_ids_through() -> None:
    steps = ColumnTransformer(
        [("features", StandardScaler(), NAMES), ("qid", "passthrough", ["qid"])],
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = Pipeline([("prepare", steps), ("rank", podium.LinearRanker())])
    found = cross_val_score(pipeline, FRAME.assign(qid=QID), Y, cv=FOLDS, groups=QID)
    assert np.isfinite(found).all()
    assert found.tolist() == pytest.approx(by_hand(podium.LinearRanker()), abs=0.02)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas], ids=["pandas", "Polars"])
def test_a_column_of_query_ids(make: Any) -> None:
    frame = make(FRAME.assign(qid=QID)[["bm25", "qid", "clicks", "age"]])
    expected = podium.LinearRanker().fit(FRAME, Y, qid=QID)
    ranker = podium.LinearRanker().fit(frame, Y, eval_set=(frame, Y))
    assert ranker.feature_names_in_.tolist() == NAMES
    assert len(ranker.evals_result_["valid_0"]["nDCG@10"]) > 0
    assert ranker.predict(frame).tolist() == ranker.predict(make(FRAME)).tolist()
    assert ranker.score(frame, Y) == ranker.score(make(FRAME), Y, qid=QID)
    assert np.array_equal(
        podium.LinearRanker().fit(frame, Y).predict(frame), expected.predict(FRAME)
    )


def test_query_ids_twice_are_refused() -> None:
    frame = FRAME.assign(qid=QID)
    with pytest.raises(podium.ArgumentError, match="X has a column 'qid' as well"):
        podium.LinearRanker().fit(frame, Y, qid=QID)
    with pytest.raises(podium.ArgumentError, match="X has a column 'qid' as well"):
        podium.LinearRanker().fit(frame, Y, group=[20] * 12)


def test_a_search_that_cannot_know_the_queries_says_what_to_do() -> None:
    with pytest.raises(podium.ArgumentError) as caught:
        GridSearchCV(podium.LinearRanker(), {"alpha": [1.0]}, cv=FOLDS, error_score="raise").fit(
            X, Y, qid=QID, groups=QID
        )
    assert "enable_metadata_routing=True" in str(caught.value)
    assert "a data frame with a column 'qid'" in str(caught.value)

"""Rankers as users of LightGBM, XGBoost and scikit-learn call them."""

from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

import podium
from podium.losses import LambdaLoss, ListNet, PairLogistic

RNG = np.random.default_rng(3)
X = RNG.random((400, 4))
Y = np.digitize(2 * X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=400), [0.2, 0.8])
QID = np.repeat(np.arange(20), 20)
TRAIN, VALID = slice(0, 240), slice(240, 400)
SMALL: dict[str, Any] = {"n_estimators": 5, "min_child_samples": 5}


def test_engine_parameters_as_keywords() -> None:
    by_keyword = podium.TreeRanker(num_leaves=3, **SMALL).fit(X, Y, qid=QID)
    settings = {"num_leaves": 3, "min_child_samples": 5}
    by_dictionary = podium.TreeRanker(n_estimators=5, engine_params=settings).fit(X, Y, qid=QID)
    assert np.array_equal(by_keyword.predict(X), by_dictionary.predict(X))
    assert len(np.unique(by_keyword.predict(X))) <= 3**5
    default = podium.TreeRanker(**SMALL).fit(X, Y, qid=QID)
    assert not np.array_equal(by_keyword.predict(X), default.predict(X))
    assert by_keyword.booster_.dump_model()["tree_info"][0]["num_leaves"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_leafs": 63}, "There is no LightGBM parameter 'num_leafs'. Did you mean: num_leaves"),
        ({"n_estimatorz": 63}, "Did you mean: n_estimators"),
        ({"engine": "xgboost", "max_dept": 3}, "There is no XGBoost parameter 'max_dept'"),
        ({"objective": "lambdarank"}, "Give the ranker a loss"),
        ({"n_jobs": 2}, "PODIUM_THREADS"),
    ],
)
def test_unknown_and_rejected_keywords(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.ArgumentError) as caught:
        podium.TreeRanker(**arguments)
    assert message in str(caught.value)
    ranker = podium.TreeRanker(engine=arguments.pop("engine", "lightgbm"))
    with pytest.raises(podium.ArgumentError) as caught:
        ranker.set_params(**arguments)
    assert message in str(caught.value)


def test_keywords_are_parameters_of_the_estimator(tmp_path: Any) -> None:
    ranker = podium.TreeRanker(num_leaves=7, n_estimators=3)
    assert repr(ranker) == "TreeRanker(n_estimators=3, num_leaves=7)"
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.get_params()["num_leaves"] == 7
    copy.set_params(num_leaves=9, max_depth=2, learning_rate=0.3)
    assert (copy.get_params()["num_leaves"], copy.get_params()["max_depth"]) == (9, 2)
    assert copy.learning_rate == 0.3
    assert ranker.get_params()["num_leaves"] == 7
    ranker.fit(X, Y, qid=QID).save(tmp_path / "r.podium")
    loaded = podium.load_ranker(tmp_path / "r.podium")
    assert loaded.get_params() == ranker.get_params()
    assert np.array_equal(loaded.predict(X), ranker.predict(X))


def test_a_keyword_that_is_also_in_engine_params() -> None:
    ranker = podium.TreeRanker(num_leaves=7, engine_params={"num_leaves": 8})
    with pytest.raises(podium.ArgumentError, match="num_leaves is a keyword and in engine_params"):
        ranker.fit(X, Y, qid=QID)


def test_grid_search_over_an_engine_parameter() -> None:
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        ranker = podium.TreeRanker(num_leaves=31, **SMALL)
        ranker.set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"num_leaves": [2, 8]}, cv=GroupKFold(2))
        search.fit(X, Y, qid=QID, groups=QID)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.get_params()["num_leaves"] == search.best_params_["num_leaves"]


EVAL_SETS: dict[str, dict[str, Any]] = {
    "data set": {"eval_set": podium.Dataset.from_arrays(X[VALID], Y[VALID], qid=QID[VALID])},
    "LightGBM": {"eval_set": [(X[VALID], Y[VALID])], "eval_group": [[20] * 8]},
    "LightGBM arrays": {"eval_set": [(X[VALID], Y[VALID])], "eval_group": [np.full(8, 20)]},
    "XGBoost": {"eval_set": [(X[VALID], Y[VALID])], "eval_qid": [QID[VALID]]},
    "plain": {"eval_set": (X[VALID], Y[VALID]), "eval_qid": QID[VALID]},
    "sizes": {"eval_set": (X[VALID], Y[VALID]), "eval_group": [20] * 8},
}


@pytest.mark.parametrize("form", EVAL_SETS)
@pytest.mark.parametrize("kind", [podium.TreeRanker(**SMALL), podium.LinearRanker()])
def test_eval_set(form: str, kind: Any) -> None:
    ranker = clone(kind).fit(X[TRAIN], Y[TRAIN], group=[20] * 12, **EVAL_SETS[form])
    values = ranker.evals_result_["valid_0"]["nDCG@10"]
    best = podium.evaluate("nDCG@10", Y[VALID], ranker.predict(X[VALID]), qid=QID[VALID])
    assert max(values) == pytest.approx(best.means["nDCG@10"], abs=1e-9)
    if isinstance(ranker, podium.TreeRanker):
        assert ranker.best_iteration_ == int(np.argmax(values)) + 1
        assert len(values) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_set": X}, "eval_set is a ndarray"),
        ({"eval_set": [(X, Y)]}, "the rows of eval_set are not grouped by query"),
        ({"eval_group": [[400]]}, "there is no eval_set"),
        ({"eval_set": [(X, Y)], "eval_group": [[200, 200], [400]]}, "eval_group has 2 arrays"),
        ({"callbacks": [lightgbm.early_stopping(3)]}, "no validation queries for early stopping"),
        (
            {"callbacks": [lightgbm.reset_parameter(learning_rate=[0.1])]},
            "Give the ranker learning_rate",
        ),
    ],
)
def test_refused_arguments_of_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.ArgumentError) as caught:
        podium.LinearRanker().fit(X, Y, qid=QID, **arguments)
    assert message in str(caught.value)


def test_callbacks_of_lightgbm(capfd: pytest.CaptureFixture[str]) -> None:
    history: dict[str, Any] = {}
    seen = []
    ranker = podium.TreeRanker(**SMALL).fit(
        X[TRAIN],
        Y[TRAIN],
        qid=QID[TRAIN],
        callbacks=[
            lightgbm.record_evaluation(history),
            lightgbm.log_evaluation(2),
            lambda env: seen.append(env[2:5]),
        ],
        **EVAL_SETS["data set"],
    )
    assert history == ranker.evals_result_
    second = ranker.evals_result_["valid_0"]["nDCG@10"][1]
    assert f"[2]\tvalid_0's nDCG@10: {second:g}\n" in capfd.readouterr().out
    assert seen == [(step, 0, 5) for step in range(5)]


STOPPED: list[Any] = [
    podium.TreeRanker(n_estimators=200, min_child_samples=5, early_stopping_rounds=None),
    podium.NeuralRanker(epochs=200, early_stopping_rounds=None),
    podium.BoostedRanker(n_estimators=200, early_stopping_rounds=None),
    podium.LinearRanker("ListNet()"),
    podium.LinearRanker("LambdaLoss()"),
]


@pytest.mark.parametrize("kind", STOPPED, ids=repr)
def test_early_stopping_of_lightgbm(kind: Any, capfd: pytest.CaptureFixture[str]) -> None:
    callbacks = [lightgbm.early_stopping(2), lightgbm.log_evaluation(1)]
    ranker = clone(kind).fit(
        X[TRAIN], Y[TRAIN], qid=QID[TRAIN], callbacks=callbacks, **EVAL_SETS["LightGBM"]
    )
    values = ranker.evals_result_["valid_0"]["nDCG@10"]
    best = int(np.argmax(values))
    assert len(values) == best + 3
    out = capfd.readouterr().out
    assert f"Early stopping, best iteration is:\n[{best + 1}]\tvalid_0's nDCG@10:" in out
    assert f"[{best + 3}]\tvalid_0's nDCG@10: {values[-1]:g}\n" in out
    score = ranker.score(X[VALID], Y[VALID], qid=QID[VALID])
    assert score == pytest.approx(max(values), abs=1e-6)
    if isinstance(ranker, podium.TreeRanker):
        assert ranker.best_iteration_ == best + 1
    if isinstance(ranker, podium.LinearRanker):
        assert ranker.converged_


def test_other_errors_of_callbacks_are_not_a_stop() -> None:
    def fail(_env: Any) -> None:
        raise RuntimeError("full disk")

    with pytest.raises(RuntimeError, match="full disk"):
        podium.TreeRanker(**SMALL).fit(X, Y, qid=QID, callbacks=[fail])


def test_no_validation_no_results() -> None:
    assert podium.TreeRanker(**SMALL).fit(X, Y, qid=QID).evals_result_ == {}


def test_importances_are_those_of_the_engines() -> None:
    ranker = podium.TreeRanker(**SMALL)
    assert not hasattr(ranker, "feature_importances_")
    ranker.fit(X, Y, qid=QID)
    splits = np.zeros(4, int)
    frame = ranker.booster_.trees_to_dataframe()
    for name in frame["split_feature"].dropna():
        splits[int(name.removeprefix("Column_"))] += 1
    assert ranker.feature_importances_.tolist() == splits.tolist()

    ranker = podium.TreeRanker(engine="xgboost", n_estimators=5).fit(X, Y, qid=QID)
    peer = xgboost.XGBRegressor()
    peer.load_model(bytearray(ranker.booster_.save_raw("json")))
    assert np.allclose(ranker.feature_importances_, peer.feature_importances_)
    assert ranker.feature_importances_.argmax() == 0


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("lambdarank", LambdaLoss()),
        ("LambdaMART", LambdaLoss()),
        ("rank:ndcg", LambdaLoss()),
        ("LambdaMART(k=5)", LambdaLoss(k=5)),
        ("RankNet", PairLogistic()),
        ("rank:pairwise", PairLogistic()),
        ("rank_xendcg", ListNet()),
    ],
)
def test_loss_names_of_other_tools(name: str, loss: Any) -> None:
    assert podium.TreeRanker(name).loss_function() == loss


def test_rankers_are_tables_in_notebooks() -> None:
    ranker = podium.LinearRanker("<b>")
    page = ranker._repr_html_()
    assert "<td>loss</td><td>&#x27;&lt;b&gt;&#x27;</td>" in page
    assert "LinearRanker (not fitted)" in page
    fitted = podium.LinearRanker().fit(X, Y, qid=QID)
    assert "LinearRanker (fitted)" in fitted._repr_mimebundle_()["text/html"]

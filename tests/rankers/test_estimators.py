"""Rankers as scikit-learn estimators, and as files."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.losses import ListMLE
from podium.measures import AP, evaluate
from podium.rankers import (
    BoostedRanker,
    CascadeRanker,
    LinearRanker,
    NeuralRanker,
    Ranker,
    TreeRanker,
    load_ranker,
    tune,
)
from tests.rankers.made_up import made_up

RANKERS = {
    "linear": LinearRanker("PairHinge(k=5)"),
    "lightgbm": TreeRanker(ListMLE(k=5), n_estimators=8),
    "xgboost": TreeRanker("PairLogistic(k=5)", engine="xgboost", n_estimators=8),
    "neural": NeuralRanker("ListMLE(k=5)", hidden_layer_sizes=(8,), epochs=3),
    "boosted": BoostedRanker(beta=0.5, k=5, n_estimators=8),
}


@pytest.fixture(params=RANKERS, scope="module")
def ranker(request: pytest.FixtureRequest) -> Ranker:
    return clone(RANKERS[request.param])


def test_clones_have_equal_parameters(ranker: Ranker) -> None:
    assert clone(ranker).get_params() == ranker.get_params()
    assert repr(ranker).startswith(type(ranker).__name__)


def test_predicting_before_fitting_is_refused(ranker: Ranker) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        clone(ranker).predict(np.zeros((1, 6)))


def test_the_same_seed_gives_the_same_bytes(ranker: Ranker, tmp_path: Path) -> None:
    data = made_up()
    for name in ("one", "two"):
        clone(ranker).fit(data).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_loaded_ranker_predicts_the_same(ranker: Ranker, tmp_path: Path) -> None:
    data = made_up()
    fitted = clone(ranker).fit(data)
    fitted.save(tmp_path / "model")
    loaded = load_ranker(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(data), fitted.predict(data))
    if hasattr(fitted, "loss"):
        assert repr(loaded.loss_function()) == repr(fitted.loss_function())
    assert loaded.feature_names_ == fitted.feature_names_
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_rank_gives_a_run(ranker: Ranker) -> None:
    data = made_up(5)
    fitted = clone(ranker).fit(data)
    run = fitted.rank(data, name="mine")
    assert (run.name, len(run), run.rows) == ("mine", 5, data.rows)
    np.testing.assert_allclose(run.scores, fitted.predict(data))


def test_fit_does_not_change_its_data(ranker: Ranker) -> None:
    data = made_up()
    features, labels = data.features.copy(), data.labels.copy()
    clone(ranker).fit(data)
    np.testing.assert_array_equal(data.features, features)
    np.testing.assert_array_equal(data.labels, labels)


def test_a_grid_search_with_folds_of_whole_queries() -> None:
    data = made_up(noise=1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = LinearRanker("PairLogistic(k=5)").set_fit_request(qid=True)
        search = GridSearchCV(
            ranker.set_score_request(qid=True),
            {"alpha": [1e-3, 1e2], "loss": ["ListMLE(k=5)", "PairLogistic(k=5)"]},
            cv=GroupKFold(4),
        )
        search.fit(data.features, data.labels, qid=data.query_of_row, groups=data.query_of_row)
    expected = [by_folds(LinearRanker(**each), data) for each in search.cv_results_["params"]]
    assert len(expected) == 4
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
    assert search.best_score_ == pytest.approx(max(expected))


def by_folds(ranker: Ranker, data: Dataset) -> float:
    """The mean score over four folds of whole queries, without scikit-learn's search."""
    scores = []
    qid = data.query_of_row
    for train, test in GroupKFold(4).split(data.features, data.labels, qid):
        fitted = clone(ranker).fit(data.features[train], data.labels[train], qid=qid[train])
        scores.append(fitted.score(data.features[test], data.labels[test], qid=qid[test]))
    return float(np.mean(scores))


def test_a_grid_search_over_a_pipeline() -> None:
    data = made_up(noise=1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = LinearRanker("PairLogistic(k=5)").set_fit_request(qid=True)
        whole = Pipeline(
            [("scale", StandardScaler()), ("rank", ranker.set_score_request(qid=True))]
        )
        search = GridSearchCV(whole, {"rank__alpha": [1e-3, 1e2]}, cv=GroupKFold(4))
        search.fit(data.features, data.labels, qid=data.query_of_row, groups=data.query_of_row)
        scaled = StandardScaler().fit_transform(data.features)
        fitted = clone(ranker).set_params(alpha=search.best_params_["rank__alpha"])
        fitted.fit(scaled, data.labels, qid=data.query_of_row)
        value = search.best_estimator_.score(data.features, data.labels, qid=data.query_of_row)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert value == fitted.score(scaled, data.labels, qid=data.query_of_row)
    with pytest.raises(ArgumentError, match="weights differ within a query"):
        fitted.score(scaled, data.labels, qid=data.query_of_row, sample_weight=data.labels)


@pytest.mark.parametrize(("measure", "sign"), [("ERR@3", 1), ("WKT(k=5)", -1), (AP, 1)])
def test_the_score_is_the_rankers_own_measure(measure: str, sign: int) -> None:
    data = made_up(noise=1.0)
    ranker = LinearRanker("ListNet()", measure=measure).fit(data)
    (value,) = evaluate(measure, data, ranker.predict(data)).means.values()
    assert ranker.score(data) == sign * value
    assert ranker.score(data.features, data.labels, group=data.sizes) == sign * value
    assert value != pytest.approx(LinearRanker("ListNet()").fit(data).score(data))


def test_a_search_picks_the_smallest_loss() -> None:
    """GridSearchCV maximizes: a measure of which smaller is better must be negated."""
    data = made_up(noise=0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = LinearRanker("SquaredError()", measure="WKT(k=5)").set_fit_request(qid=True)
        search = GridSearchCV(
            ranker.set_score_request(qid=True), {"alpha": [1e5, 1e-3]}, cv=GroupKFold(4)
        )
        search.fit(data.features, data.labels, qid=data.query_of_row, groups=data.query_of_row)
    assert search.best_params_ == {"alpha": 1e-3}
    best = LinearRanker("SquaredError()", measure="WKT(k=5)", alpha=1e-3)
    value = by_folds(best, data)
    assert search.best_score_ == pytest.approx(value)
    assert value < 0


@pytest.mark.parametrize("loss", ["ListMLE(k=5)", "PairHinge(k=5)"])
def test_a_fit_that_did_not_converge_is_told_of(loss: str) -> None:
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3") as said:
        ranker = LinearRanker(loss, max_iter=3).fit(made_up())
    assert said[0].filename == __file__
    assert not ranker.converged_
    assert LinearRanker(loss).fit(made_up()).converged_


def test_numpys_numbers_are_parameters_like_any() -> None:
    data = made_up(10)
    # Not what the types ask for, but what comes out of np.logspace or a grid.
    numbers: dict[str, Any] = {"max_iter": np.int64(50), "alpha": np.float32(0.5)}
    network: dict[str, Any] = {"hidden_layer_sizes": np.array([4]), "epochs": np.uint8(2)}
    cascade: dict[str, Any] = {"base_votes": np.True_, "candidates": np.int64(5)}
    trees: Any = np.int32(3)
    for mine, numpys in [
        (LinearRanker(max_iter=50, alpha=0.5), LinearRanker(**numbers)),
        (
            TreeRanker(n_estimators=3, engine_params={"num_leaves": 4, "extra_trees": True}),
            TreeRanker(
                n_estimators=trees,
                engine_params={"num_leaves": np.int64(4), "extra_trees": np.bool_(True)},
            ),
        ),
        (
            NeuralRanker(hidden_layer_sizes=[4], epochs=2, learning_rate=0.25),
            NeuralRanker(**network, learning_rate=np.float64(0.25)),
        ),
        (
            CascadeRanker(LinearRanker(), [LinearRanker()], base_votes=True, candidates=5),
            CascadeRanker(LinearRanker(), [LinearRanker()], **cascade),
        ),
    ]:
        assert numpys.fit(data).to_bytes() == mine.fit(data).to_bytes()


def test_a_parameter_that_cannot_be_saved_is_told() -> None:
    ranker = LinearRanker(max_iter=50).fit(made_up(10)).set_params(tol=1 + 2j)
    with pytest.raises(ArgumentError, match=r"\(1\+2j\) cannot be saved"):
        ranker.to_bytes()


def test_scikit_learns_checks_that_need_no_queries() -> None:
    from sklearn.utils import estimator_checks as checks

    for estimator in RANKERS.values():
        name = type(estimator).__name__
        checks.check_no_attributes_set_in_init(name, clone(estimator))
        checks.check_parameters_default_constructible(name, clone(estimator))
        checks.check_get_params_invariance(name, clone(estimator))
        checks.check_set_params(name, clone(estimator))
        checks.check_estimator_cloneable(name, clone(estimator))
        checks.check_estimator_repr(name, clone(estimator))


def rewritten(whole: bytes, entry: str, old: bytes, new: bytes) -> bytes:
    """A model file with one entry changed and every checksum right."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == entry:
                assert content.count(old) == 1
                content = content.replace(old, new)
            after.writestr(name, content)
    return changed.getvalue()


@pytest.mark.parametrize(
    ("entry", "old", "new", "message"),
    [
        (
            "ranker.json",
            b"LinearRanker",
            b"EvilXyRanker",
            r"is not a ranker of this Podium \('Evil",
        ),
        (
            "ranker.json",
            b'"version": 2',
            b'"version": 9',
            r"model: is a ranker file of format version 9; this Podium reads version 2\.",
        ),
        ("ranker.json", b'"version": 2', b'"release": 1', r"is not a saved ranker \('version'\)"),
        ("ranker.json", b'"version": 2', b'"version": ', "is not a saved ranker .*line"),
        ("coef.npy", b"<f8", b"|O8", "is not a saved ranker .*allow_pickle=False"),
        ("coef.npy", b"(6,)", b"(9,)", "is not a saved ranker .*expected 72 bytes got 48"),
        ("coef.npy", b"(6,)", b"(5,)", "numbers of weights and features differ"),
    ],
)
def test_a_changed_file_is_refused(
    tmp_path: Path, entry: str, old: bytes, new: bytes, message: str
) -> None:
    path = tmp_path / "model"
    LinearRanker().fit(made_up(5)).save(path)
    path.write_bytes(rewritten(path.read_bytes(), entry, old, new))
    with pytest.raises(DataError, match=message):
        load_ranker(path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    LinearRanker().fit(made_up(5)).save(path)
    whole = path.read_bytes()
    place = whole.index(b"LinearRanker")
    flipped = whole[:place] + b"l" + whole[place + 1 :]
    damaged = {
        r"is not a saved ranker \(Bad CRC-32 for file 'ranker.json'\)": flipped,
        r"is not a saved ranker \(File is not a zip file\)": whole[: len(whole) // 2],
    }
    for message, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            load_ranker(path)


def test_entries_are_undated(tmp_path: Path) -> None:
    LinearRanker().fit(made_up(5)).save(tmp_path / "model")
    with zipfile.ZipFile(tmp_path / "model") as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_other_features_in_validation_are_refused() -> None:
    other = Dataset.from_arrays(np.zeros((2, 3)), labels=[0, 1], group=[2])
    with pytest.raises(DataError, match="other features"):
        LinearRanker().fit(made_up(5), eval_set=other)


def test_another_tools_name_of_a_measure_means_that_tools_measure() -> None:
    """Its gains are linear where Podium's are exponential."""
    data = made_up(30)
    scores = LinearRanker(measure="ndcg_cut_5").fit(data).predict(data)
    expected = evaluate("nDCG@5", data, scores, conventions="trec_eval").means["nDCG@5"]
    usual = evaluate("nDCG@5", data, scores).means["nDCG@5"]
    assert expected != pytest.approx(usual, abs=1e-3)
    assert LinearRanker(measure="ndcg_cut_5").fit(data).score(data) == expected
    held_out = made_up(20, seed=5)
    found = tune(LinearRanker(), {"alpha": [1.0]}, data, held_out, measure="ndcg_cut_5")
    predicted = found.best_ranker.predict(held_out)
    assert found.trials[0].value == evaluate("ndcg_cut_5", held_out, predicted).means["nDCG@5"]
    steps: list[float | None] = []
    fitted = LinearRanker(measure="ndcg_cut_5")
    fitted.fit(data, eval_set=held_out, progress=lambda _step, _loss, value: steps.append(value))
    best = evaluate("ndcg_cut_5", held_out, fitted.predict(held_out)).means["nDCG@5"]
    assert max(value for value in steps if value is not None) == pytest.approx(best)

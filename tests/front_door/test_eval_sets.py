"""Several sets of validation queries in one fit, as users of LightGBM and XGBoost give them."""

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import podium
from podium.rankers.fit_arguments import FitStopped
from podium.rankers.fit_progress import FitProgress
from podium.rankers.training_data import ValidationSets

RNG = np.random.default_rng(5)
X = RNG.random((600, 4))
Y = np.digitize(2 * X[:, 0] - X[:, 1] + 0.5 * RNG.normal(size=600), [0.2, 0.8])
QID = np.repeat(np.arange(30), 20)
TRAIN_X, TRAIN_Y = X[:240], Y[:240]
FIRST, SECOND = slice(240, 360), slice(360, 600)

KINDS: list[Any] = [
    podium.TreeRanker(n_estimators=12, min_child_samples=5, early_stopping_rounds=None),
    podium.TreeRanker(engine="xgboost", n_estimators=12, early_stopping_rounds=None),
    podium.BoostedRanker(n_estimators=12, early_stopping_rounds=None),
    podium.NeuralRanker(epochs=12, early_stopping_rounds=None),
    podium.LinearRanker("ListNet()"),
]


def measured(ranker: Any, rows: slice) -> float:
    scores = ranker.predict(X[rows])
    result = podium.evaluate("nDCG@10", Y[rows], scores, qid=QID[rows])
    return float(result.means["nDCG@10"])


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_each_set_has_its_history_and_the_last_decides(kind: Any) -> None:
    ranker = clone(kind).fit(
        TRAIN_X,
        TRAIN_Y,
        qid=QID[:240],
        eval_set=[(X[FIRST], Y[FIRST]), (X[SECOND], Y[SECOND])],
        # The same ids in both, and in the training data.
        eval_qid=[QID[:120], QID[:240]],
    )
    histories = {name: each["nDCG@10"] for name, each in ranker.evals_result_.items()}
    assert list(histories) == ["valid_0", "valid_1"]
    alone = clone(kind).fit(
        TRAIN_X, TRAIN_Y, qid=QID[:240], eval_set=(X[SECOND], Y[SECOND]), eval_qid=QID[SECOND]
    )
    assert histories["valid_1"] == pytest.approx(alone.evals_result_["valid_0"]["nDCG@10"])
    assert np.array_equal(ranker.predict(X), alone.predict(X))
    best = int(np.argmax(histories["valid_1"]))
    assert histories["valid_1"][best] == pytest.approx(measured(ranker, SECOND), abs=1e-6)
    assert histories["valid_0"][best] == pytest.approx(measured(ranker, FIRST), abs=1e-6)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_training_data_among_them_are_called_so_and_do_not_decide() -> None:
    arguments: dict[str, Any] = {
        "eval_set": [(X[SECOND], Y[SECOND]), (TRAIN_X, TRAIN_Y)],
        "eval_group": [[20] * 12, [20] * 12],
    }
    fitted = clone(KINDS[0]).fit(TRAIN_X, TRAIN_Y, group=[20] * 12, **arguments)
    reference = lightgbm.LGBMRanker(n_estimators=2, verbose=-1)
    reference.fit(TRAIN_X, TRAIN_Y, group=[20] * 12, **arguments)
    assert sorted(fitted.evals_result_) == sorted(reference.evals_result_)
    values = fitted.evals_result_["valid_0"]["nDCG@10"]
    assert fitted.best_iteration_ == int(np.argmax(values)) + 1
    trained = fitted.evals_result_["training"]["nDCG@10"]
    assert int(np.argmax(trained)) != int(np.argmax(values))  # or the test would show nothing
    assert trained[fitted.best_iteration_ - 1] == pytest.approx(
        fitted.score(TRAIN_X, TRAIN_Y, group=[20] * 12), abs=1e-6
    )


def test_names_of_the_sets(capfd: pytest.CaptureFixture[str]) -> None:
    history: dict[str, Any] = {}
    ranker = clone(KINDS[0]).fit(
        podium.Dataset.from_arrays(TRAIN_X, TRAIN_Y, qid=QID[:240]),
        eval_set=[
            podium.Dataset.from_arrays(X[rows], Y[rows], qid=QID[rows]) for rows in (FIRST, SECOND)
        ],
        eval_names=["shops", "news"],
        callbacks=[lightgbm.record_evaluation(history), lightgbm.log_evaluation(1)],
    )
    assert list(ranker.evals_result_) == ["shops", "news"]
    assert history == ranker.evals_result_
    first = {name: values["nDCG@10"][0] for name, values in history.items()}
    line = f"[1]\tshops's nDCG@10: {first['shops']:g}\tnews's nDCG@10: {first['news']:g}\n"
    assert line in capfd.readouterr().out
    drawn = ranker.plot().svg
    assert "shops" in drawn
    assert "news" in drawn


def test_the_name_of_one_set() -> None:
    ranker = clone(KINDS[0]).fit(
        TRAIN_X,
        TRAIN_Y,
        qid=QID[:240],
        eval_set=[(X[FIRST], Y[FIRST])],
        eval_qid=[QID[FIRST]],
        eval_names=["shops"],
    )
    assert list(ranker.evals_result_) == ["shops"]


def test_early_stopping_of_lightgbm_ignores_training_data() -> None:
    ranker = podium.LinearRanker()
    ranker.evals_result_ = {}
    sets = ValidationSets({"valid_0": 5, "training": 5}, frozenset({"training"}))
    callbacks = [lightgbm.early_stopping(3, verbose=False)]
    progress = FitProgress(ranker, sets, callbacks, None)
    for step in range(10):  # the training data are ranked perfectly from the start
        progress(step, 1.0, step / 10, {"valid_0": step / 10, "training": 1.0})
    for step in (10, 11):
        progress(step, 1.0, 0.9, {"valid_0": 0.9, "training": 1.0})
    with pytest.raises(FitStopped):
        progress(12, 1.0, 0.9, {"valid_0": 0.9, "training": 1.0})
    assert ranker.evals_result_["training"]["nDCG@10"] == [1.0] * 13


def test_cascades_take_the_deciding_set() -> None:
    kind = podium.CascadeRanker(podium.LinearRanker(), [podium.TreeRanker(n_estimators=12)])
    several = clone(kind).fit(
        TRAIN_X,
        TRAIN_Y,
        qid=QID[:240],
        eval_set=[(X[SECOND], Y[SECOND]), (TRAIN_X, TRAIN_Y)],
        eval_qid=[QID[SECOND], QID[:240]],
    )
    alone = clone(kind).fit(
        TRAIN_X, TRAIN_Y, qid=QID[:240], eval_set=(X[SECOND], Y[SECOND]), eval_qid=QID[SECOND]
    )
    data = podium.Dataset.from_arrays(X, Y, qid=QID)
    assert np.array_equal(several.predict(data), alone.predict(data))
    assert several.weights_.tolist() == alone.weights_.tolist()


def test_columns_of_each_set_are_matched_by_name() -> None:
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    arguments: dict[str, Any] = {"qid": QID[:240], "eval_qid": [QID[FIRST], QID[SECOND]]}
    straight = clone(KINDS[0]).fit(
        frame[:240],
        TRAIN_Y,
        eval_set=[(frame[FIRST], Y[FIRST]), (frame[SECOND], Y[SECOND])],
        **arguments,
    )
    turned = clone(KINDS[0]).fit(
        frame[:240],
        TRAIN_Y,
        eval_set=[(frame[FIRST][names[::-1]], Y[FIRST]), (frame[SECOND][names[::-1]], Y[SECOND])],
        **arguments,
    )
    assert turned.evals_result_ == straight.evals_result_


SPARSE = scipy.sparse.csr_array(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_set": [X, Y]}, "eval_set is a ndarray"),
        ({"eval_set": []}, "eval_set is empty"),
        ({"eval_set": [(X, Y)] * 2, "eval_qid": QID}, "eval_qid is one array for 2 data sets"),
        ({"eval_set": [(X, Y)] * 2, "eval_qid": [QID]}, "eval_qid has 1 arrays. Give 2"),
        ({"eval_set": [(X, Y)], "eval_qid": [QID], "eval_names": ["a", "b"]}, "the names 'a', 'b'"),
        (
            {"eval_set": [(X, Y)] * 2, "eval_qid": [QID] * 2, "eval_names": ["a", "a"]},
            "2 validation sets have the names 'a', 'a'",
        ),
        ({"eval_set": ()}, "eval_set is empty"),
        ({"eval_set": [(X, Y)]}, "the rows of eval_set are not grouped by query. Give either eval"),
        ({"eval_set": [(X, Y)], "eval_qid": [QID], "eval_names": [1]}, "eval_names are [1]"),
        ({"eval_names": ["a"]}, "there is no eval_set"),
        ({"eval_X": X, "eval_y": Y}, "Give eval_set=[(X, y)]"),
    ],
)
def test_refused_sets(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(podium.ArgumentError) as caught:
        podium.LinearRanker().fit(X, Y, qid=QID, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "eval_set",
    [
        ((X[FIRST], Y[FIRST]), (X[SECOND], Y[SECOND])),
        [[X[FIRST], Y[FIRST]], [X[SECOND], Y[SECOND]]],
    ],
    ids=["tuple of pairs", "pairs as lists"],
)
def test_sets_in_other_sequences(eval_set: Any) -> None:
    ranker = podium.LinearRanker("ListNet()").fit(
        TRAIN_X, TRAIN_Y, qid=QID[:240], eval_set=eval_set, eval_qid=(QID[FIRST], QID[SECOND])
    )
    histories = {name: each["nDCG@10"] for name, each in ranker.evals_result_.items()}
    assert list(histories) == ["valid_0", "valid_1"]
    best = int(np.argmax(histories["valid_1"]))
    assert histories["valid_0"][best] == pytest.approx(measured(ranker, FIRST), abs=1e-6)


def test_data_sets_in_a_tuple() -> None:
    first, second = (podium.Dataset.from_arrays(X[r], Y[r], qid=QID[r]) for r in (FIRST, SECOND))
    ranker = clone(KINDS[0]).fit(TRAIN_X, TRAIN_Y, qid=QID[:240], eval_set=(first, second))
    assert list(ranker.evals_result_) == ["valid_0", "valid_1"]


def test_linear_rankers_refuse_missing_values_of_validation_data() -> None:
    missing = np.where(X > 0.9, np.nan, X)
    with pytest.raises(podium.DataError, match="a linear ranker cannot score missing values"):
        podium.LinearRanker().fit(X, Y, qid=QID, eval_set=(missing, Y), eval_qid=QID)


def test_sparse_sets_are_one_only() -> None:
    with pytest.raises(podium.ArgumentError, match="'valid_0' is not in memory, or sparse"):
        podium.LinearRanker().fit(
            SPARSE,
            Y,
            qid=QID,
            eval_set=[(SPARSE[:240], Y[:240]), (SPARSE[240:], Y[240:])],
            eval_qid=[QID[:240], QID[240:]],
        )

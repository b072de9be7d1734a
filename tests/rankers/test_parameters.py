"""Parameters take effect or are refused, before any data are read where that can be known."""

import subprocess
import sys
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from podium.data import Dataset
from podium.errors import ArgumentError, DataError
from podium.losses.names import parse_loss
from podium.rankers import BoostedRanker, LinearRanker, NeuralRanker, Ranker, TreeRanker, tune
from podium.rankers.engine_parameters import LIGHTGBM_REJECTED
from podium.rankers.engines import ENGINES
from tests.rankers.made_up import made_up

REFUSED = [
    ("learning_rate", "eta shrinkage_rate learning_rate", "eta learning_rate"),
    ("random_state", "random_state random_seed seed", "random_state seed"),
    ("PODIUM_THREADS", "num_threads n_jobs nthread", "nthread n_jobs"),
    ("n_estimators", "n_estimators n_iter num_trees", "n_estimators num_boost_round"),
    ("early_stopping_rounds", "early_stopping_rounds early_stopping", "early_stopping_rounds"),
    ("a loss", "objective application app loss objective_type num_class lambdarank_norm",
     "objective num_class scale_pos_weight lambdarank_pair_method"),
    ("a measure", "metric metrics eval_at", "eval_metric disable_default_eval_metric"),
    ("podium.cluster", "machines num_machines tree_learner", ""),
    ("bagging_fraction", "bagging_by_query pos_bagging", ""),
    ("Leave it out", "data input_model model_in task output_model valid", "process_type"),
]  # fmt: skip
CASES = [
    (engine, name, hint)
    for hint, *both in REFUSED
    for engine, names in zip(("lightgbm", "xgboost"), both, strict=True)
    for name in names.split()
]


@pytest.mark.parametrize(("engine", "name", "hint"), CASES)
def test_parameters_that_are_podiums_own_or_have_no_effect_are_refused(
    engine: Any, name: str, hint: str
) -> None:
    ranker = TreeRanker(engine=engine, engine_params={name: 1})
    with pytest.raises(ArgumentError, match=f"^{name} cannot be set .*{hint}"):
        ranker.check_parameters()


def test_every_refused_name_is_one_of_lightgbms() -> None:
    """A misspelt name here would refuse nothing."""
    assert set(LIGHTGBM_REJECTED) <= set(lightgbm.basic._ConfigAliases._get_all_param_aliases())


@pytest.mark.parametrize(
    ("engine", "parameters", "hint"),
    [
        ("lightgbm", {"boosting": "rf"}, "boosting=rf does not work .*Give boosting gbdt"),
        ("lightgbm", {"boosting": "dart"}, "boosting=dart does not work .*Give boosting gbdt"),
        ("lightgbm", {"boosting": "DART"}, "boosting=DART does not work .*Give boosting gbdt"),
        ("lightgbm", {"boosting_type": "RF"}, "boosting_type=RF does not work"),
        ("xgboost", {"booster": "dart"}, "booster=dart does not work .*Give booster gbtree"),
        ("lightgbm", {"num_leaves": 31, "max_leaves": 3}, "num_leaves and max_leaves are one"),
        ("xgboost", {"gamma": 1, "min_split_loss": 2}, "gamma and min_split_loss are one"),
        ("lightgbm", {"boosting_type": "random_forest"}, "does not work"),
        ("xgboost", {"booster": "gblinear"}, "booster=gblinear does not work .*LinearRanker"),
        ("lightgbm", {"boosting": "gbdt objective=binary"}, "would split at spaces"),
        ("lightgbm", {"max_depth": {"a": 1}}, "max_depth is of type dict"),
    ],
)
def test_values_that_cannot_work_are_refused(
    engine: Any, parameters: dict[str, Any], hint: str
) -> None:
    with pytest.raises(ArgumentError, match=hint):
        TreeRanker(engine=engine, engine_params=parameters).check_parameters()


@pytest.mark.parametrize("method", ["approx", "exact"])
def test_every_tree_method_of_xgboost_trains(method: str) -> None:
    data = made_up()
    ranker = TreeRanker(
        "ListMLE()", engine="xgboost", n_estimators=5, engine_params={"tree_method": method}
    )
    scores = ranker.fit(data).predict(data)

    def derivatives(before: np.ndarray, _data: object) -> tuple[np.ndarray, np.ndarray]:
        found = parse_loss(str(ranker.loss)).evaluate(
            before.astype(float), data.labels, data.offsets
        )
        return found.gradient, found.curvature

    rows = xgboost.DMatrix(data.features, np.zeros(data.rows))
    settings = {"tree_method": method, "learning_rate": ranker.learning_rate, "base_score": 0}
    booster = xgboost.train(settings, rows, 5, obj=derivatives)
    np.testing.assert_allclose(scores, booster.predict(rows), rtol=1e-6, atol=1e-6)
    by_bins = TreeRanker("ListMLE()", engine="xgboost", n_estimators=5).fit(data).predict(data)
    assert not np.array_equal(scores, by_bins)


@pytest.mark.parametrize(
    ("engine", "parameters", "message"),
    [
        ("lightgbm", {"num_leaves": 1}, r"Check failed: \(num_leaves\) > \(1\)\. Check"),
        ("lightgbm", {"num_leaves": "abc"}, "num_leaves should be of type int"),
        ("lightgbm", {"boosting": "other"}, "Unknown boosting type other"),
        ("xgboost", {"subsample": 5}, "value 5 for Parameter subsample exceed"),
        ("xgboost", {"max_depth": "abc"}, "expect int but value='abc'"),
        ("xgboost", {"tree_method": "none such"}, "Invalid Input: 'none such'"),
    ],
)
def test_what_an_engine_refuses_is_told_in_one_line(
    engine: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=f"cannot train: .*{message}") as error:
        TreeRanker(engine=engine, engine_params=parameters).fit(made_up(5))
    text = str(error.value)
    assert "\n" not in text
    assert ".cpp" not in text
    assert ".cc:" not in text


def test_settings_give_way_to_their_aliases() -> None:
    """LightGBM prefers a main name to its aliases; verbose=1 must not lose against verbosity=-1."""
    code = """
from podium.rankers import TreeRanker
from tests.rankers.made_up import made_up
TreeRanker(n_estimators=2, engine_params={"verbose": 1}).fit(made_up(5))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Total Bins" in done.stdout + done.stderr
    settings = {"force_col_wise": True}
    booster = ENGINES.named("lightgbm").start(made_up(5), None, settings)
    assert "[force_row_wise: 0]" in booster.model.model_to_string()


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (LinearRanker(alpha="a"), "alpha is 'a'"),  # type: ignore[arg-type]
        (LinearRanker(alpha=np.nan), "alpha is nan"),
        (LinearRanker(alpha=-1), "alpha is -1"),
        (LinearRanker(tol=np.inf), "tol is inf"),
        (LinearRanker(max_iter=0), "max_iter is 0. Give an integer of at least 1"),
        (LinearRanker(max_iter=2.5), "max_iter is 2.5"),  # type: ignore[arg-type]
        (BoostedRanker(n_estimators=-1), "n_estimators is -1"),
        (BoostedRanker(beta=np.nan), "beta is nan"),
        (BoostedRanker(early_stopping_rounds=0), "early_stopping_rounds is 0"),
        (NeuralRanker(learning_rate=np.nan), "learning_rate is nan"),
        (NeuralRanker(epochs=0), "epochs is 0"),
        (NeuralRanker(hidden_layer_sizes="64"), "hidden_layer_sizes is '64'"),  # type: ignore[arg-type]
        (NeuralRanker(hidden_layer_sizes=(8, 0)), "a width in hidden_layer_sizes is 0"),
        (TreeRanker(learning_rate=-1), "learning_rate is -1"),
        (TreeRanker(n_estimators="5"), "n_estimators is '5'"),  # type: ignore[arg-type]
        (TreeRanker(early_stopping_rounds=True), "early_stopping_rounds is True"),
        (TreeRanker(engine_params=[3]), "engine_params is .3.. Give a dictionary"),  # type: ignore[arg-type]
    ],
)
def test_wrong_numbers_are_refused_by_name(ranker: Ranker, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{message}"):
        ranker.fit(made_up(3))


@pytest.mark.parametrize(
    ("choices", "trials", "message"),
    [
        ({"alpha": [1.0]}, 0, "n_trials is 0"),
        ({"alpha": [1.0, 2.0]}, -1, "n_trials is -1"),
        ({"alpha": 1e-3}, None, r"alpha is not a list of values. Give \[0.001\]"),
        ({"loss": "ListNet()"}, None, "loss is not a list of values"),
    ],
)
def test_a_search_over_nothing_is_refused(choices: Any, trials: int | None, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tune(LinearRanker(), choices, made_up(5), made_up(5, seed=1), n_trials=trials)


@pytest.mark.parametrize("ranker", [LinearRanker("ListNet()"), NeuralRanker(), BoostedRanker()])
def test_data_without_features_are_refused(ranker: Ranker) -> None:
    data = made_up(3)
    empty = Dataset.from_arrays(data.features[:, :0], data.labels, group=data.sizes)
    with pytest.raises(DataError, match="no feature to learn from"):
        ranker.fit(empty)

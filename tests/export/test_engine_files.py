"""Models of LightGBM, XGBoost and CatBoost score as their libraries do."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.data import Dataset
from podium.errors import DataError
from podium.export import export_ranker
from podium.export.reading import read_engine_model
from podium.export.verifying import read_written
from podium.rankers import TreeRanker, load_ranker
from podium.scorers.catboost_file import read_catboost
from podium.scorers.lightgbm_file import read_lightgbm
from podium.scorers.model_check import check_xgboost
from podium.scorers.trees import TreeModel
from podium.scorers.xgboost_file import read_xgboost
from tests.export.trained import (
    TYPES,
    awkward_rows,
    catboost_model,
    lightgbm_model,
    queries,
    rows,
    xgboost_model,
)


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"boosting": "dart"},
    ],
)
def test_lightgbm(missing: bool, parameters: dict[str, Any]) -> None:
    booster = lightgbm_model(missing, **parameters)
    model = read_lightgbm(booster.model_to_string().encode())
    X = awkward_rows(model)
    # Both add the same numbers in the same order.
    assert np.array_equal(model.predict(X), booster.predict(X, raw_score=True))
    assert model.has_categories


def test_lightgbm_counts_a_missing_value_as_0_where_training_had_none() -> None:
    booster = lightgbm_model(missing=False)
    model = read_lightgbm(booster.model_to_string().encode())
    numerical = (model.feature >= 0) & (model.category_set < 0)
    # The file says that missing values go left at every one of these splits.
    assert np.array_equal(model.missing_left[numerical], (model.threshold >= 0)[numerical])
    assert not model.missing_left[numerical].all()


def test_lightgbm_zero_as_missing_is_a_property_of_features() -> None:
    model = read_lightgbm(lightgbm_model(zero_as_missing=True).model_to_string().encode())
    assert model.zero_missing[[3, 5]].tolist() == [False, True]


def test_lightgbm_takes_values_near_0_for_0() -> None:
    import lightgbm

    def tiny(match: re.Match[str]) -> str:
        """Thresholds of 1e-40 in as many characters: a file has the sizes of its trees."""
        words = match[1].split(" ")
        signs = ["-" if word.startswith("-") else "" for word in words]
        return "threshold=" + " ".join(
            f"{sign}1.{'0' * (len(word) - len(sign) - 6)}e-40"
            for sign, word in zip(signs, words, strict=True)
        )

    text = lightgbm_model(min_data_per_group=10_000).model_to_string()
    text = re.sub(r"threshold=([-.\d]{12,}(?: [-.\d]{12,})*)(?=\n)", tiny, text)
    booster = lightgbm.Booster(model_str=text)
    model = read_lightgbm(text.encode())
    assert (np.abs(model.threshold[model.feature >= 0]) < 1.1e-35).sum() > 20
    X = np.random.default_rng(0).choice(
        [0, 1e-40, -1e-40, 2e-40, -2e-40, 1e-35, -1e-35, 1, -1], (500, 6)
    )
    expected = np.asarray(booster.predict(X, raw_score=True))
    assert np.array_equal(model.predict(X), expected)


def test_lightgbm_model_without_trees() -> None:
    import lightgbm

    text = lightgbm_model().model_to_string(num_iteration=1)
    model = read_lightgbm(text.encode())
    assert model.trees == 1
    constant = lightgbm.train(
        {"objective": "regression", "verbosity": -1, "min_data_in_leaf": 10_000},
        lightgbm.Dataset(*rows(False)),
        3,
    )
    model = read_lightgbm(constant.model_to_string().encode())
    X = rows(False)[0]
    expected = np.asarray(constant.predict(X, raw_score=True))
    assert np.array_equal(model.predict(X), expected)


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"booster": "dart", "rate_drop": 0.3},
        {"objective": "rank:ndcg"},
        {"objective": "reg:squarederror", "num_parallel_tree": 3},
    ],
)
def test_xgboost(form: str, parameters: dict[str, Any]) -> None:
    import xgboost

    booster = xgboost_model(**parameters)
    model = read_xgboost(bytes(booster.save_raw(form)))
    X = awkward_rows(model).astype(np.float32)
    X[np.isinf(X)] = 2.5  # XGBoost refuses infinities
    X[:, 3] = np.where(np.isnan(X[:, 3]), np.nan, np.abs(X[:, 3]) % 50)
    X[::7, 3] = -0.5  # not a category, and not 0 either
    data = xgboost.DMatrix(X, feature_types=TYPES, enable_categorical=True)
    expected = booster.predict(data, output_margin=True)
    assert model.has_categories
    # XGBoost adds in single precision; the same sum in double precision is close to it. Weights of
    # whole trees are multiplied in single precision as well.
    weighted = parameters.get("booster") == "dart"
    assert np.abs(model.predict(X, np.float32) - expected).max() <= (1e-6 if weighted else 0)
    assert np.abs(model.predict(X) - expected).max() < 1e-5


def test_xgboost_nodes_that_pruning_deleted_are_left_out() -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(600, 4)).astype(np.float32)
    labels = np.round(X[:, 0] + generator.normal(size=600))
    data = Dataset.from_arrays(X, labels, group=[20] * 30)
    ranker = TreeRanker(
        engine="xgboost", n_estimators=8, engine_params={"tree_method": "exact", "gamma": 5.0}
    ).fit(data)
    content = json.loads(bytes(ranker.booster_.save_raw("json")))
    trees = content["learner"]["gradient_booster"]["model"]["trees"]
    deleted = [int(tree["tree_param"]["num_deleted"]) for tree in trees]
    nodes = [int(tree["tree_param"]["num_nodes"]) for tree in trees]
    assert max(deleted) > 0
    model = read_xgboost(json.dumps(content).encode())
    assert len(model.feature) == sum(nodes) - sum(deleted)
    expected = ranker.predict(data)
    np.testing.assert_allclose(model.predict(X.astype(np.float64)), expected, atol=1e-5)
    loaded = load_ranker(io.BytesIO(ranker.to_bytes()))
    np.testing.assert_array_equal(loaded.predict(data), expected)

    tree = next(tree for tree in trees if int(tree["tree_param"]["num_deleted"]))
    count = tree["tree_param"]["num_deleted"]
    tree["tree_param"]["num_deleted"] = "0"
    with pytest.raises(DataError, match="another number of deleted nodes"):
        check_xgboost(json.dumps(content).encode())
    tree["tree_param"]["num_deleted"] = count
    leaf = tree["split_indices"].index(2**31 - 1)  # a split that leads to a deleted node
    tree["left_children"][0] = leaf
    with pytest.raises(DataError, match="do not form trees"):
        read_xgboost(json.dumps(content).encode())
    with pytest.raises(DataError, match="form no tree"):
        check_xgboost(json.dumps(content).encode())


def test_xgboost_base_score_of_a_logistic_objective_is_not_1() -> None:
    content = json.loads(bytes(xgboost_model(objective="binary:logistic").save_raw("json")))
    content["learner"]["learner_model_param"]["base_score"] = "1E0"
    with pytest.raises(DataError, match="ZeroDivisionError"):
        read_xgboost(json.dumps(content).encode())


def test_xgboost_base_score_of_a_logistic_objective_is_a_probability() -> None:
    model = read_xgboost(
        bytes(xgboost_model(objective="binary:logistic", base_score=0.3).save_raw())
    )
    assert model.base_score == pytest.approx(np.log(0.3 / 0.7), rel=1e-6)


def test_xgboost_model_ends_at_its_best_iteration() -> None:
    booster = xgboost_model(num_parallel_tree=2)
    booster.set_attr(best_iteration="6")
    model = read_xgboost(bytes(booster.save_raw()))
    assert (model.trees, model.unused) == (14, 26)
    X = rows(True)[0]
    import xgboost

    data = xgboost.DMatrix(X, feature_types=TYPES, enable_categorical=True)
    expected = booster.predict(data, output_margin=True, iteration_range=(0, 7))
    assert np.array_equal(model.predict(X, np.float32), expected)


@pytest.mark.parametrize("rounds", [2, 4])
def test_parallel_trees_of_a_ranker_are_trees_of_one_round(rounds: int) -> None:
    ranker = TreeRanker(engine="xgboost", n_estimators=4, num_parallel_tree=3).fit(queries())
    ranker._keep(ranker._booster, rounds)
    model = ranker.fitted_model()
    assert isinstance(model, TreeModel)
    assert model.trees == 3 * rounds
    X = queries().features
    expected = ranker.booster_.inplace_predict(
        X, iteration_range=(0, rounds), predict_type="margin"
    )
    assert np.array_equal(model.predict(X, np.float32), expected)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("split_conditions", lambda values: values[:1]),
        ("split_indices", lambda values: [*values[:-1], 0.5]),
        ("split_indices", lambda values: values[:1]),
        ("default_left", lambda values: values[:1]),
        ("left_children", lambda values: [float(value) for value in values]),
    ],
)
def test_xgboost_lists_of_another_length_or_of_fractions_are_refused(
    name: str, change: Callable[[list[Any]], list[Any]]
) -> None:
    content = json.loads(bytes(xgboost_model(2).save_raw("json")))
    tree = content["learner"]["gradient_booster"]["model"]["trees"][1]
    tree[name] = change(tree[name])
    with pytest.raises(DataError, match=r"not an integer|length"):
        read_xgboost(json.dumps(content).encode())


def _named(names: list[str]) -> bytes:
    """A model of XGBoost with other names of its 6 features."""
    content = json.loads(bytes(xgboost_model(2).save_raw("json")))
    content["learner"]["feature_names"] = names
    content["learner"]["learner_model_param"]["num_feature"] = str(len(names))
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ([str(number) for number in range(20_001)], "has 20001 features, and at most 20000"),
        (["a" * 1001, *"bcdef"], r"name of 1001 characters \('a{59}\.\.\.\)"),
        (["a\ud800", *"bcdef"], r"not valid Unicode \('a\\ud800'\)"),
    ],
)
def test_names_that_are_too_many_too_long_or_not_unicode_are_refused(
    names: list[str], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        read_xgboost(_named(names))


def test_names_within_the_limits_are_read() -> None:
    names = ["a" * 1000, "\U0001f600", *"cdef"]
    assert read_xgboost(_named(names)).feature_names == tuple(names)


def test_features_without_names_are_limited_as_well() -> None:
    content = _named([]).replace(b'"num_feature": "0"', b'"num_feature": "20001"')
    with pytest.raises(DataError, match="has 20001 features"):
        read_xgboost(content)


def test_lightgbm_and_catboost_names_are_limited(tmp_path: Path) -> None:
    text = lightgbm_model().model_to_string(num_iteration=1)
    with pytest.raises(DataError, match="name of 1001 characters"):
        read_lightgbm(text.replace("=Column_0 ", f"={'a' * 1001} ").encode())
    content = json.loads(catboost_model(tmp_path)[1])
    content["features_info"]["float_features"][1]["feature_id"] = "a" * 1001
    with pytest.raises(DataError, match="name of 1001 characters"):
        read_catboost(json.dumps(content).encode())


def test_what_is_not_a_number_is_cut_in_the_message() -> None:
    content = _named(list("abcdef")).replace(
        b'"num_class": "0"', b'"num_class": "%s"' % (b"x" * 999)
    )
    with pytest.raises(DataError, match="is not a valid XGBoost model") as refused:
        read_xgboost(content)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"booster": "gblinear"}, r"a linear one \(gblinear\)"),
        ({"objective": "survival:cox"}, "one of the objective survival:cox"),
        ({"objective": "binary:hinge"}, "one of the objective binary:hinge"),
        ({"objective": "multi:softmax", "num_class": 3}, "one of several outputs"),
    ],
)
def test_xgboost_models_of_other_kinds_are_not_supported(
    parameters: dict[str, Any], kind: str
) -> None:
    import xgboost

    X = np.nan_to_num(rows(True)[0])
    model = xgboost.train(
        {"nthread": 2, "verbosity": 0, **parameters}, xgboost.DMatrix(X, (X[:, 0] > 0) * 1), 2
    )
    with pytest.raises(DataError, match=f"is an XGBoost model that is not supported: {kind}"):
        read_xgboost(bytes(model.save_raw("json")))


def test_models_of_several_outputs_are_not_supported(tmp_path: Path) -> None:
    import catboost
    import lightgbm
    import xgboost

    X = np.nan_to_num(rows(True)[0])
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    settings = {"objective": "multiclass", "num_class": 3, "verbosity": -1, "num_threads": 2}
    classes = lightgbm.train(settings, lightgbm.Dataset(X, y), 2)
    with pytest.raises(DataError, match="LightGBM model that is not supported: one of several"):
        read_lightgbm(classes.model_to_string().encode())
    targets = xgboost.train(
        {"multi_strategy": "multi_output_tree", "tree_method": "hist", "nthread": 2},
        xgboost.DMatrix(X, X[:, :2]),
        2,
    )
    with pytest.raises(DataError, match="XGBoost model that is not supported: one of several"):
        read_xgboost(bytes(targets.save_raw("json")))
    model = catboost.CatBoostClassifier(
        iterations=2, depth=2, verbose=0, thread_count=2, allow_writing_files=False
    )
    model.fit(X, y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    with pytest.raises(DataError, match="CatBoost model that is not supported: one of several"):
        read_catboost((tmp_path / "model.json").read_bytes())


def test_catboost_treatment_of_missing_values_that_is_unknown_is_refused(tmp_path: Path) -> None:
    content = json.loads(catboost_model(tmp_path)[1])
    content["features_info"]["float_features"][1]["nan_value_treatment"] = "AsSomething"
    with pytest.raises(DataError, match="nan_value_treatment is 'AsSomething'"):
        read_catboost(json.dumps(content).encode())


@pytest.mark.parametrize(
    "parameters",
    [{}, {"nan_mode": "Max"}, {"grow_policy": "Lossguide"}, {"grow_policy": "Depthwise"}],
)
def test_catboost(tmp_path: Path, parameters: dict[str, Any]) -> None:
    library, content = catboost_model(tmp_path, **parameters)
    model = read_catboost(content)
    X = awkward_rows(model)
    assert np.abs(model.predict(X) - library.predict(X)).max() < 1e-13
    assert model.feature_names == ("1", "2", "3", "4", "5", "6")


@pytest.mark.parametrize("library", ["xgboost", "catboost"])
def test_onnx_scores_doubles_as_the_libraries_that_round_them(library: str, tmp_path: Path) -> None:
    import xgboost

    if library == "catboost":
        model, content = catboost_model(tmp_path)
    else:
        model = xgboost_model()
        content = bytes(model.save_raw("json"))
    trees = read_engine_model(content)
    random = np.random.default_rng(0)
    inner = (trees.feature >= 0) & (trees.category_set < 0)
    X = np.zeros((2000, 6))
    for column in np.unique(trees.feature[inner]):
        X[:, column] = random.choice(trees.threshold[inner & (trees.feature == column)], len(X))
    X[:, 3] = np.abs(X[:, 3])
    X *= 1 + random.choice([-1e-9, 0.0, 1e-9], X.shape)  # rounded to the threshold
    if library == "catboost":
        expected = model.predict(X)
    else:
        data = xgboost.DMatrix(X, feature_types=TYPES, enable_categorical=True)
        expected = model.predict(data, output_margin=True)
    (tmp_path / "exported.json").write_bytes(content)
    export = export_ranker(tmp_path / "exported.json", "onnx", tmp_path / "onnx")
    engine = read_written(export, read_engine_model(content))
    assert np.abs(engine.predict(X) - expected).max() < 1e-5


def test_catboost_with_categories_is_refused(tmp_path: Path) -> None:
    _, content = catboost_model(tmp_path)
    model = json.loads(content)
    model["features_info"]["categorical_features"] = [{"feature_index": 0}]
    with pytest.raises(DataError, match="categorical or text features"):
        read_catboost(json.dumps(model).encode())


def test_other_files_are_refused() -> None:
    with pytest.raises(DataError, match="neither a saved ranker nor a model"):
        read_engine_model(b"hello")


def test_linear_trees_are_refused() -> None:
    text = lightgbm_model().model_to_string()
    with pytest.raises(DataError, match=r"linear trees|not a valid LightGBM model"):
        read_lightgbm(text.replace("is_linear=0", "is_linear=1").encode())


_ODD = [b"", b"-1", b"0", b"7", b"65536", b"2147483648", b"99999999999999999999", b"nan", b"x"]


def _changed(model: bytes, draw: random.Random) -> bytes:
    kind = draw.randrange(4)
    if kind == 0:
        number = draw.choice(list(re.finditer(rb"-?\d+(\.\d+)?", model)))
        return model[: number.start()] + draw.choice(_ODD) + model[number.end() :]
    start = draw.randrange(len(model))
    if kind == 1:
        return model[:start] + bytes([draw.randrange(256)]) + model[start + 1 :]
    end = min(len(model), start + draw.randrange(1, 200))
    return model[:start] + (b"" if kind == 2 else 2 * model[start:end]) + model[end:]


@pytest.mark.parametrize("library", ["lightgbm", "json", "ubj", "catboost"])
def test_damaged_files_are_refused_or_valid(library: str, tmp_path: Path) -> None:
    if library == "lightgbm":
        content = lightgbm_model().model_to_string(num_iteration=3).encode()
    elif library == "catboost":
        content = catboost_model(tmp_path)[1]
    else:
        content = bytes(xgboost_model(3).save_raw(library))
    draw = random.Random(5)
    X = np.zeros((2, 6))
    refused = 0
    for _ in range(300):
        try:
            model = read_engine_model(_changed(content, draw))
        except DataError:
            refused += 1
            continue
        assert isinstance(model, TreeModel)
        if model.features == 6:
            assert np.isfinite(model.predict(X)).all()
    assert refused > 100

"""Model files that were made to harm: they are refused, and the process goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from podium.errors import DataError
from podium.rankers import TreeRanker, load_ranker
from podium.rankers.engines import ENGINES
from podium.rankers.storage import archive_bytes, read_archive
from tests.rankers.made_up import made_up

NAMES = ["lightgbm", "xgboost"]


def grown(name: str, **parameters) -> bytes:
    data = made_up(queries=30, seed=3)
    booster = ENGINES.named(name).start(data, None, {"seed": 1, **parameters})
    rng = np.random.default_rng(0)
    for _ in range(3):
        booster.grow(rng.normal(size=data.rows), np.ones(data.rows))
    return booster.dump()


@pytest.mark.parametrize("name", NAMES)
def test_what_was_saved_is_loaded_and_predicts_the_same(name):
    data = made_up(queries=30, seed=3)
    booster = ENGINES.named(name).start(data, None, {"seed": 1})
    booster.grow(np.arange(data.rows, dtype=float) % 7 - 3, np.ones(data.rows))
    again = ENGINES.named(name).load(booster.dump())
    np.testing.assert_array_equal(again.predict(data.features), booster.predict(data.features))


@pytest.mark.parametrize(
    "parameters",
    [{"linear_tree": True}, {"boosting": "dart"}, {"max_depth": 1}],
)
def test_other_ways_to_grow_trees_pass(parameters):
    ENGINES.named("lightgbm").load(grown("lightgbm", **parameters))


def test_trees_without_a_split_and_with_categories_pass():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 40, size=(500, 2)).astype(float)
    data = lightgbm.Dataset(features, label=rng.normal(size=500), categorical_feature=[0])
    settings = {"objective": "none", "verbosity": -1, "min_data_in_leaf": 5}
    model = lightgbm.Booster(settings, data)
    model.update(fobj=lambda _scores, _data: (features[:, 0] % 3 - 1, np.ones(500)))
    model.update(fobj=lambda _scores, _data: (np.zeros(500), np.zeros(500)))
    text = model.model_to_string(num_iteration=-1)
    assert "cat_boundaries" in text
    loaded = ENGINES.named("lightgbm").load(text.encode())
    np.testing.assert_array_equal(loaded.predict(features), model.predict(features, raw_score=True))


LIGHTGBM = [
    (b"split_feature=", b"split_feature=99 ", "wrong length"),
    (b"left_child=1 ", b"left_child=0 ", "no tree"),
    (b"tree_sizes=", b"tree_sizes=9", "is not a known field"),
    (b"num_leaves=", b"num_leaves=9", "wrong length"),
    (b"num_cat=0", b"num_cat=5", "cat_boundaries"),
    (b"decision_type=2", b"decision_type=3", "category"),
    (b"max_feature_idx=", b"max_feature_idx=9", "length"),
    (b"num_class=1", b"num_class=9", "classes"),
    (b"num_tree_per_iteration=1", b"num_tree_per_iteration=7", "classes"),
    (b"shrinkage=", b"shrinkage=x", "shrinkage"),
    (b"is_linear=0", b"is_linear=1", "num_features"),
    (b"is_linear=0", b"num_leaves=2", "twice"),
]


@pytest.mark.parametrize(("old", "new", "problem"), LIGHTGBM)
def test_crafted_lightgbm_text_is_refused(old, new, problem):
    model = _resized(grown("lightgbm"), old, new)
    with pytest.raises(DataError, match=problem):
        ENGINES.named("lightgbm").load(model)


def _resized(model: bytes, old: bytes, new: bytes) -> bytes:
    """A model with one change whose trees are where their sizes say, so that only it is wrong."""
    assert old in model
    changed = model.replace(old, new, 1)
    if old.startswith(b"tree_sizes") or changed.find(old) < changed.find(b"Tree=0"):
        return changed
    trees = changed[changed.index(b"Tree=0") : changed.index(b"end of trees")]
    sizes = [len(b"Tree=" + part) for part in trees.split(b"Tree=")[1:]]
    head, _, rest = changed.partition(b"tree_sizes=")
    return head + b"tree_sizes=" + b" ".join(b"%d" % n for n in sizes) + rest[rest.index(b"\n") :]


def test_a_feature_out_of_range_is_refused():
    model = grown("lightgbm")
    at = model.index(b"split_feature=") + len(b"split_feature=")
    crafted = model[:at] + b"9" + model[at + 1 :]
    with pytest.raises(DataError, match="no feature"):
        ENGINES.named("lightgbm").load(crafted)


@pytest.mark.parametrize(
    ("where", "value", "problem"),
    [
        ("left_children", 10**6, "no tree"),
        ("right_children", 0, "no tree"),
        ("split_indices", 10**6, "no feature"),
        ("parents", 5, "parents"),
        ("split_type", 1, "categories"),
    ],
)
def test_crafted_xgboost_json_is_refused(where, value, problem):
    content = json.loads(grown("xgboost"))
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    tree[where][0] = value
    with pytest.raises(DataError, match=problem):
        ENGINES.named("xgboost").load(json.dumps(content).encode())
    tree[where] = tree[where][:-1]
    with pytest.raises(DataError, match="wrong length"):
        ENGINES.named("xgboost").load(json.dumps(content).encode())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "metadata",
    [{"trees": 4}, {"trees": -1}, {"feature_names": ["a"]}, {"feature_names": ["a"] * 7}],
)
def test_a_file_whose_facts_are_not_those_of_its_model_is_refused(name, metadata):
    ranker = TreeRanker(engine=name, n_estimators=3).fit(made_up(10))
    archive = read_archive(BytesIO(ranker.to_bytes()))
    crafted = archive_bytes(replace(archive, metadata=archive.metadata | metadata))
    with pytest.raises(DataError, match="other features or fewer trees"):
        load_ranker(BytesIO(crafted))


@pytest.mark.parametrize("name", NAMES)
def test_models_changed_at_random_never_end_the_process(name, tmp_path):
    """A process of its own loads them, and predicts with those that pass."""
    (tmp_path / "model").write_bytes(grown(name))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "mutated_models.py"), name,
         str(tmp_path / "model"), "400"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    refused, loaded = map(int, done.stdout.split())
    assert refused + loaded == 400
    assert refused > 100

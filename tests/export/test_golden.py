"""Golden rows reach what data can reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._random_trees import random_model
from podium.export.golden import golden_values, split_edges
from podium.scorers.lightgbm_file import read_lightgbm
from podium.scorers.trees import TreeModel, concatenate_trees
from tests.export.trained import lightgbm_model


def _stump(threshold: float) -> TreeModel:
    tree = {
        "feature": [0, -1, -1], "threshold": [threshold, 0, 0], "left": [1, 0, 0],
        "right": [2, 0, 0], "missing_left": [True, 0, 0], "value": [0, 1, 2],
    }  # fmt: skip
    return concatenate_trees([tree], ("a",))


def test_both_sides_of_a_threshold_and_a_missing_value() -> None:
    rows, reached = golden_values(_stump(0.1))
    below = np.nextafter(np.float32(0.1), np.float32(0))  # 0.1 itself is rounded up
    assert {float(below), float(np.float32(0.1))} <= set(rows[:, 0].tolist())
    assert np.isnan(rows).any()
    assert reached == {"rows": len(rows), "leaves": 2, "leaves_reached": 2}


def _passes(model: TreeModel, row: np.ndarray, node: int) -> bool:
    """Whether a row comes to a node: computed by hand, for thresholds and missing values only."""
    at = int(model.roots[0])
    while at != node and model.feature[at] >= 0:
        value = row[model.feature[at]]
        left = model.missing_left[at] if np.isnan(value) else value <= model.threshold[at]
        at = int(model.left[at] if left else model.right[at])
    return at == node


@pytest.mark.parametrize("missing_left", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_every_split_of_a_deep_tree_is_tried_on_both_sides_and_with_a_missing_value(
    missing_left: bool, seed: int
) -> None:
    depth = 6  # the way leads left six times, by a feature of its own each time
    splits = range(depth)
    tree = {
        "feature": [*splits, *[-1] * (depth + 1)],
        "threshold": [-1000.0] * depth + [0] * (depth + 1),
        "left": [*range(1, depth), 2 * depth, *[0] * (depth + 1)],
        "right": [*range(depth, 2 * depth), *[0] * (depth + 1)],
        "missing_left": [missing_left] * depth + [0] * (depth + 1),
        "value": [0] * depth + [*range(depth + 1)],
    }
    model = concatenate_trees([tree], tuple("abcdef"))
    sample = np.random.default_rng(seed).random((50, depth)).astype(np.float32)
    rows, _ = golden_values(model, sample=sample, random_state=seed)
    first_right = float(np.nextafter(np.float32(-1000), np.float32(0)))
    for node in splits:
        values = {row[node] for row in rows if _passes(model, row, node)}
        assert {-1000.0, first_right} <= values
        assert any(np.isnan(value) for value in values)


def test_no_missing_or_negative_values_where_there_are_none() -> None:
    rows, reached = golden_values(_stump(-0.5), can_miss=False, negative=False)
    assert (rows >= 0).all()
    assert reached["leaves_reached"] == 1


def test_avoided_intervals() -> None:
    rows, _ = golden_values(_stump(0.5), avoided=[(0, 0.25, 0.75)])
    assert not ((rows >= 0.25) & (rows <= 0.75)).any()
    assert len(rows) > 0


def test_every_leaf_of_a_trained_model_with_categories_is_reached() -> None:
    model = read_lightgbm(lightgbm_model().model_to_string().encode())
    rows, reached = golden_values(model)
    assert reached["leaves_reached"] == reached["leaves"] == int((model.feature < 0).sum())
    # Each split of a number is tried on both sides of its threshold and with a missing value.
    last, first = split_edges(model)
    inner = np.flatnonzero((model.feature >= 0) & (model.category_set < 0))
    tried = {column: set(rows[:, column].tolist()) for column in range(model.features)}
    on_edge = [
        last[node] in tried[model.feature[node]] and first[node] in tried[model.feature[node]]
        for node in inner
    ]
    assert np.mean(on_edge) > 0.95


@given(st.integers(0, 2**32 - 1))
def test_rows_reach_every_leaf_that_random_rows_reach(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = random_model(random, trees=2, depth=4, features=3)
    rows, _ = golden_values(model)
    last, first = split_edges(model)
    pool = np.concatenate([last, first, [np.nan]])
    pool = pool[~np.isinf(pool)]
    anything = random.choice(pool, (3000, 3))
    assert set(np.unique(model.leaves(anything))) <= set(np.unique(model.leaves(rows)))


def test_leaves_are_reached_even_if_few_rows_are_searched() -> None:
    model = read_lightgbm(lightgbm_model().model_to_string().encode())
    rows, reached = golden_values(model, most_rows=3)
    assert reached["leaves_reached"] == reached["leaves"]
    assert len(rows) > 3


def test_sample_values_are_used_where_no_split_asks_for_others() -> None:
    tree = _stump(0.5)
    model = concatenate_trees(
        [{"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
          "missing_left": [True, 0, 0], "value": [0, 1, 2]}],
        ("a", "b"),
    )  # fmt: skip
    assert tree.features == 1
    sample = np.full((3, 2), 7.25, np.float32)
    rows, _ = golden_values(model, sample=sample)
    assert set(rows[:, 1].tolist()) == {7.25}


def test_same_rows_every_time() -> None:
    model = read_lightgbm(lightgbm_model().model_to_string().encode())
    first, _ = golden_values(model)
    second, _ = golden_values(model)
    assert np.array_equal(first, second, equal_nan=True)

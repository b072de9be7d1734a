"""The walk down trees reaches the leaves that the model itself reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.rankers import TreeRanker
from podium.scorers.trees import TreeModel
from podium.serving.tree_walk import LANES, can_walk, tree_walk

FEATURES = 3
EDGES = [-np.inf, -1e38, -1.0, -1e-40, 0.0, 1e-40, 0.1, 1.0, 3.4028234e38, np.inf]
VALUES = [-3.4028234e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 0.1, 1.0, 3.4028234e38, np.nan]


@st.composite
def tree_models(draw):
    """Trees of all shapes, a chain and a leaf alone too, with thresholds at the edges."""
    nodes: list[list] = []  # feature, threshold, left, right, missing_left, value
    roots = []
    for _ in range(draw(st.integers(1, 4))):
        roots.append(len(nodes))
        waiting = [len(nodes)]
        nodes.append([])
        splits = draw(st.integers(0, 7))
        while waiting:
            node = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            if splits:
                splits -= 1
                left, right = len(nodes), len(nodes) + 1
                if draw(st.booleans()):
                    left, right = right, left
                nodes[node] = [
                    draw(st.integers(0, FEATURES - 1)), draw(st.sampled_from(EDGES)), left, right,
                    draw(st.booleans()), 0.0,
                ]  # fmt: skip
                nodes += [[], []]
                waiting += [left, right]
            else:
                nodes[node] = [-1, 0.0, 0, 0, False, draw(st.floats(-9, 9))]
    columns = list(zip(*nodes, strict=True))
    return TreeModel(
        tuple("abc"), np.array(roots), np.array(columns[0]), np.array(columns[1], float),
        np.array(columns[2]), np.array(columns[3]), np.array(columns[4], bool),
        np.array(columns[5], float), strict=draw(st.booleans()), base_score=draw(st.floats(-9, 9)),
    )  # fmt: skip


rows_of_edges = st.lists(
    st.lists(st.sampled_from(VALUES), min_size=FEATURES, max_size=FEATURES), max_size=2 * LANES + 1
).map(lambda rows: np.array(rows, np.float32).reshape(-1, FEATURES))


@given(model=tree_models(), rows=rows_of_edges)
def test_scores_are_those_of_the_model(model, rows):
    assert can_walk(model)
    expected = model.predict(rows.astype(np.float64))
    for single, numbers in ((True, rows), (False, rows.astype(np.float64))):
        scores = tree_walk(model, single=single)(numbers)
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def ranker(**options):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, FEATURES)).astype(np.float32)
    X[:, 1] = random.integers(0, 5, 400)
    X[random.random(X.shape) < 0.2] = np.nan
    labels = np.clip(np.round(np.nan_to_num(X[:, 0]) + 2 * (X[:, 1] == 3)), 0, 4)
    return TreeRanker(n_estimators=10, **options).fit(X, labels, group=[20] * 20), X


def tree_model(fitted):
    model = fitted.fitted_model()
    assert isinstance(model, TreeModel)
    return model


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_trained_trees_with_missing_values(engine):
    fitted, X = ranker(engine=engine)
    scores = tree_walk(tree_model(fitted), single=True)(X)
    np.testing.assert_allclose(scores, fitted._predict(X), rtol=1e-6, atol=1e-6)


def test_other_splits_are_left_to_onnx_runtime():
    model = tree_model(ranker()[0])
    first = np.where(np.arange(len(model.feature)) == 0, 0, -1)
    categories = replace(model, category_set=first, category_sets=((1, 3),))
    zeros = replace(model, zero_missing=np.array([False, True, False]))
    assert [can_walk(each) for each in (model, categories, zeros)] == [True, False, False]


def test_chains_are_left_to_onnx_runtime():
    depth = 65
    feature = np.array([0, -1] * depth + [-1])
    left = np.array([n + 1 if n % 2 == 0 and n < 2 * depth else 0 for n in range(2 * depth + 1)])
    right = np.array([n + 2 if n % 2 == 0 and n < 2 * depth else 0 for n in range(2 * depth + 1)])
    zeros = np.zeros(2 * depth + 1)
    model = TreeModel(("a",), np.array([0]), feature, zeros, left, right, zeros > 0, zeros)
    assert not can_walk(model)

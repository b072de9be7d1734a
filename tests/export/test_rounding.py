"""What rounding explains, and which numbers of a model scores show."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.export.coverage import coverage
from podium.export.golden import golden_values
from podium.export.targets.base import EngineModel
from podium.scorers.models import LinearModel, NetworkModel
from podium.scorers.trees import concatenate_trees

SEEDS = st.integers(0, 2**32 - 1)
SCALES = st.sampled_from([1e-30, 1e-12, 1.0, 1e12])


def linear_model(random: np.random.Generator, width: int, scale: float) -> LinearModel:
    sizes = 10.0 ** random.uniform(-3, 3, width)
    weights = random.normal(size=width) * sizes * scale
    return LinearModel(tuple(f"f{number}" for number in range(width)), weights)


@given(SEEDS, SCALES, st.integers(1, 60))
def test_a_sum_in_single_precision_is_within_the_bound_in_any_order(
    seed: int, scale: float, width: int
) -> None:
    random = np.random.default_rng(seed)
    model = linear_model(random, width, scale)
    rows = random.normal(size=(20, width)).astype(np.float32).astype(np.float64)
    scores = np.zeros(20, np.float32)
    for column in random.permutation(width):
        scores += rows[:, column].astype(np.float32) * np.float32(model.weights[column])
    bound = model.rounding_bound(rows, np.float32)
    assert (np.abs(scores - model.predict(rows)) <= bound).all()
    # And not much wider: some units in the last place of the terms for each of them.
    terms = np.abs(rows * model.weights).sum(axis=1)
    assert (bound <= (width + 3) * 2.0**-24 * terms + width * 2.0**-149).all()


@given(SEEDS, st.sampled_from([1e-12, 1.0, 1e12]), SCALES)
def test_a_network_in_single_precision_is_within_the_bound(
    seed: int, features: float, scores: float
) -> None:
    random = np.random.default_rng(seed)
    layers = [
        (random.normal(size=(after, before)), random.normal(size=after))
        for before, after in pairwise([4, 5, 3, 1])
    ]
    layers[-1] = layers[-1][0] * scores, layers[-1][1] * scores
    mean = random.normal(size=4) * features
    scale = (0.01 + random.random(4)) * features
    single = tuple((w.astype(np.float32), b.astype(np.float32)) for w, b in layers)
    model = NetworkModel(tuple("abcd"), mean, scale, single)
    rows = (mean + scale * random.normal(size=(20, 4))).astype(np.float32).astype(np.float64)
    rows[random.random(rows.shape) < 0.1] = np.nan
    own = model.rounding_bound(rows, np.float64)  # the ranker's layers are in single precision
    engine = EngineModel(model, mean.astype(np.float32).astype(np.float64), True)
    off = np.abs(engine.predict(rows) - model.predict(rows))
    assert (off <= model.rounding_bound(rows, np.float32) + own).all()


def test_trees_with_opposite_leaves_are_off_by_as_much_as_the_leaves_are_large() -> None:
    """The score is small, and the terms are not."""
    trees = [{"feature": [-1], "value": [value]} for value in (1e8, 1.0, -1e8)]
    model = concatenate_trees(trees, ("a",))
    row = np.zeros((1, 1))
    assert model.predict(row, np.float32)[0] == 0.0  # instead of 1
    assert 1.0 <= model.rounding_bound(row, np.float32)[0] < 100.0
    assert model.rounding_bound(row, np.float64)[0] < 1e-6


@given(SEEDS, SCALES)
def test_golden_rows_show_every_weight(seed: int, scale: float) -> None:
    model = linear_model(np.random.default_rng(seed), 8, scale)
    rows, _ = golden_values(model, negative=False)
    assert (rows >= 0).all()
    engine = EngineModel(model, np.zeros(8), single_precision=True)
    covered = coverage(engine, rows)
    assert (covered.numbers, covered.shown, covered.unshown) == (8, 8, ())
    # Each weight has a row of its own, whose product with it is not rounded.
    scores = engine.predict(rows)
    for column, weight in enumerate(model.weights.astype(np.float32)):
        alone = (rows[:, column] != 0) & ((rows != 0).sum(axis=1) == 1)
        (own,) = np.flatnonzero(alone)
        assert scores[own] / rows[own, column] == weight


def test_golden_rows_have_the_scale_of_the_sample() -> None:
    model = LinearModel(("a", "b", "c"), np.array([1.0, 1.0, 0.0]))
    sample = np.array([[0.0, 1e6, 2], [3e-5, 3e6, 2], [5e-5, 5e6, 2]], np.float32)
    rows, _ = golden_values(model, sample=sample)
    largest = np.diag(rows[1:4])
    assert (np.abs(np.log2(largest / [4e-5, 3e6, 2])) <= 0.5).all()
    assert (np.log2(largest) % 1 == 0).all()


def test_weights_that_no_score_shows_are_named() -> None:
    model = LinearModel(("large", "small"), np.array([1.0, 1e-12]))
    engine = EngineModel(model, np.zeros(2), single_precision=True)
    covered = coverage(engine, golden_values(model)[0])
    assert (covered.numbers, covered.shown, covered.unshown) == (2, 2, ())
    covered = coverage(engine, np.ones((10, 2)))
    assert (covered.numbers, covered.shown) == (2, 1)
    assert covered.unshown[0].startswith("1 of 2 weights (small): ")


def test_leaves_and_thresholds_that_no_score_shows_are_counted() -> None:
    """A base score of 1e9 hides a tree whose leaves are 1 apart."""
    stump = {
        "feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0],
        "missing_left": [True, False, False],
    }  # fmt: skip
    hidden = {"feature": [-1], "value": [1e9]}
    model = concatenate_trees([hidden, stump | {"value": [0, 1.0, 2.0]}], ("a",))
    rows, _ = golden_values(model)
    covered = coverage(EngineModel(model, np.array([np.nan]), True), rows)
    assert (covered.numbers, covered.shown) == (4, 1)  # three leaves and a threshold
    assert [text.split(":")[0] for text in covered.unshown] == [
        "2 of 3 leaves", "1 of 1 thresholds to the last digit", "1 of 1 splits for a missing value",
    ]  # fmt: skip
    alone = concatenate_trees([stump | {"value": [0, 1.0, 2.0]}], ("a",))
    rows, _ = golden_values(alone)
    covered = coverage(EngineModel(alone, np.array([np.nan]), True), rows)
    assert (covered.numbers, covered.shown, covered.unshown) == (3, 3, ())
    # Rows that are not right at the threshold do not show its last digit.
    apart = np.array([[0.0], [1.0], [np.nan]])
    covered = coverage(EngineModel(alone, np.array([np.nan]), True), apart)
    assert (covered.numbers, covered.shown) == (3, 2)


@pytest.mark.parametrize("dead", [False, True])
def test_a_unit_that_never_counts_is_counted(dead: bool) -> None:
    weights = np.array([[1.0, 0.5], [0.25, -1.0]], np.float32)
    biases = np.array([0.5, -1e6 if dead else -0.5], np.float32)
    last = (np.array([[1.0, 2.0]], np.float32), np.array([0.25], np.float32))
    model = NetworkModel(("a", "b"), np.zeros(2), np.ones(2), ((weights, biases), last))
    rows, _ = golden_values(model)
    covered = coverage(EngineModel(model, np.zeros(2), True), rows)
    assert covered.numbers == 2 + 2 + 4 + 2 + 2 + 1
    expected = [
        "2 of 4 weights of layer 0",
        "1 of 2 biases of layer 0",
        "1 of 2 weights of layer 1",
    ]
    assert [text.split(":")[0] for text in covered.unshown] == (expected if dead else [])

"""The risk of a linear scorer, which reads features once, against the plain formula."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data import Dataset
from podium.errors import DataError
from podium.losses.names import parse_loss
from podium.rankers.empirical_risk import block_risk

FOCUSED = "Focused(ListMLE(k=3), PairHinge(k=3), k=3)"


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    features=st.integers(1, 5),
    loss=st.sampled_from(
        ["ListNet()", "ListMLE(k=3)", "PairHinge(k=2)", "LambdaLoss(k=3)", FOCUSED]
    ),
    seed=st.integers(0, 2**16),
)
def test_any_queries_give_the_plain_formula(
    sizes: list[int], features: int, loss: str, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(sum(sizes), features)).astype(np.float32)
    data = Dataset.from_arrays(matrix, draw.integers(0, 4, len(matrix)), group=sizes)
    weights = draw.normal(size=features)
    plain = parse_loss(loss).evaluate(matrix.astype(float) @ weights, data.labels, data.offsets)
    value, slope = block_risk(parse_loss(loss), weights, data)
    assert value == pytest.approx(plain.total, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(slope, matrix.T.astype(float) @ plain.gradient, rtol=1e-6, atol=1e-9)


def test_many_rows_are_shared_among_threads() -> None:
    draw = np.random.default_rng(0)
    matrix = draw.random((20_000, 3), np.float32)
    data = Dataset.from_arrays(matrix, draw.integers(0, 3, len(matrix)), group=[20] * 1000)
    loss, weights = parse_loss("ListNet()"), np.array([1.0, -2.0, 0.5])
    plain = loss.evaluate(matrix.astype(float) @ weights, data.labels, data.offsets)
    value, slope = block_risk(loss, weights, data)
    assert value == pytest.approx(plain.total)
    np.testing.assert_allclose(slope, matrix.T.astype(float) @ plain.gradient, rtol=1e-6)


def test_scores_without_end_are_refused() -> None:
    data = Dataset.from_arrays(np.full((2, 1), 3e38, np.float32), [0, 1], group=[2])
    with pytest.raises(DataError, match="infinite"):
        block_risk(parse_loss("ListNet()"), np.array([1e300]), data)


def test_labels_that_are_no_numbers_are_refused() -> None:
    data = Dataset.from_arrays(np.ones((2, 1)), [0, 1], group=[2])
    unjudged = replace(data, labels=np.array([0, np.nan]))
    with pytest.raises(DataError, match="label is NaN"):
        block_risk(parse_loss("ListNet()"), np.ones(1), unjudged)

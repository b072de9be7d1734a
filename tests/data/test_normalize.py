"""Normalizing within queries, against NumPy query by query."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset
from podium.errors import ArgumentError
from podium.kernels import Doubles
from tests.data.strategies import assert_same, datasets


def brute_force(values: Doubles, method: str) -> Doubles:
    """One feature of one query, NaN left out of the statistics."""
    known = values[~np.isnan(values)]
    if not len(known):
        return values
    if method == "min-max":
        shift, scale = known.min(), known.max() - known.min()
    else:
        shift, scale = known.mean(), known.std()
    if len(set(known.tolist())) == 1:
        return np.where(np.isnan(values), np.nan, 0.0)
    return (values - shift) / scale


@settings(max_examples=60)
@given(datasets(named=True), st.sampled_from(["min-max", "z-score"]))
def test_each_feature_of_each_query(data: Dataset, method: str) -> None:
    normalized = data.normalize(method)
    for query, before in zip(normalized, data, strict=True):
        for column in range(len(data.feature_names)):
            expected = brute_force(before.features[:, column].astype(np.float64), method)
            # Within float32's own precision, and what a sum of 1e38 with 1e-38 must lose.
            np.testing.assert_allclose(
                query.features[:, column], expected, rtol=3e-7, atol=3e-7, equal_nan=True
            )
    assert normalized.features.dtype == np.float32
    # Nothing else changes.
    assert normalized.labels is data.labels
    assert normalized.query_ids is data.query_ids
    assert normalized.feature_names == data.feature_names


@given(datasets(missing=False))
def test_min_max_ends_at_zero_and_one(data: Dataset) -> None:
    normalized = data.normalize()
    for query, before in zip(normalized, data, strict=True):
        for values, old in zip(query.features.T, before.features.T, strict=True):
            distinct = len(set(old.tolist())) > 1
            assert (values.min(), values.max()) == (0, 1 if distinct else 0)


@pytest.mark.parametrize("value", [0.1, 1e-45, 3.4028235e38, -7.3])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_constant_features_become_zero(value: float, size: int) -> None:
    data = Dataset.from_arrays(np.full((size, 2), value), labels=np.zeros(size), group=[size])
    for method in ("min-max", "z-score"):
        assert not data.normalize(method).features.any()


def test_threads_and_layout_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    sizes = random.integers(1, 60, 800)
    features = random.normal(size=(int(sizes.sum()), 3)).astype(np.float32)
    features[random.random(features.shape) < 0.1] = np.nan
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        for matrix in (features, np.asfortranarray(features), np.repeat(features, 2, 0)[::2]):
            data = Dataset.from_arrays(matrix, labels=np.zeros(len(matrix)), group=sizes)
            results.append(data.normalize("z-score"))
    for result in results[1:]:
        assert_same(result, results[0])


def test_unknown_method() -> None:
    data = Dataset.from_arrays([[1.0]], labels=[0], group=[1])
    with pytest.raises(ArgumentError, match="unknown normalization 'rank'"):
        data.normalize("rank")  # type: ignore[arg-type]

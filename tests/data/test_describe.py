"""Descriptions of data sets, whole or in blocks, against counting in plain Python."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset
from podium.data.description import describe
from podium.data.labels import label_kind
from podium.data.stream import widen
from podium.errors import DataError
from tests.data.strategies import datasets


@settings(max_examples=60)
@given(datasets(named=True))
def test_counts(data: Dataset) -> None:
    summary = describe(data)
    assert (summary.queries, summary.rows) == (len(data), data.rows)
    assert summary.label_counts == Counter(data.labels.tolist())
    assert list(summary.label_counts) == sorted(summary.label_counts)
    assert summary.sizes.tolist() == data.sizes.tolist()
    assert summary.blank_queries == sum(len(set(query.labels.tolist())) == 1 for query in data)
    assert summary.label_kind == label_kind(data.labels, data.offsets)
    assert summary.feature_names == data.feature_names
    assert summary.has_document_ids == (data.document_ids is not None)
    constant = 0
    for column, values in enumerate(data.features.T):
        known = values[~np.isnan(values)]
        assert summary.missing[column] == len(values) - len(known)
        constant += len(set(known.tolist())) < 2
        if len(known):
            assert (summary.lowest[column], summary.highest[column]) == (known.min(), known.max())
        else:
            assert np.isnan([summary.lowest[column], summary.highest[column]]).all()
    assert summary.constant_features == constant


def test_a_negative_zero_is_a_zero() -> None:
    features = [[-0.0, -0.0], [-0.0, -1.0]]
    blocks = [Dataset.from_arrays(features, [-0.0, 1.0], qid=["a", "a"])]
    blocks.append(Dataset.from_arrays(features, [0.0, -0.0], qid=["b", "b"]))
    for part in (blocks, blocks[::-1], blocks[0]):
        summary = describe(part)
        assert [str(label) for label in summary.label_counts] == ["0.0", "1.0"]
        assert [str(value) for value in summary.lowest.tolist()] == ["0.0", "-1.0"]
        assert [str(value) for value in summary.highest.tolist()] == ["0.0", "0.0"]
    assert describe(blocks).label_counts == {0.0: 3, 1.0: 1}


label_lists = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=5
) | st.lists(st.integers(1, 3).flatmap(lambda n: st.permutations(range(n, 0, -1))), min_size=1)


@given(label_lists, st.data())
def test_blocks_describe_as_the_whole(lists: list[list[int]], draw: st.DataObject) -> None:
    sizes = [len(each) for each in lists]
    labels = [label for each in lists for label in each]
    data = Dataset.from_arrays(
        np.arange(2 * len(labels)).reshape(-1, 2), labels=labels, group=sizes
    )
    cut = draw.draw(st.integers(0, len(data)))
    blocks = [data.select(np.arange(cut)), data.select(np.arange(cut, len(data)))]
    one, other = describe(iter(blocks)), describe(data)
    for name in ("queries", "rows", "label_kind", "label_counts", "blank_queries"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("sizes", "lowest", "highest", "missing"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_features_that_come_later_were_zero_before() -> None:
    narrow = Dataset.from_arrays([[5.0], [6.0]], labels=[0, 1], qid=["a", "b"])
    wide = Dataset.from_arrays([[7.0, -3.0, 2.0]], labels=[0], qid=["c"])
    summary = describe([narrow, wide])
    whole = describe([widen(narrow, wide.feature_names), wide])
    assert summary.lowest.tolist() == whole.lowest.tolist() == [5, -3, 0]
    assert summary.highest.tolist() == whole.highest.tolist() == [7, 0, 2]
    assert summary.feature_names == ("1", "2", "3")


def test_large_data_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_THREADS", "3")
    random = np.random.default_rng(8)
    rows = 40_000
    features = random.normal(size=(rows, 4)).astype(np.float32)
    data = Dataset.from_arrays(features, labels=np.arange(rows) % 3, group=[20] * (rows // 20))
    summary = describe(data)
    assert summary.lowest.tolist() == features.min(axis=0).tolist()
    assert summary.highest.tolist() == features.max(axis=0).tolist()


@pytest.mark.parametrize("nothing", [[], [Dataset.from_arrays(np.empty((0, 1)), [], qid=[])]])
def test_nothing_to_describe(nothing: list[Dataset]) -> None:
    with pytest.raises(DataError, match="no data to describe"):
        describe(nothing)

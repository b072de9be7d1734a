"""Streams of blocks: no query is split, none comes twice, blocks grow wider and are gathered."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Dataset, concat_datasets
from podium.data.stream import SeenQueries, merge_blocks, whole_queries, widen
from podium.errors import DataError
from tests.data.strategies import assert_same, datasets


def pieces(data: Dataset, cuts: list[int]) -> list[Dataset]:
    """A data set cut at rows, through queries too."""
    blocks_out = []
    queries = data.query_id_of_row()
    for begin, end in pairwise(cuts):
        rows = slice(begin, end)
        documents = None if data.document_ids is None else data.document_ids[rows]
        blocks_out.append(
            Dataset.from_arrays(
                data.features[rows],
                labels=data.labels[rows],
                qid=queries[rows],
                document_ids=documents,
            )
        )
    return blocks_out


@settings(max_examples=60)
@given(datasets(), st.data())
def test_queries_cut_by_blocks_are_joined(data: Dataset, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(0, data.rows))) | {0, data.rows})
    blocks = list(whole_queries(pieces(data, cuts), "file"))
    assert_same(concat_datasets(blocks), data)
    assert all(len(block) for block in blocks)


def test_a_query_that_comes_back_is_refused() -> None:
    blocks = [
        Dataset.from_arrays([[1.0]], labels=[1], qid=[query]) for query in ("a", "b", "c", "a")
    ]
    with pytest.raises(DataError, match="the rows of query 'a' are not contiguous") as caught:
        list(whole_queries(blocks, "train.txt"))
    assert caught.value.path == "train.txt"
    assert "--whole" in caught.value.hint


def test_blocks_never_become_narrower() -> None:
    widths = (1, 3, 2, 1)
    blocks = [
        Dataset.from_arrays(np.ones((2, width)), labels=[0, 1], qid=[f"{index}", f"{index}b"])
        for index, width in enumerate(widths)
    ]
    blocks_out = list(whole_queries(blocks, ""))
    assert [len(block.feature_names) for block in blocks_out] == sorted(
        len(block.feature_names) for block in blocks_out
    )
    assert blocks_out[-1].features.tolist() == [[1, 0, 0]]


def test_a_query_cut_where_features_appear_gets_them_all() -> None:
    blocks = [
        Dataset.from_arrays([[1.0]], labels=[0], qid=["a"]),
        Dataset.from_arrays([[2.0, 3.0]], labels=[1], qid=["a"], document_ids=["d"]),
    ]
    (blocks_out,) = whole_queries(blocks, "")
    assert blocks_out.features.tolist() == [[1, 0], [2, 3]]
    assert blocks_out.document_ids.to_pylist() == [None, "d"]


def test_widening_only_widens() -> None:
    data = Dataset.from_arrays([[1.0, 2.0]], labels=[0], qid=["a"])
    assert widen(data, ("1",)) is data
    assert widen(data, ("1", "2", "3")).features.tolist() == [[1, 2, 0]]


@given(st.lists(st.integers(1, 5), max_size=8), st.integers(1, 100))
def test_gathering_keeps_rows_and_fills_the_size(sizes: list[int], most: int) -> None:
    blocks = [
        Dataset.from_arrays(np.ones((size, 2)), labels=np.zeros(size), qid=[index] * size)
        for index, size in enumerate(sizes)
    ]
    blocks_out = list(merge_blocks(blocks, most))
    assert [query.id for block in blocks_out for query in block] == [
        str(index) for index in range(len(sizes))
    ]
    assert all(len(block) == 1 or block.features.nbytes <= most for block in blocks_out)
    assert all(
        block.features.nbytes + following.features[: following.sizes[0]].nbytes > most
        for block, following in pairwise(blocks_out)
    )


def test_gathering_leaves_empty_blocks_out() -> None:
    data = Dataset.from_arrays([[1], [2]], labels=[0, 1], qid=["a", "b"])
    nothing = data.select([])
    (blocks_out,) = merge_blocks([nothing, data, nothing], 1)
    assert_same(blocks_out, data)
    assert list(merge_blocks([nothing], 1)) == []


def test_gathering_keeps_widths_apart() -> None:
    blocks = [
        Dataset.from_arrays(np.ones((1, width)), labels=[0], qid=[str(index)])
        for index, width in enumerate((1, 1, 2))
    ]
    assert [len(block) for block in merge_blocks(blocks, 10**6)] == [2, 1]


@given(st.lists(st.lists(st.integers(0, 60))))
def test_seen_ids_are_remembered(batches: list[list[int]]) -> None:
    seen, remembered = SeenQueries(), set()
    for batch in batches:
        ids = [str(number) for number in batch]
        blocks_out = seen.add(pa.array(ids, pa.large_string()))
        again = [each for each in ids if each in remembered or ids.count(each) > 1]
        assert blocks_out == (again[0] if again else None)
        if again:
            break
        remembered.update(ids)

"""Rows in any order become contiguous queries: ids of every type, sizes, and what is refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.data import Dataset
from podium.data.grouping import as_strings, checked_offsets, group_rows, group_sizes
from podium.errors import ArgumentError, DataError
from tests.data.strategies import unicode_strings


def brute_force(ids: list[str]) -> tuple[list[str], list[int], list[int]]:
    """Query ids by first appearance, offsets, and the rows in their new order."""
    rows: dict[str, list[int]] = {}
    for row, query in enumerate(ids):
        rows.setdefault(query, []).append(row)
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in rows.values()]))).astype(int)
    return list(rows), offsets.tolist(), [row for each in rows.values() for row in each]


@given(st.lists(unicode_strings.map(lambda text: text[:1])))
def test_grouping_by_strings(ids: list[str]) -> None:
    grouping = group_rows(ids)
    queries, offsets, order = brute_force(ids)
    assert grouping.query_ids.to_pylist() == queries
    assert grouping.offsets.tolist() == offsets
    assert (list(range(len(ids))) if grouping.order is None else grouping.order.tolist()) == order
    # Rows are moved only where they must be.
    assert (grouping.order is None) == (order == sorted(order))


@given(st.lists(st.integers(-3, 3)), st.sampled_from(["list", "int64", "int8", "arrow", "float"]))
def test_grouping_by_numbers_is_grouping_by_their_text(ids: list[int], kind: str) -> None:
    given_ids = {
        "list": ids,
        "int64": np.array(ids, np.int64),
        "int8": np.array(ids, np.int8),
        "arrow": pa.chunked_array([pa.array(ids[:2], pa.int64()), pa.array(ids[2:], pa.int64())]),
        "float": np.array(ids, np.float64),
    }[kind]
    grouping, expected = group_rows(given_ids), group_rows([str(each) for each in ids])
    assert grouping.query_ids.equals(expected.query_ids)
    assert grouping.offsets.tolist() == expected.offsets.tolist()
    assert np.array_equal(grouping.order, expected.order)


@given(st.lists(unicode_strings))
def test_strings_stay_what_they_are(ids: list[str]) -> None:
    # NumPy would drop NUL characters at the end.
    assert as_strings(ids, "ids").to_pylist() == ids
    assert as_strings(np.array(ids, object), "ids").to_pylist() == ids
    assert as_strings(pa.array(ids, pa.string()).dictionary_encode(), "ids").to_pylist() == ids


@pytest.mark.parametrize(
    "ids",
    [
        [1.5],
        [np.nan],
        [1e300],
        np.array([0.1, 1.0]),
        ["a", 1],
        [["a"], ["b"]],
        np.zeros((2, 2), int),
        "ab",
        b"ab",
        ["\ud800"],
        [object()],
        7,
        np.array("ab"),
        [b"\xff"],
    ],
)
def test_what_is_no_list_of_ids_is_refused(ids: object) -> None:
    with pytest.raises(DataError, match=r"strings|one string"):
        as_strings(ids, "ids")


@pytest.mark.parametrize(
    "qid", ["ab", 5, [["a"], ["b"]], [["a"], ["b", "c"]], np.zeros((2, 1)), [None, "a"], ["a", 1]]
)
def test_what_is_no_column_of_query_ids_is_refused(qid: object) -> None:
    with pytest.raises(DataError):
        group_rows(qid)


def test_group_sizes() -> None:
    grouping = group_sizes([2, 1], 3, ["x", "y"])
    assert grouping.query_ids.to_pylist() == ["x", "y"]
    assert grouping.offsets.tolist() == [0, 2, 3]
    assert group_sizes(np.array([1, 1], np.uint8), 2, None).query_ids.to_pylist() == ["0", "1"]
    assert group_sizes([], 0, None).offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("sizes", "query_ids", "problem"),
    [
        ([2, 2], None, "sum to 4"),
        ([], None, "sum to 0"),
        ([3, 0], None, "group 1 has 0 rows"),
        ([4, -1], None, "group 1 has -1 rows"),
        ([1.0, 2.0], None, "not a list of integers"),
        ([[1, 2]], None, "not a list of integers"),
        ([1, 2], ["a"], "different query ids"),
        ([1, 2], ["a", "a"], "different query ids"),
        # Their sum is 3 modulo 2**64.
        ([2**62, 2**62, 2**62, 2**62, 3], None, "group sizes sum"),
    ],
)
def test_wrong_group_sizes(sizes: list, query_ids: list[str] | None, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        group_sizes(sizes, 3, query_ids)


def test_arrays_need_one_way_to_group() -> None:
    for ways, message in (
        ({}, "Give either qid= or group="),
        ({"qid": [1], "group": [1]}, "qid= and group= are both given"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Dataset.from_arrays([[1.0]], labels=[1], **ways)


@pytest.mark.parametrize(
    "offsets", [[], [1, 2], [0, 2, 1], [0, 1], [0.0, 3.0], [[0, 3]], 3, ["0", "3"]]
)
def test_wrong_offsets(offsets: object) -> None:
    with pytest.raises(DataError, match="do not divide 3 rows"):
        checked_offsets(offsets, 3)


def test_offsets_become_int64() -> None:
    grouping = checked_offsets(np.array([0, 3, 3], np.uint8), 3)
    assert grouping.dtype == np.int64

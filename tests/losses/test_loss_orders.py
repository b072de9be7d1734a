"""Selecting the first documents by a key, and the top k by label."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.losses.orders import first_rows, top_rows

SMALL = st.integers(-3, 3)


@given(rows=st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=40), data=st.data())
def test_first_rows_are_those_of_a_stable_sort(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(rows)))
    keys, ties = np.array(rows, np.float64).T.copy()
    indices = np.full(len(rows), -1, np.int64)
    first_rows(keys, ties, count, indices)
    expected = sorted(range(len(rows)), key=lambda row: (-keys[row], -ties[row], row))
    assert indices[:count].tolist() == expected[:count]


@given(labels=st.lists(SMALL, min_size=1, max_size=30), k=st.integers(1, 35))
def test_the_top_holds_all_that_tie_with_its_last_and_none_of_the_worst(
    labels: list[int], k: int
) -> None:
    indices = np.full(len(labels), -1, np.int64)
    count = top_rows(np.array(labels, np.float64), k, indices)
    rows = sorted(range(len(labels)), key=lambda row: (-labels[row], row))
    expected = [
        row
        for row in rows
        if labels[row] > min(labels) and sum(label > labels[row] for label in labels) < k
    ]
    assert indices[:count].tolist() == expected

"""Judgments, rankings and preferences: making them, and joining by id against dictionaries."""

import io
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data import Judgments, Rankings, read_run
from podium.data.ids import match_rows, query_keys
from podium.data.preferences import PreferenceLevels, Preferences
from podium.errors import DataError
from tests.data.strategies import judgments, preference_levels, rankings, unicode_strings

few = st.text("ab\x00é", max_size=3)
"""Ids from so small a set that tables share many."""


@settings(max_examples=60)
@given(rankings(ids=few) | rankings(), judgments(ids=few) | judgments())
def test_join_is_a_dictionary_look_up(run: Rankings, judged: Judgments) -> None:
    labels = {
        (query, document): label
        for query, document, label in zip(
            judged.query_id_of_row().to_pylist(),
            judged.document_ids.to_pylist(),
            judged.labels.tolist(),
            strict=True,
        )
    }
    listed: dict[str, list[tuple[str, float]]] = {}
    for query, document, score in zip(
        run.query_id_of_row().to_pylist(),
        run.document_ids.to_pylist(),
        run.scores.tolist(),
        strict=True,
    ):
        listed.setdefault(query, []).append((document, score))
    joined = run.join(judged)
    assert joined.query_ids.to_pylist() == judged.query_ids.to_pylist()
    assert len(joined.offsets) == len(judged) + 1
    for index, query in enumerate(judged.query_ids.to_pylist()):
        rows = slice(joined.offsets[index], joined.offsets[index + 1])
        expected = listed.get(query, [])
        assert joined.document_ids[rows].to_pylist() == [document for document, _ in expected]
        assert joined.scores[rows].tolist() == [score for _, score in expected]
        np.testing.assert_array_equal(
            joined.labels[rows],
            np.float32([labels.get((query, document), np.nan) for document, _ in expected]),
        )
    assert joined.dropped_queries == len(set(listed) - set(judged.query_ids.to_pylist()))
    assert np.array_equal(joined.judged_labels, judged.labels)
    assert np.array_equal(joined.judged_offsets, judged.offsets)


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    queries = draw(st.integers(0, 5))
    lists = st.lists(
        st.lists(few | unicode_strings, max_size=7), min_size=queries, max_size=queries
    )
    return draw(lists), draw(lists)


@given(two_tables(), st.integers(0, 3))
def test_matching_rows(tables: tuple[list[list[str]], list[list[str]]], skip: int) -> None:
    columns = []
    for lists in tables:
        flat = ["x"] * skip + [name for each in lists for name in each]
        ids = pa.array(flat, pa.large_string())[skip:]  # a slice: its bytes do not begin at 0
        columns += [ids, np.cumsum([0] + [len(each) for each in lists])]
    matches = match_rows(*columns)
    expected = []
    for ids, reference_ids, begin in zip(*tables, columns[3][:-1].tolist(), strict=True):
        first: dict[str, int] = {}
        for index, name in enumerate(reference_ids):
            first.setdefault(name, begin + index)
        expected += [first.get(name, -1) for name in ids]
    assert matches.tolist() == expected


def test_matching_many_rows_in_threads() -> None:
    random = np.random.default_rng(5)
    sizes = random.integers(0, 50, 600)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    ids, reference_ids = (
        [str(number) for number in random.integers(0, 60, offsets[-1])] for _ in range(2)
    )
    matches = match_rows(
        pa.array(ids, pa.large_string()),
        offsets,
        pa.array(reference_ids, pa.large_string()),
        offsets,
    )
    for begin, end in pairwise(offsets):
        for row in range(begin, end):
            block = reference_ids[begin:end]
            expected = begin + block.index(ids[row]) if ids[row] in block else -1
            assert matches[row] == expected


@given(st.lists(unicode_strings))
def test_keys_of_ids_are_fnv_1a(ids: list[str]) -> None:
    def fnv(text: bytes) -> int:
        value = 0xCBF29CE484222325
        for byte in text:
            value = (value ^ byte) * 0x100000001B3 % 2**64
        return value - 2**64 if value >= 2**63 else value

    matches = query_keys(pa.array(ids, pa.large_string()))
    assert matches.tolist() == [fnv(each.encode()) for each in ids]


@given(preference_levels(ids=few))
def test_pairs_of_levels(levels: PreferenceLevels) -> None:
    rows = list(
        zip(
            levels.query_id_of_row().to_pylist(),
            levels.groups.to_pylist(),
            levels.subgroups.to_pylist(),
            levels.document_ids.to_pylist(),
            levels.levels.tolist(),
            strict=True,
        )
    )
    expected = sorted(
        (one[0], one[3], other[3])
        for one in rows
        for other in rows
        if one[:3] == other[:3] and one[4] > other[4]
    )
    pairs = levels.pairs()
    matches = zip(
        pairs.query_id_of_row().to_pylist(),
        pairs.left.to_pylist(),
        pairs.right.to_pylist(),
        strict=True,
    )
    assert sorted(matches) == expected
    assert pairs.verdicts.tolist() == [1] * len(expected)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Judgments.from_columns(["q"], ["a"], [np.nan]), "labels of row 0 is nan"),
        (lambda: Judgments.from_columns(["q"], ["a"], [1e39]), "labels of row 0 is inf"),
        (lambda: Judgments.from_columns(["q"], ["a"], ["x"]), "labels are not numbers"),
        (lambda: Judgments.from_columns(["q"], ["a"], [[1]]), "labels have 2 dimensions"),
        (lambda: Judgments.from_columns(["q"], ["a"], 1), "labels have 0 dimensions"),
        (lambda: Judgments.from_columns(["q"], ["a"], [1, 2]), "2 labels for 1 rows"),
        (lambda: Judgments.from_columns(["q"], [None], [1]), "a document id is missing"),
        (lambda: Judgments.from_columns([None], ["a"], [1]), "qid has missing values"),
        (
            lambda: Judgments.from_columns(["q", "p", "q"], ["a", "a", "a"], [1, 2, 3]),
            "document 'a' is listed twice in query 'q'",
        ),
        (lambda: Rankings.from_columns(["q"], ["a"], [np.inf]), "scores of row 0 is inf"),
        (
            lambda: Rankings.from_columns(["q"] * 2, ["", ""], [1, 2]),
            "document '' is listed twice in query 'q'",
        ),
        (lambda: Preferences.from_columns(["q"], ["a"], ["b"], [2]), "not -1, 0 or 1"),
        (lambda: Preferences.from_columns(["q"], ["a"], ["b"], [np.nan]), "not -1, 0 or 1"),
        (lambda: Preferences.from_columns(["q"], ["a"], ["b"], ["1"]), "not -1, 0 or 1"),
        (lambda: Preferences.from_columns(["q"], ["a"], ["b"], [[1]]), "not -1, 0 or 1"),
        (lambda: Preferences.from_columns(["q"], ["a"], ["a"], [1]), "compared with itself"),
        (lambda: Preferences.from_columns(["q"], [None], ["a"], [1]), "left documents have miss"),
        (
            lambda: PreferenceLevels.from_columns(["q"], ["g"], ["s"], ["a"], [np.nan]),
            "levels of row 0 is nan",
        ),
        (
            lambda: PreferenceLevels.from_columns(["q"], [None], ["s"], ["a"], [1]),
            "groups have missing values",
        ),
    ],
)
def test_columns_that_make_no_table(make, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        make()


def test_rows_of_a_query_are_brought_together() -> None:
    matches = Rankings.from_columns(["q", "p", "q"], ["a", "a", "b"], [1, 2, 3], name="x")
    assert matches.query_ids.to_pylist() == ["q", "p"]
    assert matches.document_ids.to_pylist() == ["a", "b", "a"]
    assert matches.scores.tolist() == [1, 3, 2]
    assert repr(matches) == "Rankings(2 queries, 3 rows)"


def test_tables_without_rows() -> None:
    run = Rankings.from_columns([], [], [])
    judged = Judgments.from_columns([], [], [])
    some = Judgments.from_columns(["q"], ["d"], [1])
    assert run.join(some).offsets.tolist() == [0, 0]
    assert run.join(judged).labels.tolist() == []
    assert Rankings.from_columns(["q"], ["d"], [1]).join(judged).dropped_queries == 1
    assert PreferenceLevels.from_columns([], [], [], [], []).pairs().rows == 0


def test_integers_that_would_be_tied_as_floats_are_refused() -> None:
    columns = ["q", "q"], ["a", "b"]
    with pytest.raises(DataError, match=f"score {2**53 + 1} of row 1"):
        Rankings.from_columns(*columns, [2**53, 2**53 + 1])
    with pytest.raises(DataError, match=f"score -{2**60 + 1} of row 0"):
        Rankings.from_columns(*columns, np.array([-(2**60) - 1, 0]))
    exact = Rankings.from_columns(*columns, [2**60, 2**53 - 1])
    assert exact.scores.tolist() == [float(2**60), float(2**53 - 1)]


ranked = st.tuples(st.sampled_from("pq"), st.integers(0, 3), st.integers(0, 3))


@given(st.lists(ranked, min_size=1, max_size=8))
def test_queries_are_contradicted_if_a_worse_rank_has_the_larger_score(
    rows: list[tuple[str, int, int]],
) -> None:
    queries, ranks, scores = zip(*rows, strict=True)
    names = [str(row) for row in range(len(rows))]
    run = Rankings.from_columns(queries, names, scores, ranks=np.array(ranks, np.float64))
    expected = {
        query
        for query, rank, score in rows
        for other, other_rank, other_score in rows
        if query == other and rank > other_rank and score > other_score
    }
    found = [] if run.contradicted is None else run.contradicted.to_pylist()
    assert sorted(found) == sorted(expected)


def test_ranks_of_a_file_are_compared_whatever_their_order_and_ignored_if_not_numbers() -> None:
    lines = [b"q Q0 a 2 1 x", b"q Q0 b 10 3 x", b"p Q0 a 1 2 x", b"p Q0 b 02 1 x"]
    for kept, expected in ((lines, ["q"]), (lines[::-1], ["q"]), (lines[2:], None)):
        run = read_run(io.BytesIO(b"\n".join(kept) + b"\n"))
        assert (run.contradicted and run.contradicted.to_pylist()) == expected
    other = b"\n".join(lines).replace(b" 02 ", b" 2nd ") + b"\n"
    assert read_run(io.BytesIO(other)).contradicted is None
    endless = b"q Q0 a %d 3.0 x\nq Q0 b 1 2.0 x\n" % (2**64 + 5)  # no rank: 5, if it overflowed
    assert read_run(io.BytesIO(endless)).contradicted is None

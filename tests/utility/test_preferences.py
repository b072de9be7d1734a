"""Preferences from arrays, from judging logs and from JSONL; what is hostile is refused."""

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import DataError
from podium.judging import SideBySide
from podium.judging.entries import Undo
from podium.utility import DCGLearn, RankingPreferences, simulated_choices, write_preferences
from podium.utility.learned_utility import read_learned, write_learned
from podium.utility.preferences_file import read_preferences, read_records
from tests.utility.people import preferences, random_pairs


@given(preferences())
def test_what_is_written_is_read_again(pairs: RankingPreferences) -> None:
    write_preferences(pairs, file := io.BytesIO())
    again = read_preferences(io.BytesIO(file.getvalue()), grades=pairs.grades, depth=pairs.depth)
    for name in ("left", "right", "choices", "pair_weights", "queries"):
        assert np.array_equal(getattr(again, name), getattr(pairs, name))


@given(preferences())
def test_leads_are_sums_over_positions(pairs: RankingPreferences) -> None:
    table = np.random.default_rng(0).normal(size=(pairs.depth, pairs.grades))
    expected = [
        sum(table[k, one[k]] - table[k, other[k]] for k in range(pairs.depth))
        for one, other in zip(pairs.left, pairs.right, strict=True)
    ]
    assert pairs.leads(table) == pytest.approx(np.array(expected), abs=1e-12)


def test_short_rankings_end_with_the_lowest_grade() -> None:
    pairs = RankingPreferences.from_arrays([[2], [1, 1, 1]], [[1, 1], [0]], [1, 1], depth=2)
    assert pairs.left.tolist() == [[2, 0], [1, 1]]
    assert pairs.right.tolist() == [[1, 1], [0, 0]]


def test_verdicts_that_were_taken_back_do_not_count() -> None:
    log = [SideBySide("a", "b", 2), SideBySide("b", "a", 1), Undo(0)]
    pairs = RankingPreferences.from_verdicts(
        log, {"a": [1, 0], "b": [0, 1]}, queries={"a": "q", "b": "q"}
    )
    assert (pairs.left.tolist(), pairs.choices.tolist()) == ([[0, 1]], [1])
    with pytest.raises(DataError, match="'b' is not known"):
        RankingPreferences.from_verdicts(log, {"a": [1, 0]})
    with pytest.raises(DataError, match="no side-by-side verdict"):
        RankingPreferences.from_verdicts([*log, Undo(1)], {"a": [1, 0], "b": [0, 1]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left": [[1]], "right": [[0], [0]]}, "1 left and 2 right"),
        ({"left": [[-1]], "right": [[0]]}, "left ranking has -1|np.int64\\(-1\\)"),
        ({"left": [[300]], "right": [[0]]}, "300"),
        ({"left": [[1.5]], "right": [[0]]}, "1.5"),
        ({"left": [["a"]], "right": [[0]]}, "for a grade"),
        ({"left": [[[1]]], "right": [[0]]}, "is not a list"),
        ({"left": np.zeros((1, 1)), "right": [[0]]}, "dimensions of float64"),
        ({"left": [[]], "right": [[]]}, "0 positions"),
        ({"left": [[1]], "right": [[0]], "depth": 0}, "0 positions"),
        ({"left": [[1]], "right": [[0]], "choices": [3]}, "values outside"),
        ({"left": [[1]], "right": [[0]], "choices": [0.5]}, "values outside"),
        ({"left": [[1]], "right": [[0]], "choices": [1, 1]}, "shape"),
        ({"left": [[1]], "right": [[0]], "choices": ["x"]}, "not numbers"),
        ({"left": [[1]], "right": [[0]], "pair_weights": [-1]}, "weight is negative"),
        ({"left": [[1]], "right": [[0]], "pair_weights": [np.nan]}, "weight is negative"),
        ({"left": [[1]], "right": [[0]], "queries": ["a", "b"]}, "2 queries for 1 pairs"),
        ({"left": [[2]], "right": [[0]], "grades": 2}, "a grade is 2"),
        ({"left": [[1]], "right": [[0]], "grades": 1}, "there are 1 grades"),
    ],
)
def test_bad_arrays_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        RankingPreferences.from_arrays(**arguments)


GOOD = b'{"left": [1, 0], "right": [0, 1], "choice": 1}\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "is not a JSON object"),
        (b"\xff\xfe", "UTF-"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"left": [1], "right": [0]}', "has no choice"),
        (b'{"left": [1], "choice": 1}', "right is not a list"),
        (b'{"left": [], "right": [0], "choice": 1}', "left is not a list"),
        (b'{"left": [true], "right": [0], "choice": 1}', "left has True"),
        (b'{"left": [1e2], "right": [0], "choice": 1}', "left has 100.0"),
        (b'{"left": [256], "right": [0], "choice": 1}', "left has 256"),
        (b'{"left": [1], "right": [0], "choice": 3}', "choice is 3"),
        (b'{"left": [1], "right": [0], "choice": "1"}', "choice is '1'"),
        (b'{"left": [1], "right": [0], "choice": 1, "weight": -1}', "weight is -1"),
        (b'{"left": [1], "right": [0], "choice": 1, "weight": NaN}', "weight is nan"),
        (b'{"left": [1], "right": [0], "choice": 1, "weight": 1e999}', "weight is inf"),
        (b'{"left": [1], "right": [0], "choice": 1, "query_id": 7}', "query_id is 7"),
        (b'{"left": [1], "right": [0], "choice": 1, "lefft": 7}', "a key 'lefft'"),
        (b'{"left": [%s], "right": [0], "choice": 1}' % b",".join([b"1"] * 1001), "1 to 1000"),
    ],
)
def test_hostile_lines_are_refused_by_their_number(
    tmp_path: Path, line: bytes, message: str
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(GOOD + line + b"\n")
    with pytest.raises(DataError, match=message) as caught:
        read_preferences(path)
    assert caught.value.path == str(path)
    assert caught.value.line == 2
    assert caught.value.hint


def test_a_pool_has_no_choices_and_no_file_is_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has a choice"):
        list(read_records(io.BytesIO(GOOD), judged=False))
    (tmp_path / "empty.jsonl").write_bytes(b"\n\n")
    with pytest.raises(DataError, match="has no pairs"):
        read_preferences(tmp_path / "empty.jsonl")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for read in (read_preferences, read_learned):
        with suppress(DataError):
            read(io.BytesIO(content))


def test_a_learned_utility_is_read_again(tmp_path: Path) -> None:
    pairs = random_pairs(100)
    pairs = pairs.with_choices(np.sign(pairs.leads(np.outer([4, 3, 2, 1], [0, 1, 3]))))
    learned = DCGLearn(1.0, normalized=True).fit(pairs).learned_
    write_learned(learned, tmp_path / "learned.json")
    again = read_learned(tmp_path / "learned.json")
    assert again.measure == learned.measure
    assert again.loss == learned.loss
    assert np.array_equal(again.table, learned.table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "not a learned utility"),
        ('{"podium": "utility", "version": 2}', "version 2"),
        ('{"podium": "utility", "version": 1}', "has no 'C'"),
        ("nonsense", "not JSON"),
    ],
)
def test_files_that_hold_no_utility_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "learned.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_learned(tmp_path / "learned.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("table", [[0, 1], [0]]),
        ("table", [[0, "x"]]),
        ("gains", [0]),
        ("gains", [0, None]),
        ("form", "rank-two"),
        ("C", "high"),
        ("objective", 1e999),
    ],
)
def test_a_utility_that_does_not_fit_is_refused(tmp_path: Path, key: str, value: object) -> None:
    import json

    pairs = RankingPreferences.from_arrays([[1, 0], [0, 1]], [[0, 1], [0, 0]], [1, 1])
    write_learned(DCGLearn(1.0).fit(pairs).learned_, path := tmp_path / "learned.json")
    content = json.loads(path.read_text()) | {key: value}
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="is not a learned utility"):
        read_learned(path)


def test_simulated_people_err_as_often_as_the_logistic_curve_says() -> None:
    pairs = RankingPreferences.from_arrays([[1]] * 20_000, [[0]] * 20_000)
    choices = simulated_choices(pairs, np.array([[0.0, 1.0]]), noise=1.0, random_state=1)
    assert np.mean(choices < 0) == pytest.approx(1 / (1 + np.exp(1.0)), abs=0.01)


def test_pairs_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match="utilities have shape"):
        random_pairs(3).leads(np.zeros((2, 2)))
    with pytest.raises(DataError, match="differ in depth or grades"):
        random_pairs(3).joined(random_pairs(3, depth=5))

"""Log entries: what stands, and JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import DataError
from podium.judging import Grade, Mark, Outcome, Session, SideBySide, Verdict
from podium.judging.algorithms import ALGORITHMS, CAREFUL
from podium.judging.algorithms.selection import drive_selection, run_selection
from podium.judging.entries import (
    Undo,
    active_entries,
    entry_from_json,
    entry_to_json,
    seconds_spent,
)

NAMES = st.text(min_size=1, max_size=5)
TIMES = st.floats(0, 1e9)
WHO = {"assessor": NAMES, "at": TIMES, "seconds": TIMES}
ENTRIES = st.one_of(
    st.builds(
        lambda pair, outcome, **who: Verdict(*pair, outcome, **who),  # type: ignore[call-arg]
        st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] != pair[1]),
        st.sampled_from(Outcome),
        **WHO,
    ),
    st.builds(Mark, NAMES, **WHO),
    st.builds(Grade, NAMES, st.integers(0, 4), **WHO),
    st.builds(SideBySide, st.just("old"), st.just("new"), st.integers(-2, 2), **WHO),
    st.builds(Undo, st.integers(0, 99), **WHO),
)


@pytest.mark.parametrize("value", [1, 0, -1, 1.0, np.int64(-1), np.int8(0)])
def test_a_number_becomes_the_outcome_that_it_stands_for(value):
    verdict = Verdict("a", "b", value)
    assert verdict.outcome is Outcome(int(value))
    assert verdict == Verdict("a", "b", Outcome(int(value)))


@pytest.mark.parametrize("value", [2, -2, True, False, 0.5, float("nan"), "1", None, [1]])
def test_what_is_no_outcome_is_refused(value):
    with pytest.raises(DataError, match=r"outcome is .*1 is left, -1 right, 0 a tie"):
        Verdict("a", "b", value)


@pytest.mark.parametrize("name", [*ALGORITHMS, CAREFUL])
def test_numbers_and_outcomes_lead_every_algorithm_the_same_way(name):
    logs = []
    for made in (int, Outcome):
        session = Session([f"d{n}" for n in range(9)], 3, algorithm=name, budget=20)
        while not session.done:
            left, right = session.open_pairs()[0]
            session.add(Verdict(left, right, made((left < right) - (left > right))))
        logs.append((session.log, session.result()))
    assert logs[0] == logs[1]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_judge_may_answer_with_numbers(name):
    worth = [3, 1, 4, 1, 5, 9, 2, 6]

    def judge(left, right):
        return (worth[left] > worth[right]) - (worth[left] < worth[right])

    selected = run_selection(ALGORITHMS[name], len(worth), 3, judge)
    assert selected == run_selection(
        ALGORITHMS[name], len(worth), 3, lambda *pair: Outcome(judge(*pair))
    )
    assert [worth[item] for item in selected.top] == [9, 6, 5]
    selection = ALGORITHMS[name](range(len(worth)), 3)
    assert (
        drive_selection(selection, judge)[0] == selected.top
    )  # numbers sent straight to an algorithm


@given(ENTRIES)
def test_an_entry_comes_back_from_json(entry):
    assert entry_from_json(json.loads(json.dumps(entry_to_json(entry)))) == entry


@given(st.lists(st.integers(0, 30), max_size=12))
def test_an_entry_stands_unless_an_undo_that_stands_names_it(targets):
    # Every second entry is a mark, the others are undos of some earlier entry.
    log = []
    for target in targets:
        log.append(Mark(f"d{len(log)}"))
        log.append(Undo(target % len(log)))

    def stands(index):
        return not any(
            isinstance(later, Undo) and later.entry == index and stands(index + 1 + distance)
            for distance, later in enumerate(log[index + 1 :])
        )

    marks = [index for index in range(len(log)) if isinstance(log[index], Mark)]
    assert active_entries(log) == [index for index in marks if stands(index)]


def test_time_taken_back_was_spent_all_the_same():
    log = [
        Mark("a", "ann", seconds=2.0),
        Undo(0, "ann", seconds=0.5),
        Mark("b", "bob", seconds=4.0),
    ]
    assert seconds_spent(log) == 2.0 + 0.5 + 4.0
    assert seconds_spent(log, ["ann"]) == 2.0 + 0.5


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"kind": "vote"}, "not a valid kind of entry"),
        ({"kind": ["verdict"]}, "not a valid kind of entry"),
        ({}, "not a valid kind of entry"),
        ({"kind": "verdict", "left": "a", "right": "b"}, "has no 'outcome'"),
        ({"kind": "verdict", "left": "a", "right": "b", "outcome": 2}, "outcome is 2"),
        ({"kind": "verdict", "left": "a", "right": "a", "outcome": 1}, "with itself"),
        ({"kind": "verdict", "left": 1, "right": "b", "outcome": 1}, "'left' of a verdict is 1"),
        ({"kind": "bad", "item": "a", "color": "red"}, "has no 'color'"),
        ({"kind": "bad", "item": "a", "at": True}, "'at' of a bad is True"),
        ({"kind": "grade", "item": "a", "grade": 10}, "is not a valid grade"),
        ({"kind": "side-by-side", "left": "a", "right": "b", "choice": 3}, "two rankings"),
        (
            {"kind": "side-by-side", "left": "a", "right": "a", "choice": 1},
            "is compared with itself",
        ),
    ],
)
def test_what_is_no_entry_is_refused(values, problem):
    with pytest.raises(DataError, match=problem):
        entry_from_json(values)

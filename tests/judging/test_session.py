"""Sessions: the log is the whole state."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.data.labels import label_kind
from podium.errors import ArgumentError, DataError, PodiumError
from podium.judging import (
    Grade,
    Mark,
    Outcome,
    Overlap,
    Session,
    SideBySide,
    Verdict,
    log_preferences,
    session_judgments,
)
from podium.judging.algorithms import ALGORITHMS
from podium.judging.entries import Undo, active_entries, majority
from tests.judging.histories import random_entry, random_session, replayed, state

LEFT, TIE, RIGHT = Outcome.LEFT, Outcome.TIE, Outcome.RIGHT


def letters(count):
    return [chr(ord("a") + number) for number in range(count)]


def judge_all(session, outcome=lambda left, right: LEFT if left < right else RIGHT):
    """Answer every open pair as ``outcome`` says; by default a is best, then b, …"""
    while not session.done:
        for left, right in session.open_pairs():
            session.add(Verdict(left, right, outcome(left, right)))
    return session


def check_history(seed):
    """At any point of a history its log gives the same again, and so do a reordered log and one
    without what was taken back.
    """
    random = Random(seed)
    session = random_session(random)
    steps = random.randint(1, 25)
    looks = {random.randint(1, steps), steps}
    for step in range(1, steps + 1):
        session.add(random_entry(random, session))
        if step in looks:
            assert state(session) == state(replayed(session, session.log))
    standing_alone = [session.log[index] for index in active_entries(session.log)]
    assert state(session) == state(replayed(session, standing_alone))  # what is undone never was
    latest = {}  # the last word of each person on each pair, and the marks, undos left out
    for entry in session.log:
        if isinstance(entry, Verdict):
            latest[entry.assessor, frozenset((entry.left, entry.right))] = entry
        elif isinstance(entry, Grade):
            latest[entry.assessor, entry.item] = entry
        elif isinstance(entry, Mark):
            latest[entry] = entry
    log = list(latest.values())
    expected = state(replayed(session, log))
    random.shuffle(log)
    one_by_one = replayed(session, [])
    for entry in log:
        one_by_one.add(entry)
        if random.random() < 0.3:
            one_by_one.open_pairs()  # moves the algorithm on
    assert state(one_by_one) == expected
    if random.random() < 0.2:
        assert one_by_one.estimate() == replayed(session, log).estimate()


@given(st.integers(0, 2**32))
@settings(max_examples=200)
def test_replay_undo_and_any_order_of_arrival_give_the_same_state(seed):
    check_history(seed)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.no_cover  # covered by the test above; counting lines takes four times as long
@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_histories(part):
    for seed in range(part * 2500, (part + 1) * 2500):
        check_history(f"history {seed}")


@pytest.mark.parametrize("name", ALGORITHMS)
@given(worth=st.lists(st.integers(0, 9), min_size=1, max_size=15), data=st.data())
def test_many_people_with_ties_find_the_true_top_k(name, worth, data):
    relevance = {f"d{number}": value for number, value in enumerate(worth)}
    k = data.draw(st.integers(1, 15))
    session = Session(list(relevance), k, algorithm=name, random_state=data.draw(st.integers(0, 5)))
    random = data.draw(st.randoms())
    while not session.done:  # each takes any open pair and answers in any order
        for left, right in random.sample(pairs := session.open_pairs(), len(pairs)):
            outcome = Outcome(
                (relevance[left] > relevance[right]) - (relevance[left] < relevance[right])
            )
            session.add(Verdict(left, right, outcome, random.choice("xyz")))
    result = session.result()
    assert result.complete
    assert [relevance[item] for item in result.top] == sorted(worth, reverse=True)[:k]
    assert session.contradictions() == []
    # With ties kept, labels say exactly what the worths say about any two labeled items.
    labels = dict(zip(relevance, result.labels(list(relevance), ties=True).tolist(), strict=True))
    labeled = [item for item in relevance if labels[item] > 0]
    for one in labeled:
        for other in labeled:
            assert (labels[one] > labels[other]) == (relevance[one] > relevance[other])


def test_strict_verdicts_are_not_asked_again_when_they_are_implied():
    session = Session(["c", "a", "b"], 3, algorithm="insertion", ordered=True)
    session.add(Verdict("a", "b", LEFT))
    session.add(Verdict("b", "c", LEFT))
    assert session.done
    assert session.result().top == ("a", "b", "c")
    assert session.outcome("c", "a") is RIGHT


def test_ties_imply_nothing():
    session = Session(["a", "b", "c"], 3, algorithm="insertion", ordered=True)
    session.add(Verdict("a", "b", TIE))
    session.add(Verdict("b", "c", TIE))
    assert session.outcome("a", "c") is None
    session.add(Verdict("b", "c", LEFT, "someone else"))
    session.add(Verdict("b", "c", LEFT, "a third"))
    assert session.outcome("b", "c") is LEFT
    assert session.outcome("a", "c") is None


def test_a_bad_item_is_out_at_once_and_back_when_the_mark_is_undone():
    items = letters(6)
    session = Session(items, 3, algorithm="tournament")
    mark = session.add(Mark("a"))
    assert all("a" not in pair for pair in session.open_pairs())
    judge_all(session)
    assert session.bad == ("a",)
    assert session.result().top == ("b", "c", "d")
    assert session.outcome("f", "a") is LEFT
    session.add(Undo(mark))
    assert not session.done
    assert judge_all(session).result().top == ("a", "b", "c")


def test_bad_items_leave_the_top_k_short():
    session = Session(letters(3), 3)
    session.add(Mark("b"))
    session.add(Mark("c"))
    assert session.result().top == ("a",)
    assert session.result().labels(letters(3)).tolist() == [3, 0, 0]


def test_undo_takes_back_the_last_word_of_a_person():
    session = Session(letters(4), 2)
    pair = session.open_pairs()[0]
    assert session.undo("ann") is None
    session.add(Verdict(*pair, LEFT, "ann"))
    session.add(Mark("d", "bob"))
    assert session.undo("ann", at=5.0) == Undo(0, "ann", 5.0)
    assert session.outcome(*pair) is None or "d" in pair
    assert session.undo() == Undo(1, "", 0.0)
    assert session.undo() is None
    assert len(session.log) == 4
    assert state(session) == state(replayed(session, []))


def test_a_person_may_change_their_mind_and_others_outvote_them():
    session = Session(["a", "b"], 1)
    session.add(Verdict("a", "b", LEFT, "ann"))
    assert session.result().top == ("a",)
    session.add(Verdict("b", "a", LEFT, "ann"))
    assert session.result().top == ("b",)
    session.add(Verdict("a", "b", LEFT, "bob"))
    assert session.outcome("a", "b") is TIE
    session.add(Verdict("a", "b", LEFT, "cem"))
    assert session.outcome("a", "b") is LEFT


@given(st.lists(st.sampled_from(Outcome), min_size=1))
def test_majority(outcomes):
    counts = {outcome: outcomes.count(outcome) for outcome in Outcome}
    outcome = majority(outcomes)
    if counts[outcome] < max(counts.values()):  # only where the two sides are equally strong
        assert outcome is TIE
        assert counts[LEFT] == counts[RIGHT]
    assert majority([outcome.flipped for outcome in outcomes]) is outcome.flipped


def test_overlapping_pairs_wait_for_all_their_assessors():
    session = Session(["a", "b"], 1, overlap=Overlap(1.0, assessors=3))
    for assessor, outcome in zip(["ann", "bob", "cem"], [LEFT, RIGHT, LEFT], strict=True):
        assert session.open_pairs(assessor) == session.open_pairs() != []
        session.add(Verdict("a", "b", outcome, assessor))
        assert session.open_pairs(assessor) == []
    assert session.done
    assert session.result().top == ("a",)


def test_overlap_is_a_sample_of_the_pairs():
    overlap = Overlap(0.25, assessors=2, random_state=3)
    needed = [overlap.needed(f"d{n}", f"e{n}") for n in range(4000)]
    assert needed == [overlap.needed(f"e{n}", f"d{n}") for n in range(4000)]
    share = np.mean(np.array(needed) == 2)
    assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    with pytest.raises(ArgumentError, match="share"):
        Overlap(1.5)
    with pytest.raises(ArgumentError, match="assessors"):
        Overlap(0.5, assessors=0)


def test_a_loop_is_reported_with_the_pair_to_ask_again():
    session = Session(letters(5), 5)
    for better, worse in ["ab", "bc", "cd", "da", "ac"]:
        session.add(Verdict(better, worse, LEFT))
    (contradiction,) = session.contradictions()
    assert contradiction.items == ("a", "b", "c", "d")
    assert contradiction.loop == ("a", "c", "d")
    assert set(contradiction.ask_again) == {
        "c",
        "d",
    }  # without it, or without da, nothing goes round
    session.add(Verdict("d", "c", LEFT))
    assert session.contradictions() == []


def test_sides_are_drawn_and_stay_where_they_are():
    session = Session([f"d{n}" for n in range(400)], 10, algorithm="tournament", ordered=True)
    pairs = session.open_pairs()
    assert pairs == replayed(session, []).open_pairs()
    first_left = np.mean([int(left[1:]) < int(right[1:]) for left, right in pairs])
    assert 0.35 < first_left < 0.65


def test_expected_left_falls_to_zero_and_starts_near_the_truth():
    counts, forecasts = [], []
    for seed in range(30):
        session = Session([f"d{n:02d}" for n in range(40)], 5, random_state=seed)
        forecasts.append(session.expected_left())
        judge_all(session)
        counts.append(len(session.log))
        assert session.expected_left() == 0
    assert np.mean(forecasts) == pytest.approx(np.mean(counts), rel=0.05)


def test_expected_left_learns_that_a_prior_is_right():
    items = [f"d{n:02d}" for n in range(40)]
    session = Session(items, 5, ordered=True)
    before = session.expected_left()
    while len(session.log) < 25:
        left, right = session.open_pairs()[0]
        session.add(Verdict(left, right, LEFT if left < right else RIGHT))
    assert session.expected_left() == pytest.approx(39 - 25, abs=4)
    assert before > 45


def test_the_result_so_far_is_the_best_guess():
    session = Session(letters(4), 2, ordered=True)
    assert not session.result().complete
    assert session.result().top == ("a", "b")  # nothing is known but the prior
    session.add(Verdict("d", "c", LEFT))
    session.add(Verdict("c", "b", LEFT))
    assert session.result().top == ("a", "d")  # the prior's best, and who beat two others


def test_results_and_logs_become_data():
    session = judge_all(Session(letters(5), 3))
    judgments = session_judgments({"q1": session})
    assert label_kind(judgments.labels, judgments.offsets) == "top-k order"
    assert dict(zip(judgments.document_ids.to_pylist(), judgments.labels, strict=True)) == {
        "a": 3,
        "b": 2,
        "c": 1,
        "d": 0,
        "e": 0,
    }
    session.undo()
    preferences = log_preferences({"q1": session.log})
    assert preferences.rows == len(session.log) - 2  # the undo, and what it took back
    with pytest.raises(DataError, match="no sessions"):
        session_judgments({})
    with pytest.raises(DataError, match="no verdict"):
        log_preferences({"q1": [Mark("a")]})


def test_queries_of_which_nothing_was_judged_have_no_labels():
    """A prior ranking and what was taken back do not count as judgments; a mark does."""
    untouched = Session(letters(3), 2, ordered=True)
    taken_back = Session(letters(3), 2, ordered=True, log=[Verdict("a", "b", LEFT), Undo(0)])
    rankings = Session(letters(3), 2, ordered=True, log=[SideBySide("old", "new", 1)])
    with pytest.raises(DataError, match="nothing has been judged yet"):
        session_judgments({"q1": untouched, "q2": taken_back, "q3": rankings})
    judged = {
        "verdict": Session(letters(3), 2, log=[Verdict("a", "b", LEFT)]),
        "mark": Session(letters(3), 2, log=[Mark("a")]),
        "grade": Session(letters(3), 2, log=[Grade("a", 2)]),
        "alone": Session(["a"], 2),  # nothing can be asked
    }
    judgments = session_judgments({"q1": untouched, **judged})
    assert judgments.query_ids.to_pylist() == list(judged)


def test_grades_and_rankings_may_share_the_log():
    session = Session(letters(3), 1)
    before = state(session)
    for letter in letters(3):  # equal grades: nothing separates them
        session.add(Grade(letter, 4))
    session.add(SideBySide("old", "new", 2))
    assert state(session) == before
    assert len(session.log) == 4


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Session([]), "items are missing"),
        (lambda: Session(["a", "a"]), "repeated"),
        (lambda: Session(["a"], 0), "k is 0"),
        (lambda: Session(["a"], algorithm="guess"), "no algorithm"),
        (lambda: Session(["a", "b"]).add(Verdict("a", "x", LEFT)), "'x' is not an item"),
        (lambda: Session(["a"]).add(Mark("x")), "'x' is not an item"),
        (lambda: Session(["a"]).add(Undo(0)), "no entry 0"),
        (lambda: Session(["a", "b"], log=[Undo(-1)]), "no entry -1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, problem):
    with pytest.raises(PodiumError, match=problem):
        make()


def test_a_refused_entry_leaves_no_trace():
    session = Session(["a", "b"])
    with pytest.raises(DataError):
        session.add(Verdict("a", "x", LEFT))
    assert session.log == ()

"""What a session says of itself, against values worked out by hand."""

from typing import Any

import pytest

from podium.data.seeds import hashed_permutation, hashed_uniform
from podium.errors import ArgumentError, DataError
from podium.judging import Grade, Mark, Outcome, Overlap, Session, SideBySide, Verdict
from podium.judging.entries import Undo

LEFT, TIE, RIGHT = Outcome.LEFT, Outcome.TIE, Outcome.RIGHT


def ordered(*verdicts, items="abcde", k=2, algorithm="insertion", marks=()):
    log = [Verdict(left, right, outcome) for (left, right), outcome in verdicts]
    log += [Mark(item) for item in marks]
    return Session(list(items), k, algorithm=algorithm, ordered=True, log=log)


def test_items_tied_with_the_last_place_are_on_its_level():
    session = ordered(("ab", LEFT), ("bc", TIE), ("bd", LEFT), ("be", TIE))
    assert session.done
    result = session.result()
    assert result.top == ("a", "b")
    assert result.levels == (("a",), ("b", "c", "e"))
    assert result.labels(list("abcde"), ties=True).tolist() == [2, 1, 1, 0, 1]
    assert result.labels(list("abcde")).tolist() == [2, 1, 0, 0, 0]


def test_a_tie_with_another_place_than_the_last_adds_nothing():
    session = ordered(("ab", LEFT), ("ac", TIE), ("bc", LEFT), ("bd", LEFT), ("be", LEFT))
    assert session.result().levels == (("a",), ("b",))


def test_neighbors_that_are_tied_share_a_level_and_its_label():
    session = ordered(("ab", TIE), ("bc", LEFT), ("cd", LEFT), ("ce", LEFT), k=3)
    result = session.result()
    assert result.levels == (("a", "b"), ("c",))
    assert result.labels(list("abc"), ties=True).tolist() == [3, 3, 1]


def test_bad_items_are_on_no_level():
    session = ordered(("ab", LEFT), ("bc", TIE), ("bd", LEFT), ("be", TIE), marks=["e"])
    assert session.result().levels == (("a",), ("b", "c"))
    assert session.bad == ("e",)
    session.add(Mark("a"))
    assert session.bad == ("a", "e")  # in the order of the items
    assert "a" not in session.result().top


def test_how_many_more_people_must_judge_a_pair():
    session = Session(["a", "b", "c"], 1, overlap=Overlap(1.0, assessors=3))
    assert session.votes_missing("a", "b") == session.votes_missing("b", "a") == 3
    session.add(Verdict("b", "a", LEFT, "ann"))
    assert session.votes_missing("a", "b") == 2
    assert session.votes_missing("a", "c") == 3
    for name in ("bob", "cem", "dan"):
        session.add(Verdict("a", "b", LEFT, name))
    assert session.votes_missing("b", "a") == 0
    with pytest.raises(DataError, match="'x' is not an item"):
        session.votes_missing("a", "x")
    alone = Session(["a", "b"], 1)
    assert alone.votes_missing("a", "b") == 1
    alone.add(Verdict("a", "b", LEFT))
    assert alone.votes_missing("a", "b") == 0
    careful = Session(["a", "b"], 1, algorithm="careful", overlap=Overlap(1.0, assessors=3))
    assert careful.votes_missing("a", "b") == 1


def test_a_budget_is_three_judgments_an_item_unless_given():
    assert Session(["a", "b", "c"], 1).budget == 9
    assert Session(["a", "b", "c"], 1, budget=4).budget == 4


@pytest.mark.parametrize("k", [0, -1, 10**6 + 1])
def test_k_has_bounds(k):
    with pytest.raises(ArgumentError, match=f"k is {k}. Put 1 to 1000000 items in order"):
        Session(["a"], k)


def test_the_largest_k_is_allowed():
    assert Session(["a"], 10**6).result().labels(["a"]).tolist() == [10**6]


@pytest.mark.parametrize(
    "entry",
    [
        Verdict("x", "a", LEFT),
        Verdict("a", "x", LEFT),
        Mark("x"),
        Grade("x", 1),
        Undo(1),
        Undo(-1),
    ],
)
def test_an_entry_names_items_and_entries_that_there_are(entry):
    session = Session(["a", "b"], log=[Mark("a")])
    with pytest.raises(DataError):
        session.add(entry)
    assert session.log == (Mark("a"),)
    assert session.add(SideBySide("old", "new", 1)) == 1  # rankings are not items
    assert session.add(Undo(0)) == 2


def test_undo_says_who_and_when():
    session = Session(["a", "b", "c"], log=[Mark("a", "ann"), Mark("b", "bob")])
    assert session.undo("ann", at=7.5) == Undo(0, "ann", 7.5)
    assert session.undo("ann") is None
    assert session.undo() == Undo(1, "")
    assert session.bad == ()


def test_the_order_and_the_sides_are_drawn_by_the_seed():
    items = [f"d{number:02d}" for number in range(40)]
    firsts = set()
    for seed in range(5):
        session = Session(items, 5, algorithm="tournament", random_state=seed)
        order = hashed_permutation(40, seed, "order")
        assert sorted(order) == list(range(40))
        expected = [
            tuple(sorted((items[one], items[other])))
            for one, other in zip(order[::2], order[1::2], strict=True)
        ]
        pairs = session.open_pairs()
        assert [tuple(sorted(pair)) for pair in pairs] == expected
        for left, right in pairs:
            one, other = sorted((left, right))
            assert (left == one) == (hashed_uniform(seed, "side", one, other) < 0.5)
        firsts.add(pairs[0])
    assert len(firsts) == 5
    given = Session(items, 5, algorithm="tournament", random_state=3, ordered=True).open_pairs()
    assert [tuple(sorted(pair)) for pair in given][:2] == [("d00", "d01"), ("d02", "d03")]


def test_a_draw_is_a_hash_of_its_key():
    from hashlib import blake2b, shake_256

    digest = blake2b(b"7\x1fside\x1fa", digest_size=8).digest()
    assert hashed_uniform(7, "side", "a") == int.from_bytes(digest, "big") / 2**64
    numbers = shake_256(b"7\x1forder").digest(8 * 50)
    values = [int.from_bytes(numbers[8 * index : 8 * index + 8], "little") for index in range(50)]
    assert hashed_permutation(50, 7, "order") == sorted(range(50), key=values.__getitem__)


def test_estimate_weighs_people_and_result_does_not():
    """Ann and bob agree on everything; cem says the opposite, of more pairs that decide."""
    items = [f"d{number}" for number in range(6)]
    log = []
    for index, left in enumerate(items):
        for right in items[index + 1 :]:
            log += [Verdict(left, right, LEFT, name) for name in ("ann", "bob")]
            log.append(Verdict(left, right, RIGHT, "cem"))
    session = Session(items, 3, log=log)
    assert session.estimate().top == tuple(items[:3])
    assert session.estimate().complete == session.result().complete
    assert session.estimate().k == 3


def test_contradictions_name_the_sides_as_they_are_shown():
    session = Session(["a", "b", "c"], 3, random_state=1)
    for better, worse in ("ab", "bc", "ca"):
        session.add(Verdict(better, worse, LEFT))
    (contradiction,) = session.contradictions()
    assert set(contradiction.items) == set(contradiction.loop) == {"a", "b", "c"}
    one, other = sorted(contradiction.ask_again)
    assert (contradiction.ask_again.left == one) == (hashed_uniform(1, "side", one, other) < 0.5)


def test_without_a_seed_it_is_0_and_items_are_taken_in_a_drawn_order():
    items = [f"d{number:02d}" for number in range(20)]
    session = Session(items, 5, algorithm="tournament")
    assert session.random_state == 0
    assert not session.ordered
    order = hashed_permutation(20, 0, "order")
    expected = [
        {items[one], items[other]} for one, other in zip(order[::2], order[1::2], strict=True)
    ]
    assert [set(pair) for pair in session.open_pairs()] == expected
    for left, right in session.open_pairs():
        one, other = sorted((left, right))
        assert (left == one) == (hashed_uniform(0, "side", one, other) < 0.5)
    assert Session(items).k == 10
    assert Session(items).algorithm == "adaptive"


def test_a_share_of_the_pairs_needs_more_people():
    items = [f"d{number}" for number in range(8)]
    overlap = Overlap(0.5, assessors=4, random_state=2)
    session = Session(items, 3, overlap=overlap)
    seen = set()
    for index, left in enumerate(items):
        for right in items[index + 1 :]:
            needed = 4 if hashed_uniform(2, "overlap", left, right) < 0.5 else 1
            assert session.votes_missing(left, right) == needed
            assert session.votes_missing(right, left) == needed
            seen.add(needed)
    assert seen == {1, 4}


def test_eight_truths_are_drawn_for_what_is_left():
    session = Session([f"d{number:02d}" for number in range(30)], 5)
    assert session.expected_left() == session.expected_left(8)
    assert len({session.expected_left(draws) for draws in (7, 8, 9)}) == 3


def test_entries_of_a_log_are_checked_as_those_that_are_added():
    number: Any = 5
    nameless = Mark("a", assessor=number)
    for entry in (Verdict("a", "x", LEFT), Mark("x"), nameless, Mark("a", at=-1.0)):
        with pytest.raises(DataError):
            Session(["a", "b"], log=[entry])
        with pytest.raises(DataError):
            Session(["a", "b"]).add(entry)


def test_what_is_known_of_a_pair_is_told_from_either_side():
    session = Session(["a", "b", "c", "d"], 3, ordered=True)
    session.add(Verdict("a", "b", LEFT))
    session.add(Verdict("b", "c", LEFT))
    for left, right in ("ab", "bc", "ac"):
        assert session.outcome(left, right) is LEFT
        assert session.outcome(right, left) is RIGHT
    assert session.outcome("a", "d") is None
    with pytest.raises(DataError, match="'x' is not an item of this session"):
        session.outcome("a", "x")


@pytest.mark.parametrize("better", ["x", "y"])
def test_whom_the_others_contradict_counts_less_in_an_estimate(better):
    """The pair x, y has one vote each way: ann's, and that of cem, who errs elsewhere."""
    items = ["d0", "d1", "d2", "d3", "x", "y"]
    log = []
    for index, left in enumerate(items[:4]):
        for right in items[index + 1 : 4]:
            log += [Verdict(left, right, LEFT, name) for name in ("ann", "bob")]
            log.append(Verdict(left, right, RIGHT, "cem"))
    outcome = LEFT if better == "x" else RIGHT
    log += [Verdict("x", "y", outcome, "ann"), Verdict("x", "y", outcome.flipped, "cem")]
    top = Session(items, 6, log=log).estimate().top
    worse = "y" if better == "x" else "x"
    assert top.index(better) < top.index(worse)
    assert [item for item in top if item[0] == "d"] == items[:4]

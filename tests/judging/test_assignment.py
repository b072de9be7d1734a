"""Who judges what."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ArgumentError
from podium.judging import balance, rotate


@given(queries=st.integers(0, 40), people=st.integers(1, 8), data=st.data(), seed=st.integers(0, 9))
def test_rotation(queries, people, data, seed):
    names = [f"q{number}" for number in range(queries)]
    assessors = [f"u{number}" for number in range(people)]
    modes = ["pairs", "grades", "sets"][: data.draw(st.integers(1, min(3, people)))]
    rounds = data.draw(st.integers(1, people // len(modes)))
    assignments = rotate(names, assessors, modes=modes, rounds=rounds, random_state=seed)
    assert assignments == rotate(names, assessors, modes=modes, rounds=rounds, random_state=seed)
    assert len(assignments) == queries * len(modes) * rounds
    # Nobody meets a query twice, in whatever mode.
    assert max(Counter((one.assessor, one.query) for one in assignments).values(), default=1) == 1
    # Each query is judged in each mode by as many people as there are rounds.
    times = Counter((one.query, one.mode) for one in assignments)
    assert times == {(query, mode): rounds for query in names for mode in modes}
    # In each mode loads differ by a query a round at most.
    for mode in modes:
        loads = Counter(one.assessor for one in assignments if one.mode == mode)
        loads = [loads[assessor] for assessor in assessors]
        assert max(loads) - min(loads) <= rounds


def test_the_papers_assignment():
    """Five people, fifty queries: ten of each mode for everyone, on different folds."""
    assignments = rotate([f"q{n}" for n in range(50)], ["u1", "u2", "u3", "u4", "u5"])
    folds = {
        (one.assessor, one.mode): {
            other.query
            for other in assignments
            if other == one or (other.assessor, other.mode) == (one.assessor, one.mode)
        }
        for one in assignments
    }
    assert {len(fold) for fold in folds.values()} == {10}
    for person in range(5):  # person i judges fold i by pairs, and fold i + 1 by grades
        assert folds[f"u{person + 1}", "grades"] == folds[f"u{(person + 1) % 5 + 1}", "pairs"]


def test_other_seeds_draw_other_folds():
    queries = [f"q{n}" for n in range(20)]
    assert rotate(queries, ["a", "b"], random_state=1) != rotate(
        queries, ["a", "b"], random_state=2
    )


@given(
    work=st.dictionaries(st.text(min_size=1, max_size=3), st.floats(1, 100), max_size=30),
    people=st.integers(1, 6),
    copies=st.integers(1, 6),
)
def test_balance(work, people, copies):
    copies = min(copies, people)
    assessors = [f"u{number}" for number in range(people)]
    shares = balance(work, assessors, copies=copies, random_state=4)
    times = Counter(query for share in shares.values() for query in share)
    assert times == dict.fromkeys(work, copies)
    assert all(len(set(share)) == len(share) for share in shares.values())
    loads = [sum(work[query] for query in share) for share in shares.values()]
    assert max(loads) - min(loads) <= max(work.values(), default=0) + 1e-6


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: rotate(["q"], ["a", "a"]), "is repeated"),
        (lambda: rotate(["q", "q"], ["a", "b"]), "is repeated"),
        (lambda: rotate(["q"], ["a"]), "without meeting a query twice. Find 2 people"),
        (lambda: rotate(["q"], ["a", "b"], rounds=0), "without meeting"),
        (lambda: balance({"q": 1}, ["a"], copies=2), "cannot make 2 copies"),
    ],
)
def test_what_cannot_be_is_refused(make, problem):
    with pytest.raises(ArgumentError, match=problem):
        make()

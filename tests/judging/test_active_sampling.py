"""``careful``: it ends, however few items and people there are, and asks nobody twice."""

from itertools import combinations

import numpy as np
import pytest

from podium.judging import Mark, Outcome, Overlap, Session, Verdict
from podium.judging.active_sampling import most_informative_pairs
from podium.judging.bradley_terry import Duels, fit_bradley_terry


def names(count):
    return [f"d{number:02d}" for number in range(count)]


def by_name(left, right):
    """The lower number is better."""
    return Outcome.LEFT if left < right else Outcome.RIGHT


def judge_alone(session, assessor, most=10_000):
    """Answer all that one person is asked; returns the pairs, in order."""
    asked = []
    while pairs := session.open_pairs(assessor):
        left, right = pairs[0]
        asked.append(frozenset(pairs[0]))
        session.add(Verdict(left, right, by_name(left, right), assessor or ""))
        assert len(asked) <= most, "it never ends"
    return asked


@pytest.mark.parametrize(
    ("items", "k", "ordered", "assessor"),
    [
        (1, 1, False, "ann"),
        (2, 1, False, None),
        (3, 3, True, "ann"),
        (4, 2, False, None),
        (9, 1, True, None),
        (17, 1, False, "ann"),
        (50, 1, False, "ann"),
        (20, 19, False, "ann"),
    ],
)
def test_one_person_comes_to_an_end(items, k, ordered, assessor):
    session = Session(names(items), k, algorithm="careful", ordered=ordered, random_state=3)
    asked = judge_alone(session, assessor, session.budget)
    assert session.done
    assert session.open_pairs() == []
    assert session.result().complete
    assert session.expected_left() == 0
    assert len(set(asked)) == len(asked)  # nobody is asked twice
    assert len(asked) == min(session.budget, items * (items - 1) / 2)
    if k < 19:  # sixty verdicts are too few to put twenty items in order
        assert session.result().top == tuple(names(items)[:k])


def test_few_items_are_compared_each_with_each():
    session = Session(names(4), 3, algorithm="careful", budget=50)
    asked = judge_alone(session, "ann")
    assert set(asked) == {frozenset(pair) for pair in combinations(names(4), 2)}


def test_it_goes_on_for_whoever_has_not_said_everything():
    session = Session(names(3), 2, algorithm="careful", budget=100)
    first = session.open_pairs("bob")[0]
    session.add(Verdict(*first, by_name(*first), "bob"))
    everything = {frozenset(pair) for pair in combinations(names(3), 2)}
    assert set(judge_alone(session, "ann")) == everything
    assert not session.done  # bob can go on
    assert session.expected_left() == 2
    assert set(judge_alone(session, "bob")) == everything - {frozenset(first)}
    assert session.done
    assert session.result().complete
    assert session.open_pairs("cem")  # someone new can always add what they think


def test_the_budget_ends_it_before():
    session = Session(names(30), 5, algorithm="careful", budget=7)
    assert session.expected_left() == 7
    assert len(judge_alone(session, "ann")) == 7
    assert session.done
    assert session.open_pairs("someone else") == []


def test_a_budget_beyond_all_pairs_is_never_needed():
    session = Session(names(4), 4, algorithm="careful", budget=1000)
    assert session.expected_left() == 4 * 3 / 2
    session.add(Mark("d03"))
    assert session.expected_left() == 3 * 2 / 2


def test_pairs_that_need_two_people_do_not_hold_one_up():
    session = Session(names(6), 2, algorithm="careful", overlap=Overlap(1.0, 2), budget=40)
    judge_alone(session, None, 40)
    assert session.done


def test_bad_items_are_never_asked_about():
    session = Session(names(5), 2, algorithm="careful")
    for item in names(5)[1:]:
        session.add(Mark(item))
    assert session.open_pairs() == []
    assert session.result().top == ("d00",)
    assert session.result().complete


def test_items_further_down_are_asked_about_when_nothing_nearer_is_left():
    """In the end the best item is held against every other one, and those against one another."""
    items = 24
    posterior = fit_bradley_terry(items, Duels.of([(7, other, 1, 0) for other in range(5)]))
    met: list[tuple[int, int]] = []
    while pairs := most_informative_pairs(posterior, k=1, without=met):
        one, other = pairs[0]
        met.append((one, other))
    of_best = [7 in pair for pair in met]
    assert of_best[:9] == [True] * 9  # the eight items next to it, and one further down
    assert sum(of_best) == items - 1
    assert {frozenset(pair) for pair in met} == set(map(frozenset, combinations(range(items), 2)))
    assert len(met) == items * (items - 1) / 2
    assert most_informative_pairs(posterior, k=1, out=range(1, items)) == []


def test_no_item_is_in_two_of_the_pairs_asked_at_once():
    posterior = fit_bradley_terry(12, Duels.of([(n, n + 1, 1, 0) for n in range(11)]))
    pairs = most_informative_pairs(posterior, k=6, count=4)
    items = [item for pair in pairs for item in pair]
    assert len(pairs) == 4
    assert len(set(items)) == 8


def test_the_value_of_a_pair_is_its_formula():
    """The most telling pair, by the docstring's formula spelled out over the same draws."""
    from podium.judging.active_sampling import by_expected_gain, expected_gains

    items, k = 7, 3
    random = np.random.default_rng(4)
    rows = [(*random.choice(items, 2, replace=False).tolist(), 1, 0) for _ in range(12)]
    posterior = fit_bradley_terry(items, Duels.of(rows))
    gains = expected_gains(posterior, k, draws=64, random_state=5)
    ranked = by_expected_gain(gains).tolist()
    covariance = np.linalg.inv(posterior.precision)
    values = {}
    for (rank, one), (below, other) in combinations(enumerate(ranked), 2):
        discounts = [1 / np.log2(2 + at) if at < k else 0.0 for at in (rank, below)]
        wrong = np.mean([max(b - a, 0) for a, b in zip(gains[one], gains[other], strict=True)])
        chance = 1 / (1 + np.exp(posterior.means[other] - posterior.means[one]))
        spread = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
        values[one, other] = (discounts[0] - discounts[1]) * wrong * chance * (1 - chance) * spread
    best = max(values, key=values.__getitem__)
    assert tuple(most_informative_pairs(posterior, k, random_state=5)[0]) == best
    del values[best]
    second = max(values, key=values.__getitem__)
    assert (
        tuple(most_informative_pairs(posterior, k, random_state=5, without=[best[::-1]])[0])
        == second
    )

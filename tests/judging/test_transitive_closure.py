"""What verdicts imply."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.judging import Outcome
from podium.judging.contradictions import contradictions
from podium.judging.transitive_closure import KnownOutcomes

ITEMS = 7
VERDICTS = st.dictionaries(
    st.tuples(st.integers(0, ITEMS - 1), st.integers(0, ITEMS - 1)).filter(
        lambda pair: pair[0] < pair[1]
    ),
    st.sampled_from(Outcome),
)


def reachable(verdicts):
    """Which item is above which, by Warshall's closure."""
    above = np.zeros((ITEMS, ITEMS), bool)
    for (left, right), outcome in verdicts.items():
        above[left, right] |= outcome is Outcome.LEFT
        above[right, left] |= outcome is Outcome.RIGHT
    for middle in range(ITEMS):
        above |= above[:, [middle]] & above[[middle], :]
    return above


def known_from(verdicts):
    known = KnownOutcomes(ITEMS)
    for (left, right), outcome in verdicts.items():
        known.add(left, right, outcome)
    return known


@given(VERDICTS)
def test_a_pair_is_told_or_follows_from_strict_verdicts_alone(verdicts):
    known, above = known_from(verdicts), reachable(verdicts)
    for left in range(ITEMS):
        for right in range(left + 1, ITEMS):
            expected = verdicts.get((left, right))
            if expected is None and above[left, right] != above[right, left]:
                expected = Outcome.LEFT if above[left, right] else Outcome.RIGHT
            assert known.outcome(left, right) is expected
            flipped = None if expected is None else expected.flipped
            assert known.outcome(right, left) is flipped


@given(VERDICTS, st.randoms())
def test_neither_order_nor_haste_changes_what_is_known(verdicts, random):
    shuffled = list(verdicts.items())
    random.shuffle(shuffled)
    at_once = KnownOutcomes(ITEMS)
    at_once.add_all(shuffled)
    assert known_from(verdicts).below == known_from(dict(shuffled)).below == at_once.below
    assert at_once.judged == known_from(verdicts).judged


@given(VERDICTS)
def test_a_copy_learns_by_itself(verdicts):
    known = known_from(verdicts)
    before = list(known.below)
    copy = known.copy()
    for left in range(ITEMS):
        for right in range(left + 1, ITEMS):
            if copy.outcome(left, right) is None:
                copy.add(left, right, Outcome.LEFT)
    assert known.below == before
    assert known.judged == known_from(verdicts).judged


@given(VERDICTS)
def test_contradictions_are_the_loops(verdicts):
    loops = contradictions(known_from(verdicts))
    above = reachable(verdicts)
    assert (
        sorted(item for one in loops for item in one.items)
        == np.flatnonzero(above.diagonal()).tolist()
    )
    for one in loops:
        for item in one.items:  # together if each is above the other
            assert set(one.items) == set(np.flatnonzero(above[item] & above[:, item]))
        assert set(one.loop) <= set(one.items)
        assert len(set(one.loop)) == len(one.loop) == shortest_loop(verdicts, one.items)
        around = list(zip(one.loop, one.loop[1:] + one.loop[:1], strict=True))
        for better, worse in around:
            assert known_from(verdicts).judged[better, worse] is Outcome.LEFT
        assert one.ask_again in around
        freed = {pair: caught_without(verdicts, pair, one.items) for pair in around}
        assert freed[one.ask_again] == min(freed.values())


def edges(verdicts):
    for (left, right), outcome in verdicts.items():
        if outcome is not Outcome.TIE:
            yield (left, right) if outcome is Outcome.LEFT else (right, left)


def shortest_loop(verdicts, items):
    """The least power of the graph's matrix with something on its diagonal."""
    step = np.zeros((ITEMS, ITEMS), int)
    for better, worse in edges(verdicts):
        step[better, worse] = better in items and worse in items
    power, length = step, 1
    while not power.diagonal().any():
        power, length = np.minimum(power @ step, 1), length + 1
    return length


def caught_without(verdicts, pair, items):
    kept = {
        key: outcome
        for key, outcome in verdicts.items()
        if key not in (pair, pair[::-1]) and set(key) <= set(items)
    }
    return reachable(kept).diagonal().sum()

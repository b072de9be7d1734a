"""Selection algorithms: the right top k, few judgments, independent pairs."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ArgumentError
from podium.judging import Outcome
from podium.judging.algorithms import ALGORITHMS, get_algorithm
from podium.judging.algorithms.knockout import TreeSizes, adaptive, tournament
from podium.judging.algorithms.min_heap import heap
from podium.judging.algorithms.selection import drive_selection, run_selection

every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


def perfect(worth):
    def judge(left, right):
        return Outcome((worth[left] > worth[right]) - (worth[left] < worth[right]))

    return judge


def mean_judgments(algorithm, items, k, noise, runs, *, infer=True):
    """Over random true orders, given in the order of a prior: true scores plus noise times n."""
    random = np.random.default_rng(0)
    counts = []
    for _ in range(runs):
        worth = random.permutation(items).astype(float)
        prior = worth + noise * items * random.standard_normal(items)
        worth = worth[np.argsort(-prior)].tolist()
        selected = run_selection(algorithm, items, k, perfect(worth), infer=infer)
        assert [worth[item] for item in selected.top] == sorted(worth, reverse=True)[:k]
        counts.append(selected.judgments)
    return np.mean(counts)


@every_algorithm
@given(
    worth=st.lists(st.integers(0, 12), min_size=1, max_size=25),
    k=st.integers(1, 30),
    infer=st.booleans(),
)
def test_a_perfect_judge_gets_the_true_top_k_ties_or_not(name, worth, k, infer):
    selected = run_selection(ALGORITHMS[name], len(worth), k, perfect(worth), infer=infer)
    assert [worth[item] for item in selected.top] == sorted(worth, reverse=True)[:k]
    assert len(set(selected.top)) == min(k, len(worth))


@every_algorithm
@given(worth=st.permutations(range(17)), k=st.integers(1, 17))
def test_pairs_of_a_batch_share_no_item_and_none_is_asked_twice(name, worth, k):
    selection = ALGORITHMS[name](range(len(worth)), k)
    judge, asked = perfect(worth), set()
    batch = next(selection)
    while batch:
        items = [item for pair in batch for item in pair]
        assert len(set(items)) == len(items)
        for pair in batch:
            assert frozenset(pair) not in asked or name == "heap"  # which forgets
            asked.add(frozenset(pair))
        try:
            batch = selection.send([judge(*pair) for pair in batch])
        except StopIteration:
            return
    pytest.fail("an empty batch")


@given(worth=st.permutations(range(14)), k=st.integers(1, 14))
def test_the_heap_is_the_one_of_heapq(worth, k):
    """The same judgments as Python's own heap needs, and not one more."""
    count = 0

    class Item:
        def __init__(self, index):
            self.index = index

        def __lt__(self, other):
            nonlocal count
            count += 1
            return worth[self.index] < worth[other.index]

    items = [Item(index) for index in range(len(worth))]
    kept = items[:k]
    heapq.heapify(kept)
    for item in items[k:]:
        if kept[0] < item:
            heapq.heapreplace(kept, item)
    expected = [heapq.heappop(kept).index for _ in range(k)][::-1]

    selected = run_selection(heap, len(worth), k, perfect(worth), infer=False)
    assert (selected.top, selected.judgments) == (expected, count)


@given(items=st.integers(1, 300), k=st.integers(1, 40))
def test_a_right_prior_is_confirmed_by_the_fewest_judgments_possible(items, k):
    worth = range(items, 0, -1)
    assert run_selection(adaptive, items, k, perfect(worth)).judgments == items - 1
    assert run_selection(ALGORITHMS["galloping"], items, k, perfect(worth)).judgments == items - 1


@pytest.mark.parametrize("algorithm", [adaptive, tournament])
@pytest.mark.parametrize(("items", "k", "most"), [(50, 10, 92), (100, 10, 152)])
def test_few_judgments_without_a_prior(algorithm, items, k, most):
    assert mean_judgments(algorithm, items, k, noise=100, runs=150) <= most


@pytest.mark.parametrize("noise", [0, 0.02, 0.05, 0.1, 0.2, 0.5, 5])
def test_adaptive_is_near_the_best_whatever_the_prior(noise):
    means = {name: mean_judgments(ALGORITHMS[name], 50, 10, noise, runs=100) for name in ALGORITHMS}
    adaptive_mean = means.pop("adaptive")
    assert adaptive_mean <= 1.05 * min(means.values())
    if noise == 0.05:
        assert adaptive_mean <= 61


def test_all_ties_cost_no_more_than_all_different():
    """What is tied with a winner waits under it like a loser, or nothing would ever be settled."""
    ties = run_selection(adaptive, 64, 10, lambda _left, _right: Outcome.TIE)
    assert ties.judgments <= 63 + 9 * 6  # a full bracket, then log2(64) rounds for each of nine
    assert ties.top[0] == 0


def test_many_can_judge_at_once():
    assert len(next(adaptive(range(100), 10))) > 10
    assert len(next(tournament(range(100), 10))) == 50


def test_the_smallest_trees_meet_first():
    """Nine items: of four winners with two items each and one without, that one meets next."""
    sizes = TreeSizes(9)
    first = sizes.meetings(list(range(9)), [])
    assert first == [(0, 1), (2, 3), (4, 5), (6, 7)]
    roots, played = [1, 3, 4, 6, 8], [(1, 0, False), (3, 2, True), (4, 5, False), (6, 7, False)]
    # Trees of 2, 2, 2, 2 and 1: the smallest comes first, and its winner would have 3.
    assert sizes.meetings(roots, played) == [(1, 8), (3, 4)]
    # Trees of 3, 4 and 2; the pair of a larger one would have to wait, as 4 is above 2 + 3.
    assert sizes.meetings([1, 3, 6], [(1, 8, False), (3, 4, False)]) == [(1, 6)]
    # 5 and 4 are left.
    assert sizes.meetings([1, 3], [(1, 6, False)]) == [(1, 3)]


def test_trees_wait_that_are_larger_than_a_winner_to_come():
    sizes = TreeSizes(10)
    played = [(2, 6, False), (3, 7, False), (3, 8, False), (4, 9, False)]
    # Trees of 1 (0, 1 and 5), 2 (2 and 4) and 3 (3): a winner of the first two has 2.
    assert sizes.meetings([0, 1, 2, 3, 4, 5], played) == [(0, 1), (2, 5)]


def test_a_tournament_takes_as_many_rounds_as_its_trees_are_deep():
    """With equal trees meeting, 2^m items have a winner after m rounds and 2^m - 1 judgments."""
    for depth in range(1, 7):
        items = 2**depth
        selected = run_selection(tournament, items, 1, perfect(list(range(items))))
        assert (selected.rounds, selected.judgments, selected.top) == (
            depth,
            items - 1,
            [items - 1],
        )


def test_play_returns_the_number_of_batches():
    top, rounds = drive_selection(tournament(range(8), 1), lambda _left, _right: Outcome.LEFT)
    assert (top, rounds) == ([0], 3)


def test_an_unknown_algorithm_is_refused_by_name():
    with pytest.raises(ArgumentError, match=r"no algorithm 'quicksort'. Choose: adaptive,"):
        get_algorithm("quicksort")

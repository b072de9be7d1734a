"""Xia et al. (2009): which losses are top-k order sensitive, and why that matters.

A permutation lists objects from the best to the worst. Its top-k subgroup is that of all
permutations that begin with the same k objects.
"""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from podium.kernels import Doubles
from podium.losses import ListMLE, ListNet, Loss, RankCosine
from podium.losses.base import LossValues
from tests.losses.cases import one_query

OBJECTS = 4
Order = tuple[int, ...]
KINDS = {
    "ListMLE": ListMLE,
    "RankCosine": RankCosine,
    "ListNet": ListNet,
    "ListNet of whole orders": lambda k=None: ListNet(k=k, permutations=True),
}


def _evaluate(loss: Loss, scores: Doubles, order: Order) -> LossValues:
    labels = np.empty(len(order))
    labels[list(order)] = np.arange(len(order), 0, -1)
    return one_query(loss, scores, labels)


def _swap(order: Order, i: int, j: int) -> Order:
    return tuple({i: j, j: i}.get(item, item) for item in order)


def _breaks(loss: Loss, k: int, random: np.random.Generator) -> set[int]:
    """Which of the three conditions of definition 3 the loss breaks for some scores."""
    broken = set()
    for i, j in permutations(range(OBJECTS), 2):
        orders = [y for y in permutations(range(OBJECTS)) if y.index(i) < y.index(j)]
        other_top = [y for y in orders if y[:k] != _swap(y, i, j)[:k]]
        scores = random.normal(size=OBJECTS)
        scores[i], scores[j] = sorted(scores[[i, j]])
        moved = scores.copy()
        moved[[i, j]] = scores[[j, i]]
        rises = []
        for y in orders:
            here, there = (_evaluate(loss, scores, order).total for order in (y, _swap(y, i, j)))
            if not np.isclose(here, _evaluate(loss, moved, _swap(y, i, j)).total):
                broken.add(1)
            if y in other_top:
                rises.append(here - there)
            elif not np.isclose(here, there, atol=1e-12):
                broken.add(2)
        if min(rises) < -1e-12 or max(rises) < 1e-9:
            broken.add(2)
        equal = scores.copy()
        equal[i] = equal[j]
        faster = [
            _evaluate(loss, equal, _swap(y, i, j)).gradient[i]
            > _evaluate(loss, equal, y).gradient[i] + 1e-9
            for y in other_top
        ]
        if not any(faster):
            broken.add(3)
    return broken


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_top_k_losses_are_top_k_order_sensitive(kind: str, k: int) -> None:
    assert not _breaks(KINDS[kind](k=k), k, np.random.default_rng(k))


@pytest.mark.parametrize("kind", KINDS)
def test_full_losses_are_order_sensitive_for_full_orders_but_not_for_a_top(kind: str) -> None:
    loss = KINDS[kind]()
    assert not _breaks(loss, OBJECTS, np.random.default_rng(0))
    for k in (1, 2):
        assert 2 in _breaks(loss, k, np.random.default_rng(k))


@pytest.mark.parametrize("kind", KINDS)
def test_proposition_9_sensitive_for_k_is_sensitive_for_more(kind: str) -> None:
    for k in (1, 2):
        for larger in range(k + 1, OBJECTS + 1):
            assert not _breaks(KINDS[kind](k=k), larger, np.random.default_rng(larger))


def test_proposition_8_chances_of_a_top_are_sums_of_those_of_longer_tops() -> None:
    """So where longer tops prefer i to j, shorter ones do: here with ListMLE's own chances."""
    scores = np.random.default_rng(0).normal(size=OBJECTS)

    def chance(head: Order) -> float:
        rest = tuple(item for item in range(OBJECTS) if item not in head)
        return float(np.exp(-_evaluate(ListMLE(k=len(head)), scores, (*head, *rest)).total))

    for k in (2, 3):
        for head in permutations(range(OBJECTS), k - 1):
            longer = [(*head, item) for item in range(OBJECTS) if item not in head]
            assert chance(head) == pytest.approx(sum(map(chance, longer)))
        for i, j in permutations(range(OBJECTS), 2):
            for size in (k, k - 1):
                preferred = [
                    chance(head) > chance(_swap(head, i, j))
                    for head in permutations(range(OBJECTS), size)
                    if i in head and (j not in head or head.index(i) < head.index(j))
                ]
                assert all(preferred) == (scores[i] > scores[j])


def _minimizer(loss: Loss, chances: dict[Order, float], start: Doubles) -> Doubles:
    """The scores that minimize the expected loss."""

    def expected(scores: Doubles) -> tuple[float, Doubles]:
        result = [(p, _evaluate(loss, scores, order)) for order, p in chances.items()]
        value = sum(p * one.total for p, one in result)
        # ListMLE's minimum may lie at infinity; a little ridge keeps the order and ends it.
        gradient = sum(p * one.gradient for p, one in result) + 2e-6 * scores
        return value + 1e-6 * float(scores @ scores), gradient

    return np.asarray(minimize(expected, start, jac=True, method="BFGS").x)


@pytest.mark.parametrize("kind", KINDS)
def test_proposition_10_only_the_top_1_loss_finds_the_most_probable_first_object(kind: str) -> None:
    """Object 0 is first most often, but is below object 1 more often than above it."""
    chances = {(0, 1, 2): 0.36, (1, 0, 2): 0.32, (2, 1, 0): 0.32}
    start = np.array([0.1, 0.2, 0.3])
    top_one = _minimizer(KINDS[kind](k=1), chances, start)
    assert np.argmax(top_one) == 0
    full = _minimizer(KINDS[kind](), chances, start)
    assert np.argmax(full) != 0


def test_list_mle_of_the_first_draw_finds_the_chances_themselves() -> None:
    chances = {(0, 1, 2): 0.5, (1, 0, 2): 0.3, (2, 1, 0): 0.2}
    scores = _minimizer(ListMLE(k=1), chances, np.zeros(3))
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), [0.5, 0.3, 0.2], atol=1e-4)

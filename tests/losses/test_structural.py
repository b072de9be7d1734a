"""The structural hinge against brute force over all orders."""

import math
from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np
import pytest

from podium.errors import PodiumError
from podium.kernels import Doubles
from podium.losses import StructuralHinge
from tests.losses.cases import one_query, random_query, strict_query, top

Point = tuple[float, float]


def _position_points(loss: StructuralHinge, scores: Doubles, labels: Doubles) -> Iterator[Point]:
    """Each order's loss and lead, the score over that of the right order plus 1."""
    cut = len(scores) if loss.k is None else loss.k
    rows = range(len(scores))
    best = top(labels, loss.k)
    gain = 2.0**labels - 1 if loss.measure == "ndcg" else np.isin(rows, best).astype(float)

    def discount(position: int) -> float:
        if position > cut:
            return 0.0
        return 1 / math.log2(1 + position) if loss.measure == "ndcg" else 1 / cut

    def total(order: tuple[int, ...], values: Doubles) -> float:
        return sum(discount(p) * values[row] for p, row in enumerate(order, start=1))

    orders = list(permutations(rows))
    ideal = max(total(order, gain) for order in orders)
    right = [order for order in orders if list(gain[list(order)]) == sorted(gain, reverse=True)]
    scored = [total(order, scores) for order in right]
    expected = max(scored) if loss.equal_labels == "scores" else sum(scored) / len(scored)
    for order in orders:
        yield 1 - total(order, gain) / ideal, 1 + total(order, scores) - expected


def _ap_points(loss: StructuralHinge, scores: Doubles, labels: Doubles) -> Iterator[Point]:
    relevant = top(labels, loss.k)
    others = [row for row in range(len(labels)) if row not in relevant]
    for order in permutations(range(len(labels))):
        hits = [position for position, row in enumerate(order, start=1) if row in relevant]
        precision = sum(count / rank for count, rank in enumerate(hits, start=1)) / len(hits)
        wrong = [(i, j) for i in relevant for j in others if order.index(j) < order.index(i)]
        lead = 1 - sum(2 * (scores[i] - scores[j]) for i, j in wrong) / len(relevant) / len(others)
        yield 1 - precision, lead


def _points(loss: StructuralHinge, scores: Doubles, labels: Doubles) -> list[Point]:
    """The right order's point among them, where nothing is to be ordered."""
    if not top(labels, loss.k):
        return [(0.0, 1.0)]
    find = _ap_points if loss.measure == "ap" else _position_points
    return list(find(loss, scores, labels))


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("ties", ["scores", "mean"])
@pytest.mark.parametrize("measure", ["ndcg", "precision", "ap"])
def test_margin_scaling_finds_the_most_violated_order(measure: str, ties: str, k: int) -> None:
    random = np.random.default_rng(k)
    for scale in (0.2, 1.0, 4.0):
        for _ in range(8):
            scores, labels = random_query(random, most=6, scale=scale)
            loss = StructuralHinge(measure, "margin", k, ties)
            expected = max(lost + lead - 1 for lost, lead in _points(loss, scores, labels))
            assert one_query(loss, scores, labels).total == pytest.approx(expected, abs=1e-12)


def _golden_section(best_at: Callable[[float], Point]) -> float:
    """Cheng et al.'s search: minimize the variational bound, keep the best order met."""
    low, high, ratio = -12.0, 12.0, (math.sqrt(5) - 1) / 2
    met = 0.0

    def bound(exponent: float) -> float:
        nonlocal met
        penalty = math.exp(exponent)
        lost, lead = best_at(penalty)
        met = max(met, lost * lead)
        return max(lead + penalty * lost, 0.0) ** 2 / (4 * penalty)

    for _ in range(60):
        one, other = high - ratio * (high - low), low + ratio * (high - low)
        if bound(one) < bound(other):
            high = other
        else:
            low = one
    return met


def _upper_hull(points: list[Point]) -> list[Point]:
    """The points that are largest in ``lead + penalty * loss`` for some penalty from 0."""
    hull: list[Point] = []
    for lost, lead in sorted(points):
        while len(hull) > 1 and (lead - hull[-2][1]) * (hull[-1][0] - hull[-2][0]) >= (
            hull[-1][1] - hull[-2][1]
        ) * (lost - hull[-2][0]):
            hull.pop()
        if hull and lost == hull[-1][0]:
            hull.pop()
        hull.append((lost, lead))
    return hull[hull.index(max(hull, key=lambda point: point[1])) :]


@pytest.mark.parametrize("measure", ["ndcg", "precision", "ap"])
def test_slack_scaling_is_the_best_order_for_any_penalty(measure: str) -> None:
    """Which no golden-section search surpasses; orders that no penalty favors are out of reach."""
    random = np.random.default_rng(5)
    loss = StructuralHinge(measure, "slack", 3)
    short = 0
    for scale in (0.2, 1.0, 4.0):
        for _ in range(12):
            scores, labels = random_query(random, most=6, scale=scale)
            points = _points(loss, scores, labels)

            def best_at(penalty: float, points: list[Point] = points) -> Point:
                return max(points, key=lambda point: point[1] + penalty * point[0])

            value = one_query(loss, scores, labels).total
            assert value == pytest.approx(max(map(math.prod, _upper_hull(points))), abs=1e-12)
            assert value >= _golden_section(best_at) - 1e-12
            short += value < max(map(math.prod, points)) - 1e-9
    assert short <= 5  # of 36


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("measure", ["ndcg", "precision", "ap"])
def test_right_orders_with_wide_margins_cost_nothing(measure: str, scaling: str) -> None:
    random = np.random.default_rng(6)
    loss = StructuralHinge(measure, scaling, 3)
    for _ in range(20):
        _, labels = random_query(random)
        scores = 100 * labels + random.normal(size=len(labels))
        result = one_query(loss, scores, labels)
        assert result.total == pytest.approx(0, abs=1e-12)
        assert not np.any(result.gradient)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_a_strict_top_makes_the_hinge_convex(scaling: str) -> None:
    """As the docstring says: with labels of a top-k order no right order is left to choose."""
    random = np.random.default_rng(7)
    loss = StructuralHinge("ndcg", scaling, 3)
    for _ in range(200):
        scores, _ = strict_query(random, 7)
        labels = np.maximum(random.permutation(7) - 3.0, 0)
        others = scores + random.normal(size=7)
        here, there = one_query(loss, scores, labels), one_query(loss, others, labels)
        assert there.total >= here.total + here.gradient @ (others - scores) - 1e-9


def test_wrong_parameters_say_what_is_right() -> None:
    with pytest.raises(PodiumError, match=r"measure is 'map'\. Give 'ndcg' or 'precision' or 'ap'"):
        StructuralHinge("map")  # type: ignore[arg-type]
    with pytest.raises(PodiumError, match="Give k"):
        StructuralHinge("precision")

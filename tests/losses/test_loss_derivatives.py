"""Gradients and curvatures against finite differences, and subgradients against the definition."""

import numpy as np
import pytest

from podium.kernels import Doubles
from podium.losses import Loss, StructuralHinge
from tests.losses.cases import (
    LOSSES,
    has_exact_curvature,
    is_exact,
    one_query,
    random_query,
)

STEP = 1e-5


def _differences(loss: Loss, scores: Doubles, labels: Doubles) -> tuple[Doubles, Doubles]:
    """The gradient, and the diagonal of the Hessian, by central differences."""
    first, second = np.empty(len(scores)), np.empty(len(scores))
    for row in range(len(scores)):
        step = STEP * (np.arange(len(scores)) == row)
        above, below = (
            one_query(loss, scores + step, labels),
            one_query(loss, scores - step, labels),
        )
        first[row] = (above.total - below.total) / (2 * STEP)
        second[row] = (above.gradient[row] - below.gradient[row]) / (2 * STEP)
    return first, second


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradient_and_curvature_are_those_of_finite_differences(loss: Loss) -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        scores, labels = random_query(random)
        result = one_query(loss, scores, labels)
        gradient, curvature = _differences(loss, scores, labels)
        np.testing.assert_allclose(result.gradient, gradient, rtol=1e-6, atol=1e-6)
        if has_exact_curvature(loss):
            np.testing.assert_allclose(result.curvature, curvature, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_curvature_is_not_negative_and_is_positive_where_the_gradient_is_not_zero(
    loss: Loss, scale: float
) -> None:
    random = np.random.default_rng(1)
    moved = 0
    for _ in range(20):
        scores, labels = random_query(random, scale=scale)
        result = one_query(loss, scores, labels)
        assert np.all(result.curvature >= 0)
        # A probability that is 1 to the last digit has no curvature left, so at a scale of 100
        # there may be none.
        if scale < 100:
            steep = np.abs(result.gradient) > 1e-8
            assert np.all(result.curvature[steep] > 0)
            moved += np.count_nonzero(steep)
    assert scale == 100 or moved >= 20


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if isinstance(loss, StructuralHinge)], ids=repr
)
def test_curvature_of_structural_hinges_is_the_size_of_the_gradient(loss: Loss) -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        result = one_query(loss, *random_query(random))
        np.testing.assert_array_equal(result.curvature, np.abs(result.gradient))


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if loss.convex and is_exact(loss)], ids=repr
)
def test_planes_of_convex_losses_bound_them_from_below(loss: Loss) -> None:
    random = np.random.default_rng(2)
    for _ in range(200):
        scores, labels = random_query(random)
        # On a grid scores have ties and hinges have kinks: any subgradient must do.
        scores = np.round(scores)
        others = np.round(scores + random.normal(size=len(scores)) * random.choice([0.5, 3, 30]))
        here, there = one_query(loss, scores, labels), one_query(loss, others, labels)
        plane = here.total + here.gradient @ (others - scores)
        assert there.total >= plane - 1e-9 * (1 + abs(plane))


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not loss.convex], ids=repr)
def test_losses_said_not_to_be_convex_are_not(loss: Loss) -> None:
    random = np.random.default_rng(3)
    worst = 0.0
    for _ in range(2000):
        scores, labels = random_query(random, scale=1.0)
        others = scores + random.normal(size=len(scores))
        here, there = one_query(loss, scores, labels), one_query(loss, others, labels)
        worst = max(worst, here.total + here.gradient @ (others - scores) - there.total)
    assert worst > 1e-3


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.smooth], ids=repr)
def test_gradients_of_smooth_losses_are_continuous(loss: Loss) -> None:
    """Also where scores are equal, and where pairs have a margin of exactly 1."""
    random = np.random.default_rng(4)
    for _ in range(50):
        scores, labels = random_query(random)
        scores = np.round(scores) + 1.0
        near = scores + 1e-9 * random.normal(size=len(scores))
        one, other = one_query(loss, scores, labels), one_query(loss, near, labels)
        np.testing.assert_allclose(
            one.gradient, other.gradient, atol=1e-6 * (1 + np.abs(one.gradient).max())
        )

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.rankers.bundle_method import minimize_bundle


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([1e-3, 0.1, 3.0]))
def test_the_certified_gap_holds_the_minimum(seed: int, size: int, alpha: float) -> None:
    """R is the largest of some planes, so the whole is a quadratic programme SciPy can solve."""
    from scipy import optimize

    random = np.random.default_rng(seed)
    slopes, offsets = random.normal(size=(8, size)), random.normal(size=8)

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        heights = slopes @ weights + offsets
        top = int(np.argmax(heights))
        return float(heights[top]), slopes[top]

    found = minimize_bundle(risk, np.zeros(size), alpha=alpha, tol=1e-7, max_steps=500)
    assert found.converged
    # The same as a smooth problem in (w, t): least t + penalty / 2 |w|^2 with t above each plane.
    exact = optimize.minimize(
        lambda x: x[-1] + alpha / 2 * x[:-1] @ x[:-1],
        np.append(np.zeros(size), offsets.max()),
        jac=lambda x: np.append(alpha * x[:-1], 1.0),
        constraints={
            "type": "ineq",
            "fun": lambda x: x[-1] - slopes @ x[:-1] - offsets,
            "jac": lambda _: np.column_stack((-slopes, np.ones(8))),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.value == pytest.approx(exact.fun, abs=1e-4 * max(1, abs(exact.fun)))
    assert found.value - found.gap <= exact.fun + 1e-6
    assert 0 <= found.gap <= 1e-7 * abs(found.value) + 1e-9


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e3])
def test_steep_planes_take_no_more_steps(scale: float) -> None:
    """Hinges of unscaled features: the minimum is small beside the slopes of the planes."""

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        rows = scale * np.array([[1.0, 0.2], [0.1, 1.0], [0.9, 1.1]])
        short = 1 - rows @ weights
        return float(np.maximum(short, 0).sum()), -(rows * (short > 0)[:, None]).sum(axis=0)

    found = minimize_bundle(risk, np.zeros(2), alpha=0.01, tol=1e-6, max_steps=60)
    assert found.converged
    # All three margins can be met, the first two exactly: w solves a system of two equations.
    meets = np.linalg.solve([[1.0, 0.2], [0.1, 1.0]], [1.0, 1.0]) / scale
    if scale > 1:
        np.testing.assert_allclose(found.weights, meets, rtol=1e-3)
        assert found.value == pytest.approx(0.005 * meets @ meets, rel=1e-5)


def test_the_floor_is_what_the_gap_is_compared_with() -> None:
    wanted = np.arange(1.0, 7.0)

    def absolute(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.abs(w - wanted).sum()), np.sign(w - wanted)

    near = minimize_bundle(absolute, np.zeros(6), alpha=0.1, tol=1e-6, floor=2e6)
    exact = minimize_bundle(absolute, np.zeros(6), alpha=0.1, tol=1e-6)
    assert near.converged
    assert exact.converged
    assert near.steps < exact.steps
    assert exact.gap <= 1e-6 * exact.value < near.gap <= 2.0


def test_it_says_when_it_stopped_early() -> None:
    found = minimize_bundle(
        lambda w: (float(np.abs(w - 3).sum()), np.sign(w - 3)),
        np.zeros(5),
        alpha=1e-3,
        tol=1e-12,
        max_steps=2,
    )
    assert not found.converged
    assert found.steps == 2
    # The least is at 3 everywhere, as the penalty is smaller than any slope.
    least = 1e-3 / 2 * 5 * 3**2
    assert found.value - found.gap <= least + 1e-12 < found.value

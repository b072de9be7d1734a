import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from podium.errors import PodiumError
from podium.measures.statistics import holm, mean_interval, paired_difference, tukey

values = arrays(np.float64, st.integers(2, 8), elements=st.integers(0, 20).map(lambda n: n / 20))


@given(values)
def test_randomisation_of_few_queries_is_exact(ours: np.ndarray) -> None:
    theirs = np.roll(ours, 1)
    differences = ours - theirs
    sums = [
        abs(np.dot(signs, differences))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = np.mean(np.array(sums) >= abs(differences.sum()) - 1e-9)
    found = paired_difference(ours, theirs, tests=("randomisation",))
    assert found.p_values["randomisation"] == pytest.approx(expected)


def test_randomisation_of_many_queries_agrees_with_scipy() -> None:
    random = np.random.default_rng(3)
    for shift in (0.0, 0.02, 0.05):
        differences = random.normal(shift, 0.2, 150)
        ours = paired_difference(differences, np.zeros(150), tests=("randomisation",), seed=2)
        theirs = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
        )
        # Two draws of 10,000 and 20,000 differ by a few standard errors of a proportion.
        assert ours.p_values["randomisation"] == pytest.approx(theirs.pvalue, abs=0.025)


def test_tests_equal_scipy() -> None:
    random = np.random.default_rng(1)
    ours, theirs = random.random(60), random.random(60)
    found = paired_difference(ours, theirs)
    assert found.p_values["t"] == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert found.p_values["wilcoxon"] == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)
    wins = int(np.sum(ours > theirs))
    assert found.p_values["sign"] == pytest.approx(stats.binomtest(wins, 60).pvalue)
    interval = stats.ttest_rel(ours, theirs).confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    differences = ours - theirs
    assert found.effect == pytest.approx(differences.mean() / differences.std(ddof=1))


@given(values)
def test_a_comparison_turned_round_has_the_same_p_values(ours: np.ndarray) -> None:
    theirs = ours[::-1].copy()
    one, other = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert one.mean == pytest.approx(-other.mean)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert one.p_values == pytest.approx(other.p_values)
    assert all(0 <= p <= 1 for p in one.p_values.values())


def test_equal_systems_do_not_differ() -> None:
    found = paired_difference(np.full(5, 0.3), np.full(5, 0.3))
    assert set(found.p_values.values()) == {1.0}
    assert (found.mean, found.effect, found.ties) == (0.0, 0.0, 5)


def test_values_of_other_queries_are_refused() -> None:
    with pytest.raises(PodiumError, match="same queries"):
        paired_difference(np.array([0.5, np.nan]), np.array([0.5, 0.5]))


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm_by_its_definition(p_values: np.ndarray) -> None:
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    expected = np.empty(count)
    for place, index in enumerate(order):
        steps = [min(1.0, (count - step) * p_values[order[step]]) for step in range(place + 1)]
        expected[index] = max(steps)
    assert holm(p_values) == pytest.approx(expected)


def test_tukey_of_two_systems_is_the_paired_t_test() -> None:
    # With two systems the residual variance is half that of the differences, and the studentised
    # range of two means is |t| times the square root of 2.
    values = np.random.default_rng(5).random((40, 2))
    expected = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
    assert tukey(values)[0, 1] == pytest.approx(expected, abs=1e-6)


def test_tukey_is_symmetric_and_more_careful_than_t() -> None:
    values = np.random.default_rng(6).random((50, 4)) + np.array([0, 0.1, 0.2, 0.05])
    found = tukey(values)
    assert np.allclose(found, found.T)
    assert found[0, 2] > stats.ttest_rel(values[:, 0], values[:, 2]).pvalue


def test_an_interval_of_one_value_is_that_value() -> None:
    assert mean_interval(np.array([0.4])) == (0.4, 0.4, 0.4)

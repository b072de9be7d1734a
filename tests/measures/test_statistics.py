import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.regression.linear_model import OLS

from podium.errors import ArgumentError, DataError
from podium.measures.comparison import statistics
from podium.measures.comparison.statistics import holm, mean_interval, paired_difference, tukey

values = arrays(np.float64, st.integers(2, 8), elements=st.integers(0, 20).map(lambda n: n / 20))


def share_of_all_signs(differences: np.ndarray) -> float:
    """The randomization test by its definition: every choice of signs, one after the other."""
    sums = np.array(
        [
            abs(np.dot(signs, differences))
            for signs in itertools.product((1, -1), repeat=len(differences))
        ]
    )
    return float(np.mean(sums >= abs(differences.sum()) - 1e-9))


def randomization(differences: np.ndarray, seed: int = 0) -> float:
    nothing = np.zeros(len(differences))
    result = paired_difference(differences, nothing, tests=("randomization",), random_state=seed)
    return result.p_values["randomization"]


@given(values, values)
def test_randomization_of_few_queries_is_exact(ours: np.ndarray, theirs: np.ndarray) -> None:
    size = min(len(ours), len(theirs))
    differences = ours[:size] - theirs[:size]
    assert randomization(differences) == pytest.approx(share_of_all_signs(differences))


def test_randomization_by_hand() -> None:
    # Among ±1 ±1 ±1 ±2 only the sums 5 and -5 are as far from 0: 2 of 16.
    assert randomization(np.array([1.0, 1.0, 1.0, 2.0])) == 2 / 16
    # For 1 + 1 - 1 + 2, the sums of at least 3: 5, 3 (three ways), and their opposites.
    assert randomization(np.array([1.0, 1.0, -1.0, 2.0])) == 8 / 16
    # Queries without a difference take no part.
    assert randomization(np.array([0.0, 1.0, 1.0, 0.0, 1.0, 2.0, 0.0])) == 2 / 16


def test_randomization_of_twenty_queries_is_exact() -> None:
    differences = np.random.default_rng(101).normal(0.7, 1, 20)
    theirs = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf
    )
    assert theirs.pvalue == pytest.approx(0.0193, abs=5e-5)
    assert randomization(differences) == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("size", [30, 36])
def test_randomization_of_whole_numbers_is_exact(size: int) -> None:
    """Sums of integers are counted by adding one number after the other to a table."""
    differences = np.random.default_rng(size).integers(-3, 6, size)
    reach = int(np.abs(differences).sum())
    ways = np.zeros(2 * reach + 1)
    ways[reach] = 1
    for value in differences:
        ways = (np.roll(ways, value) + np.roll(ways, -value)) / 2
    sums = np.arange(-reach, reach + 1)
    expected = ways[np.abs(sums) >= abs(differences.sum())].sum()
    assert randomization(differences / 10) == pytest.approx(expected, abs=1e-12)


def test_signs_drawn_at_random_give_the_exact_p_value_within_their_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    differences = np.random.default_rng(9).normal(0.35, 1, 30)
    exact = randomization(differences)
    monkeypatch.setattr(statistics, "_EXACT", 0)
    drawn = np.array([randomization(differences, seed) for seed in range(20)])
    error = np.sqrt(exact * (1 - exact) / statistics.RESAMPLES)
    assert np.all(np.abs(drawn - exact) < 4 * error)
    # Independent draws scatter: those of one generator shifted by a draw would not.
    low, high = stats.chi2.ppf([0.0005, 0.9995], len(drawn))
    assert low < np.sum(((drawn - exact) / error) ** 2) < high
    assert randomization(differences, 3) == drawn[3]


@given(values, values)
def test_wilcoxon_of_few_queries_is_exact_with_ties_too(
    ours: np.ndarray, theirs: np.ndarray
) -> None:
    size = min(len(ours), len(theirs))
    changed = np.round(ours[:size] - theirs[:size], 12)
    changed = changed[changed != 0]
    result = paired_difference(ours[:size], theirs[:size], tests=("wilcoxon",))
    ranks = stats.rankdata(np.abs(changed)) * np.sign(changed)
    expected = share_of_all_signs(ranks) if len(changed) else 1.0
    assert result.p_values["wilcoxon"] == pytest.approx(expected)


@pytest.mark.parametrize("size", [30, 45])
def test_wilcoxon_without_ties_is_scipys(size: int) -> None:
    differences = np.random.default_rng(size).normal(0.3, 1, size)
    result = paired_difference(differences, np.zeros(size), tests=("wilcoxon",))
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert result.p_values["wilcoxon"] == pytest.approx(expected)


def test_resamples_are_all_different() -> None:
    sums = statistics._random_sums(np.random.default_rng(2).normal(0, 1, 77), random_state=0)
    assert len(np.unique(sums)) == len(sums) == statistics.RESAMPLES
    # Each query has either sign in half of them, independently of the others: for the sum of one
    # query alone there are two values, and a sum's variance is that of its parts.
    alone = statistics._random_sums(np.array([0.0] * 9 + [2.0]), random_state=4)
    assert set(alone) == {-2.0, 2.0}
    assert abs(np.mean(alone)) < 4 * 2 / np.sqrt(len(alone))


def test_randomization_of_many_queries_takes_bounded_memory() -> None:
    differences = np.random.default_rng(1).normal(0.003, 1, 100_000)
    tracemalloc.start()
    drawn = randomization(differences)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20
    # So many signs make a normal sum.
    exact = 2 * stats.norm.sf(abs(differences.sum()) / np.sqrt(np.sum(differences**2)))
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000))


def test_tests_equal_scipy() -> None:
    random = np.random.default_rng(1)
    ours, theirs = random.random(60), random.random(60)
    result = paired_difference(ours, theirs)
    assert result.p_values["t"] == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert result.p_values["wilcoxon"] == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)
    wins = int(np.sum(ours > theirs))
    assert result.p_values["sign"] == pytest.approx(stats.binomtest(wins, 60).pvalue)
    interval = stats.ttest_rel(ours, theirs).confidence_interval()
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high))
    differences = ours - theirs
    assert result.effect == pytest.approx(differences.mean() / differences.std(ddof=1))


@given(values)
def test_a_comparison_turned_round_has_the_same_p_values(ours: np.ndarray) -> None:
    theirs = ours[::-1].copy()
    one, other = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert one.mean == pytest.approx(-other.mean)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert one.p_values == pytest.approx(other.p_values)
    assert all(0 <= p <= 1 for p in one.p_values.values())


def test_equal_systems_do_not_differ() -> None:
    result = paired_difference(np.full(5, 0.3), np.full(5, 0.3))
    assert set(result.p_values.values()) == {1.0}
    assert (result.mean, result.effect, result.ties) == (0.0, 0.0, 5)


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm_by_its_definition(p_values: np.ndarray) -> None:
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    expected = np.empty(count)
    for position, index in enumerate(order):
        steps = [min(1.0, (count - step) * p_values[order[step]]) for step in range(position + 1)]
        expected[index] = max(steps)
    assert holm(p_values) == pytest.approx(expected)


def test_tukey_of_two_systems_is_the_paired_t_test() -> None:
    # With two systems the residual variance is half that of the differences, and the studentised
    # range of two means is |t| times the square root of 2.
    values = np.random.default_rng(5).random((40, 2))
    expected = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
    assert tukey(values)[0, 1] == pytest.approx(expected, abs=1e-6)


def test_tukey_of_four_systems_by_hand() -> None:
    """A two-way analysis of variance without replication, as statsmodels has it."""
    random = np.random.default_rng(6)
    queries, systems = 25, 4
    values = random.random((queries, systems)) + np.array([0, 0.1, 0.2, 0.05])
    rows, columns = np.divmod(np.arange(values.size), systems)
    design = np.column_stack(
        [np.ones(values.size)]
        + [rows == row for row in range(1, queries)]
        + [columns == column for column in range(1, systems)]
    ).astype(float)
    fitted = OLS(values.ravel(), design).fit()
    assert fitted.df_resid == (queries - 1) * (systems - 1)
    result = tukey(values)
    for one, other in itertools.combinations(range(systems), 2):
        gap = abs(values[:, one].mean() - values[:, other].mean())
        ratio = gap / np.sqrt(fitted.mse_resid / queries)
        expected = stats.studentized_range.sf(ratio, systems, fitted.df_resid)
        assert result[one, other] == result[other, one] == pytest.approx(expected, rel=1e-6)
    assert np.all(np.diag(result) == 1.0)


def test_one_query_decides_nothing() -> None:
    result = paired_difference(np.array([0.9]), np.array([0.1]))
    assert set(result.p_values.values()) == {1.0}
    assert math.isnan(result.effect)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.mean == pytest.approx(0.8)


def test_the_same_difference_on_every_query_has_an_infinite_effect() -> None:
    theirs = np.array([0.1, 0.3, 0.6])
    assert paired_difference(theirs + 0.2, theirs).effect == math.inf
    assert paired_difference(theirs - 0.1, theirs).effect == -math.inf
    p_values = paired_difference(theirs + 0.2, theirs).p_values
    assert p_values["t"] == p_values["randomization"] == 0.25


def test_the_interval_of_one_value_is_unknown() -> None:
    mean, low, high = mean_interval(np.array([0.4]))
    assert mean == 0.4
    assert math.isnan(low)
    assert math.isnan(high)


def test_rounding_is_no_difference() -> None:
    """Values that differ in their last digits are the same, for every test."""
    random = np.random.default_rng(7)
    ours = random.random(38)
    theirs = ours * (1 + 1e-15 * random.normal(size=38))
    result = paired_difference(ours, theirs)
    assert (result.wins, result.ties, result.losses, result.effect) == (0, 38, 0, 0.0)
    assert set(result.p_values.values()) == {1.0}
    assert tukey(np.column_stack((ours, theirs))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert tukey(np.array([[0.1 + 0.2, 0.3], [0.4, 0.4], [0.5, 0.5]])).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("exponent", [-1000, -40, 0, 1010])
def test_the_unit_of_values_changes_no_test(exponent: int) -> None:
    """DCG of long orders is about 1e300, whose squares are beyond a double."""
    random = np.random.default_rng(3)
    ours, theirs = random.random((2, 12))
    usual = paired_difference(ours, theirs)
    scaled = paired_difference(np.ldexp(ours, exponent), np.ldexp(theirs, exponent))
    assert scaled.p_values == usual.p_values
    assert scaled.effect == usual.effect
    for end in ("mean", "low", "high"):
        assert getattr(scaled, end) == np.ldexp(getattr(usual, end), exponent)
    both = np.column_stack((ours, theirs))
    assert tukey(np.ldexp(both, exponent)).tolist() == tukey(both).tolist()
    assert mean_interval(np.ldexp(ours, exponent)) == tuple(
        np.ldexp(each, exponent) for each in mean_interval(ours)
    )


def test_what_cannot_be_compared() -> None:
    one = np.array([0.2, 0.4, 0.5])
    for other in (np.array([0.3]), np.array([[0.2, 0.4, 0.5]]), np.zeros(0)):
        with pytest.raises(DataError, match="not of the same queries"):
            paired_difference(one, other)
    for value in (np.nan, np.inf, -np.inf):
        with pytest.raises(DataError, match="NaN or infinite"):
            paired_difference(one, np.array([0.2, value, 0.5]))
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ArgumentError, match="level is"):
            mean_interval(one, level)


def test_the_order_of_queries_changes_no_drawn_p_value() -> None:
    random = np.random.default_rng(5)
    differences = random.normal(0.1, 1.0, 60)
    p_values = {
        paired_difference(random.permutation(differences), np.zeros(60)).p_values["randomization"]
        for _ in range(5)
    }
    assert len(p_values) == 1


def test_other_levels_have_wider_and_narrower_intervals() -> None:
    sample = np.random.default_rng(3).random(12)
    for level in (0.8, 0.95, 0.99):
        expected = stats.ttest_1samp(sample, 0.0).confidence_interval(level)
        assert mean_interval(sample, level)[1:] == pytest.approx((expected.low, expected.high))
    # The interval of two values is known: Student's t with one degree of freedom.
    half = stats.t.ppf(0.975, 1) * abs(0.2 - 0.6) / 2
    assert mean_interval(np.array([0.2, 0.6])) == pytest.approx((0.4, 0.4 - half, 0.4 + half))


def test_differences_of_rounding_alone_are_ties() -> None:
    """A trillionth of the values is rounding, whatever their size; more than that is none."""
    for size in (1.0, 1e-20, 1e20):
        theirs = np.full(5, 0.5)
        ours = theirs + np.array([4e-13, -4e-13, 6e-13, -6e-13, 0.0])
        result = paired_difference(ours * size, theirs * size)
        assert (result.wins, result.ties, result.losses) == (1, 3, 1)
    result = paired_difference(np.array([1e-12, 2e-12]), np.zeros(2))
    assert (result.wins, result.effect) == (2, pytest.approx(1.5 / np.sqrt(0.5)))


def test_the_t_test_of_differences_without_spread() -> None:
    theirs = np.array([0.25, 0.5, 0.75])
    for shift, p_value in ((0.125, 0.25), (-0.125, 0.25), (0.0, 1.0)):
        result = paired_difference(theirs + shift, theirs, tests=("t",))
        assert result.p_values == {"t": p_value}
        assert result.mean == shift
        assert math.isnan(result.low)
        assert math.isnan(result.high)
    # Two queries are enough to know a spread.
    pair = np.array([0.1, 0.4])
    expected = stats.ttest_1samp(pair, 0.0).pvalue
    assert paired_difference(pair, np.zeros(2)).p_values["t"] == pytest.approx(expected)
    assert paired_difference(pair, np.zeros(2)).effect == pytest.approx(0.25 / np.sqrt(0.045))


def share_of_whole_numbers(values: np.ndarray) -> float:
    """The randomization test of integers: a table of how often each sum comes up."""
    reach = int(np.abs(values).sum())
    ways = np.zeros(2 * reach + 1)
    ways[reach] = 1
    for value in values:
        ways = (np.roll(ways, value) + np.roll(ways, -value)) / 2
    sums = np.arange(-reach, reach + 1)
    return float(ways[np.abs(sums) >= abs(values.sum())].sum())


@pytest.mark.parametrize("unit", [1e-9, 0.1, 1234567.1])
def test_randomization_is_the_same_in_any_unit(unit: float) -> None:
    whole = np.array([3, 1, -2, 5, 1, 4, -1, 2, 2, 3])
    assert randomization(whole * unit) == pytest.approx(share_of_whole_numbers(whole), abs=1e-12)


def test_more_than_36_queries_have_random_signs() -> None:
    differences = np.random.default_rng(8).normal(0.3, 1, 37)
    drawn = randomization(differences)
    assert drawn * (statistics.RESAMPLES + 1) == pytest.approx(
        round(drawn * (statistics.RESAMPLES + 1)), abs=1e-6
    )
    exact = randomization(differences[:36])
    assert exact * 2**36 == pytest.approx(round(exact * 2**36), abs=1e-6)
    assert exact * 10_001 != pytest.approx(round(exact * 10_001), abs=1e-6)
    # The observed signs count as one of the resamples: no p-value is 0.
    assert randomization(np.full(60, 0.5)) == 1 / (statistics.RESAMPLES + 1)


def test_the_first_seed_is_0() -> None:
    ours = np.random.default_rng(8).normal(0.1, 1, 50)
    default = paired_difference(ours, np.zeros(50)).p_values
    assert default == paired_difference(ours, np.zeros(50), random_state=0).p_values
    others = {
        paired_difference(ours, np.zeros(50), random_state=seed).p_values["randomization"]
        for seed in range(1, 6)
    }
    assert default["randomization"] not in others


def test_wilcoxon_with_ties_is_exact_up_to_36_queries() -> None:
    magnitudes = np.repeat(np.arange(1, 13), 3) / 10  # three of each: ranks are integers
    signs = np.where(np.random.default_rng(3).random(36) < 0.3, -1, 1)
    differences = magnitudes * signs
    ranks = (np.repeat(np.arange(12), 3) * 3 + 2) * signs
    result = paired_difference(differences, np.zeros(36), tests=("wilcoxon",))
    exact = share_of_whole_numbers(ranks)
    assert result.p_values["wilcoxon"] == pytest.approx(exact, abs=1e-12)
    assert stats.wilcoxon(differences, method="approx").pvalue != pytest.approx(exact, abs=1e-12)
    # With one value more, SciPy's normal approximation.
    more = np.append(differences, 0.1)
    result = paired_difference(more, np.zeros(37), tests=("wilcoxon",))
    expected = stats.wilcoxon(more, method="approx").pvalue
    assert result.p_values["wilcoxon"] == pytest.approx(expected, abs=1e-12)


def test_wilcoxon_ties_what_differs_by_rounding() -> None:
    # Ranks 1.5, 1.5, 3 and 4 with a sum of 7 of 10. Sums of 7 or more turn nothing, or one of the
    # first two: 3 choices, and 3 of the opposite signs. As ranks 1 to 4 it would be 4 of 16.
    ours = np.array([-0.1, 0.1 + 1e-14, 0.2, 0.3])
    assert paired_difference(ours, np.zeros(4)).p_values["wilcoxon"] == 6 / 16
    assert paired_difference(ours * 1e-13, np.zeros(4)).p_values["wilcoxon"] == 6 / 16
    # However small a loss is beside the rest, it is one: sums of 8 or more are 2 of 16 either way.
    small = np.array([-1e-13, 0.1, 0.2, 0.3])
    assert paired_difference(small, np.zeros(4)).p_values["wilcoxon"] == 4 / 16


def test_the_sign_test_leaves_ties_out() -> None:
    ours = np.array([0.1, 0.2, 0.0, 0.3, -0.1, 0.0, 0.4])
    # One loss of five: 1 + 5 of 32 on either side.
    assert paired_difference(ours, np.zeros(7)).p_values["sign"] == pytest.approx(2 * 6 / 32)


def test_tukey_without_residual_error() -> None:
    """Systems that differ by the same on every query: nothing is left to chance."""
    values = np.array([[0.0, 0.5, 0.0], [0.25, 0.75, 0.25], [0.5, 1.0, 0.5]])
    assert tukey(values).tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]


def test_systems_that_differ_by_rounding_alone_are_equal_to_tukey() -> None:
    values = np.random.default_rng(2).random(30)
    rounded = values * (1 + 1e-15)
    assert not np.array_equal(rounded, values)
    assert paired_difference(rounded, values).p_values["t"] == 1.0
    assert tukey(np.column_stack((values, rounded))).tolist() == [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("shape", [(1, 3), (5, 1), (1, 1)])
def test_tukey_of_one_query_or_one_system_decides_nothing(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).random(shape)
    assert tukey(values).tolist() == np.ones((shape[1], shape[1])).tolist()


def test_tukey_of_two_queries_is_computed() -> None:
    values = np.array([[0.1, 0.9], [0.2, 0.7]])
    expected = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
    assert tukey(values)[0, 1] == pytest.approx(expected, abs=1e-6)

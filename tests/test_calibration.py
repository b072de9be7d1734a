"""A short form of ``python -m benchmarks.statistics``: p-values and intervals are what they say."""

import numpy as np
import pytest
from scipy import stats

from benchmarks import statistics as calibration
from benchmarks.statistics import Findings, Row, binomial_range, sizes_of
from podium.measures.comparison import statistics


def wrong(found: Findings) -> list[Row]:
    assert found.rows
    return [row for row in found.rows if row.target and not all(row.right)]


def test_paired_tests_have_their_sizes() -> None:
    found = Findings()
    calibration.paired_tests(found, {20: 100, 50: 40})
    assert len(found.rows) == 5 * 2 * 5
    assert not wrong(found)


def test_drawn_p_values_are_exact_within_their_error() -> None:
    found = Findings()
    calibration.monte_carlo(found, 40)
    assert not wrong(found)


def test_intervals_cover() -> None:
    found = Findings()
    calibration.means(found, 200)
    assert not wrong(found)


def test_signs_drawn_again_and_again_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resamples of which only a few are different, as a bad generator makes them."""
    sums = statistics._random_sums

    def repeated(values: np.ndarray, seed: int) -> np.ndarray:
        return np.resize(sums(values, seed)[:200], statistics.RESAMPLES)

    monkeypatch.setattr(statistics, "_random_sums", repeated)
    found = Findings()
    calibration.monte_carlo(found, 40)
    assert len(wrong(found)) == 1


def test_a_test_that_is_too_bold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def bold(differences: np.ndarray, _seed: int) -> float:
        return float(stats.ttest_1samp(differences, 0.0).pvalue) / 3

    monkeypatch.setitem(statistics.TESTS, "t", bold)
    found = Findings()
    calibration.paired_tests(found, {50: 150})
    assert {row.what for row in wrong(found)} >= {"t"}


def test_sizes_by_hand() -> None:
    # Six queries: 2 / 2^6 is below .05, 2 * 7 / 2^6 is not; nothing is below .01.
    by_hand = pytest.approx((2 / 2**6, 0.0, 0.0))
    assert calibration._sign_size(6) == by_hand
    assert tuple(calibration._randomization_size(np.ones(6))) == by_hand
    assert calibration.wilcoxon_size(6) == by_hand
    low, high = binomial_range(0.5, 1000)
    assert (low, high) == pytest.approx((0.448, 0.552), abs=0.002)
    shares, lows, highs = sizes_of(
        np.array([0.04, 0.005, 0.2, 0.9]), (0.05, 0.01, 0.001), exact=True
    )
    assert shares == [0.5, 0.25, 0.0]
    assert lows == [0.0, 0.0, 0.0]
    assert highs[0] == stats.binom.ppf(0.9995, 4, 0.05) / 4

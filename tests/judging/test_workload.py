"""The range of hours that a plan states."""

import numpy as np
import pytest
from scipy import stats

from podium.errors import ArgumentError
from podium.judging import Overlap
from podium.judging.workload import Workload

SECONDS = 9.0


def work(judgments, queries, overlap=None):
    counts = np.asarray(judgments)
    return Workload("adaptive", queries, counts, counts, np.ones(len(counts)), overlap, SECONDS)


def test_hours_are_students_prediction_interval():
    """Interval of the sum of m more values after n: n x̄ ± t s sqrt(m + m²/n)."""
    judgments, queries = [40, 44, 51, 39, 46], 30
    mean, spread = np.mean(judgments), np.std(judgments, ddof=1)
    swing = stats.t.ppf(0.95, df=4) * spread * np.sqrt(queries + queries**2 / 5)
    low, high = work(judgments, queries).hours_within(0.9)
    assert low == pytest.approx((queries * mean - swing) * SECONDS / 3600)
    assert high == pytest.approx((queries * mean + swing) * SECONDS / 3600)
    narrow = work(judgments, queries).hours_within(0.5)
    assert low < narrow[0] < narrow[1] < high


@pytest.mark.parametrize("overlap", [None, Overlap(0.3, assessors=3)])
@pytest.mark.parametrize(("runs", "queries"), [(20, 500), (200, 40)])
def test_nine_of_ten_ranges_hold_the_hours_that_it_takes(runs, queries, overlap):
    """Counts from a known distribution; second opinions are drawn for each pair."""
    random = np.random.default_rng(runs)
    held, trials = 0, 600
    for _ in range(trials):
        seen, to_come = (40 + random.poisson(30, size) for size in (runs, queries))
        total = to_come.sum()
        if overlap is not None:
            total += (overlap.assessors - 1) * random.binomial(total, overlap.share)
        low, high = work(seen, queries, overlap).hours_within(0.9)
        held += low <= total * SECONDS / 3600 <= high
    assert held / trials == pytest.approx(0.9, abs=4 * np.sqrt(0.9 * 0.1 / trials))


def test_hours_are_never_below_none():
    assert work([1, 300], 1).hours_within(0.99)[0] == 0


def test_a_single_query_and_nonsense_have_no_range():
    with pytest.raises(ArgumentError, match="one simulated query has no range"):
        work([40], 30).hours_within()
    for confidence in (0.0, 1.0, 90):
        with pytest.raises(ArgumentError, match=f"confidence is {confidence}"):
            work([40, 41], 30).hours_within(confidence)


def test_people_are_as_many_as_the_hours_need():
    workload = work([40, 40], 90)  # 90 x 40 x 9 s are nine hours
    assert workload.hours == 9
    assert [workload.people(hours) for hours in (9, 8.9, 4.5, 1)] == [1, 2, 2, 9]
    with pytest.raises(ArgumentError, match="0 hours are too few"):
        workload.people(0)

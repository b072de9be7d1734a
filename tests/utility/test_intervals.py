"""Every interval that is printed, against all samples counted out."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from podium.data.gains import GainsName
from podium.errors import ArgumentError, DataError
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.bootstrap import bootstrap_utility, position_test
from podium.utility.report import _ends
from podium.utility.utility_tables import usual_table
from tests.utility.people import judged, random_pairs

MODEL = DCGLearn(2.0, "by-position")


def three_queries() -> RankingPreferences:
    """Three queries of two, three and five pairs, with weights."""
    pairs = judged(random_pairs(10, 2, seed=6), np.outer([1.0, 0.5], [0.0, 0.6, 1.0]))
    return RankingPreferences.from_arrays(
        pairs.left,
        pairs.right,
        pairs.choices,
        queries=np.repeat([5, 7, 9], [2, 3, 5]),
        pair_weights=np.tile([1.0, 2.0], 5),
        grades=3,
    )


def all_samples(pairs: RankingPreferences) -> list[RankingPreferences]:
    """The 27 samples of three queries, each query's pairs as often as it was drawn."""
    queries = np.unique(pairs.queries)
    return [
        pairs.take(np.concatenate([np.flatnonzero(pairs.queries == query) for query in drawn]))
        for drawn in product(queries, repeat=3)
    ]


def test_intervals_of_gains_are_the_quantiles_of_all_samples() -> None:
    """Each end is a sample that comes up once in 27, or oftener: more than 2.5 %."""
    pairs = three_queries()
    learned = MODEL.fit(pairs).learned_
    fits = [MODEL.fit(sample).learned_ for sample in all_samples(pairs)]
    result = bootstrap_utility(MODEL, pairs, learned, resamples=400, random_state=1)
    assert (result.level, result.resamples) == (0.95, 400)
    for name in ("gains", "discounts", "table"):
        values = np.array(
            [fit.table / fit.table.max() if name == "table" else getattr(fit, name) for fit in fits]
        )
        low, high = getattr(result, name)
        assert low == pytest.approx(values.min(axis=0), abs=1e-4)
        assert high == pytest.approx(values.max(axis=0), abs=1e-4)
    assert np.ptp(result.gains[:, 1]) > 0.05  # there is something to see


def test_a_lower_level_is_a_narrower_interval_of_the_same_samples() -> None:
    pairs = three_queries()
    learned = MODEL.fit(pairs).learned_
    values = np.sort([MODEL.fit(sample).learned_.gains[1] for sample in all_samples(pairs)])
    result = bootstrap_utility(MODEL, pairs, learned, resamples=600, level=0.5, random_state=2)
    # The quartiles of 600 samples of 27 equally likely ones are within two of the exact ones.
    assert values[7 - 3] - 1e-4 <= result.gains[0, 1] <= values[7 + 2] + 1e-4
    assert values[20 - 3] - 1e-4 <= result.gains[1, 1] <= values[20 + 2] + 1e-4


def test_samples_without_gains_are_left_out_and_counted() -> None:
    """One of two queries says nothing by itself: one sample in four is that one twice."""
    pairs = RankingPreferences.from_arrays(
        [[1, 0]] * 3 + [[0, 0]], [[0, 0]] * 3 + [[1, 0]], [1] * 4, queries=[0, 0, 0, 1]
    )
    seen: list[tuple[int, int]] = []
    result = bootstrap_utility(
        MODEL,
        pairs,
        MODEL.fit(pairs).learned_,
        resamples=200,
        progress=lambda *done: seen.append(done),
    )
    assert result.resamples == pytest.approx(150, abs=4 * np.sqrt(200 * 3 / 16))
    assert seen == [(number, 200) for number in range(1, 201)]
    with pytest.raises(DataError, match="hardly any sample has a strict preference"):
        bootstrap_utility(MODEL, pairs.take([3]), MODEL.fit(pairs).learned_, resamples=5)
    for level in (0.0, 1.0):
        with pytest.raises(ArgumentError, match=f"5 resamples at level {level}"):
            bootstrap_utility(MODEL, pairs, MODEL.fit(pairs).learned_, resamples=5, level=level)


def test_the_ends_of_accuracies_are_those_of_all_samples() -> None:
    queries = np.array([4, 4, 4, 6, 6, 8])
    weights = np.array([1.0, 1.0, 2.0, 3.0, 1.0, 2.0])
    values = np.array([[1.0, 0.0, 1.0, 0.5, 0.0, 1.0], [0.0, 1.0, 0.5, 0.5, 1.0, 0.0]])
    low, high = _ends(queries, weights, values, random_state=0)
    for row, one, other in zip(values, low, high, strict=True):
        means = []
        for drawn in product((4, 6, 8), repeat=3):
            rows = np.concatenate([np.flatnonzero(queries == query) for query in drawn])
            means.append(np.average(row[rows], weights=weights[rows]))
        # The least and the largest mean come up once in 27 samples, more than once in 40.
        assert (one, other) == pytest.approx((min(means), max(means)))


def test_many_queries_have_the_interval_of_the_normal_approximation() -> None:
    random = np.random.default_rng(0)
    right = (random.random(4000) < 0.8).astype(float)
    low, high = _ends(np.arange(4000), np.ones(4000), right[None], random_state=3)
    error = 1.959964 * np.sqrt(right.mean() * (1 - right.mean()) / 4000)
    assert (low[0], high[0]) == pytest.approx(
        (right.mean() - error, right.mean() + error), abs=0.1 * error
    )


def test_bands_of_a_report_are_weighted_as_shares_are() -> None:
    pairs = judged(random_pairs(160, 3, seed=2), np.outer([1.0, 0.6, 0.3], [0.0, 0.3, 1.0]))
    exponential = pairs.leads(usual_table(3, 3, "exponential"))
    agreed = np.sign(exponential) == pairs.choices
    weighted = replace(pairs, pair_weights=np.where(agreed, 1.0, 0.0))
    result = utility_report(weighted, DCGLearn(1.0), resamples=20, test_position=False)
    usual = result.accuracies[1]
    assert usual.share == 1.0
    assert usual.bands == (1.0,) * 5


def test_accuracies_of_a_report_are_shares_with_their_bands() -> None:
    pairs = judged(random_pairs(160, 3, seed=2), np.outer([1.0, 0.6, 0.3], [0.0, 0.3, 1.0]))
    result = utility_report(pairs, DCGLearn(1.0), resamples=20, test_position=False)
    strict = np.flatnonzero(pairs.choices != 0)
    usual_gains: tuple[GainsName, ...] = ("exponential", "linear")
    for accuracy, gains in zip(result.accuracies[1:], usual_gains, strict=True):
        leads = pairs.leads(usual_table(3, 3, gains))[strict]
        agreed = np.where(leads == 0, 0.5, np.sign(leads) == pairs.choices[strict])
        assert accuracy.share == pytest.approx(agreed.mean())
        usual = np.abs(pairs.leads(usual_table(3, 3, "exponential")))[strict]
        parts = np.array_split(agreed[np.argsort(usual, kind="stable")], 5)
        assert accuracy.bands == pytest.approx([part.mean() for part in parts])
        assert accuracy.low < accuracy.share < accuracy.high
        assert accuracy.ahead[0] == pytest.approx(result.accuracies[0].share - accuracy.share)
        assert accuracy.ahead[1] <= accuracy.ahead[0] <= accuracy.ahead[2]
    assert result.accuracies[0].ahead == (0.0, 0.0, 0.0)
    assert result.counts == tuple(
        int((pairs.choices == choice).sum()) for choice in (2, 1, 0, -1, -2)
    )


def test_the_test_of_positions_compares_both_objectives() -> None:
    pairs = judged(random_pairs(120, 2, seed=1), np.array([[0, 1, 9], [0, 4, 5.0]]))
    free, single = (DCGLearn(1.0, form).fit(pairs).learned_ for form in ("by-position", "rank-one"))
    result = position_test(DCGLearn(1.0, "rank-one"), pairs, resamples=9, random_state=4)
    assert result.gain == pytest.approx(1 - free.objective / single.objective)
    assert result.gain > 0.05
    assert result.resamples == 9
    assert result.p_value == 1 / 10  # no draw of people without such gains saves as much
    assert 0 <= result.expected < result.gain

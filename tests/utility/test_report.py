"""Intervals, the test of positions, comparisons of systems, and the page that shows them."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from podium.errors import ArgumentError, DataError
from podium.utility import DCGLearn, RankingPreferences, utility_report
from podium.utility.bootstrap import bootstrap_utility, position_test
from podium.utility.report_html import report_html
from podium.utility.systems import flips
from tests.utility.people import TRUTH, people, runs


@pytest.mark.slow
def test_intervals_hold_what_is_learned_from_everyone_as_often_as_they_say() -> None:
    model = DCGLearn(1.0)
    everyone = model.fit(people(40_000, 1000)).learned_
    expected = np.concatenate((everyone.gains[1:2], everyone.discounts[1:]))
    inside = []
    for seed in range(20):
        pairs = people(300, seed)
        result = bootstrap_utility(
            model, pairs, model.fit(pairs).learned_, resamples=60, random_state=seed
        )
        low, high = np.concatenate((result.gains[:, 1:2], result.discounts[:, 1:]), axis=1)
        inside += ((low <= expected) & (expected <= high)).tolist()
    assert np.mean(inside) > 0.82  # 0.95 is asked for; 60 values in 20 draws


def test_intervals_shrink_with_more_preferences() -> None:
    widths = []
    for count in (150, 2400):
        pairs = people(count, 1)
        model = DCGLearn(1.0)
        result = bootstrap_utility(model, pairs, model.fit(pairs).learned_, resamples=60)
        widths.append(float(np.diff(result.gains[:, 1])[0]))
    assert widths[1] < widths[0] / 2


def test_pairs_of_a_query_are_drawn_together() -> None:
    """One query alone is drawn whole every time: nothing varies."""
    pairs = people(200, 1)
    single = RankingPreferences.from_arrays(
        pairs.left, pairs.right, pairs.choices, queries=["q"] * 200
    )
    model = DCGLearn(1.0)
    result = bootstrap_utility(model, single, model.fit(single).learned_, resamples=5)
    assert result.gains[0] == pytest.approx(result.gains[1], abs=1e-4)


def test_nonsense_resamples_are_refused() -> None:
    pairs = people(50, 1)
    learned = DCGLearn(1.0).fit(pairs).learned_
    with pytest.raises(ArgumentError, match="1 resamples"):
        bootstrap_utility(DCGLearn(1.0), pairs, learned, resamples=1)
    with pytest.raises(ArgumentError, match="0 resamples"):
        position_test(DCGLearn(1.0), pairs, resamples=0)
    with pytest.raises(ArgumentError, match="no C"):
        position_test(DCGLearn(), pairs)


@pytest.mark.slow
def test_the_test_of_positions_errs_as_seldom_as_it_says_and_finds_what_is_there() -> None:
    by_position = np.array([[0, 0.1, 1.0], [0, 0.8, 0.9], [0, 0.7, 0.8]])
    model = DCGLearn(1.0)
    wrong = [position_test(model, people(300, s), resamples=19).p_value for s in range(40)]
    right = [
        position_test(model, people(300, s, by_position), resamples=19).p_value for s in range(15)
    ]
    assert np.mean(np.array(wrong) <= 0.05) <= 0.2  # 0.05 expected; 8 of 40 has chance 0.0007
    assert np.mean(np.array(right) <= 0.05) >= 0.7


def test_comparisons_turn_round_when_people_like_many_fair_documents() -> None:
    judgments, systems = runs()
    result = flips(DCGLearn(10.0).fit(people(600, 1)).learned_, judgments, systems)
    turned = {(pair.one, pair.other): pair.flips for pair in result.pairs}
    assert turned == {("one", "many"): True, ("one", "none"): False, ("many", "none"): False}
    assert result.share == pytest.approx(1 / 3)
    pair = result.pairs[0]
    assert pair.usual > 0 > pair.learned
    assert pair.queries_flipped == 1.0
    assert 0 < pair.keeps < 1
    with pytest.raises(ArgumentError, match="1 systems"):
        flips(DCGLearn(10.0).fit(people(600, 1)).learned_, judgments, {"one": systems["one"]})


@pytest.fixture(scope="module")
def result():
    judgments, systems = runs()
    pairs = people(500, 3)
    stages: list[str] = []

    def stage(title: str):
        stages.append(title)
        return lambda done, total: stages.append(f"{done}/{total}")

    result = utility_report(
        pairs,
        resamples=40,
        flips=lambda learned: flips(learned, judgments, systems),
        progress=stage,
    )
    assert {"Choosing C", "Held-out accuracy", "Intervals", "Test of positions"} <= set(stages)
    assert "40/40" in stages
    return result


def test_a_report_measures_on_what_was_held_out(result) -> None:
    learned, *baselines = result.accuracies
    assert result.pairs == 500
    assert learned.low <= learned.share <= learned.high
    for other in baselines:
        assert learned.share > other.share
        assert other.ahead[0] == pytest.approx(learned.share - other.share)
        assert len(other.bands) == 5
    assert result.learned.accuracy(people(3000, 77)) > 0.85
    assert result.flips.share == pytest.approx(1 / 3)
    assert not result.same_documents


def test_the_notes_say_it_in_words(result) -> None:
    notes = " ".join(result.notes())
    assert "the learned utility is clearly ahead of 2^l - 1" in notes
    assert "33% of 3 comparisons of systems flip if nDCG@3" in notes
    assert "too few" not in notes


def test_few_preferences_and_same_documents_are_said_plainly() -> None:
    random = np.random.default_rng(0)
    sides = [random.permuted(np.tile([2, 1, 0], (40, 1)), axis=1) for _ in range(2)]
    pairs = RankingPreferences.from_arrays(*sides)
    pairs = pairs.with_choices(np.sign(pairs.leads(TRUTH)))
    notes = " ".join(utility_report(pairs, resamples=20, test_position=False).notes())
    assert "strict preferences are too few" in notes
    assert "same documents in two orders" in notes


def test_the_page_is_whole_and_loads_nothing(result) -> None:
    page = report_html(result)
    assert not re.search(r"(src|href)=|@import|url\(|<script", page)
    for svg in re.findall(r"<svg.*?</svg>", page, re.S):
        ET.fromstring(svg)
    assert page.count("<svg") == 3
    assert repr(result.learned.measure) in page
    assert "<td class='down'>flips</td>" in page


def test_the_same_seed_gives_the_same_page() -> None:
    pages = [
        report_html(
            utility_report(people(150, 3), DCGLearn(1.0), resamples=20, test_position=False)
        )
        for _ in range(2)
    ]
    assert pages[0] == pages[1]


def test_ties_alone_make_no_report() -> None:
    with pytest.raises(DataError, match="no strict preference"):
        utility_report(RankingPreferences.from_arrays([[1, 0]], [[0, 1]], [0]))

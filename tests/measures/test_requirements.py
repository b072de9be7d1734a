"""Requirements: what they mean, what shows them, and how often systems pass that should not."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from benchmarks._null_queries import ndcg, reciprocal_rank
from podium.data import Dataset
from podium.data.preferences import Preferences
from podium.errors import ArgumentError, DataError
from podium.measures import TopKLoss, compare, nDCG, require
from podium.measures.comparison.decision import Look, Requirement
from podium.measures.comparison.details import Details
from podium.measures.comparison.formats import as_json, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.comparison.one_sided import MeanTest, mean_above, queries_to_show
from podium.measures.comparison.statistics import holm
from podium.measures.evaluation import ByMeasure


@pytest.mark.parametrize(
    ("text", "measure", "factor", "offset", "column", "value"),
    [
        ("nDCG@10 >= baseline - 0.005", nDCG @ 10, 1.0, -0.005, "", ""),
        (" ndcg_cut_10>=baseline-.5e-2 ", nDCG @ 10, 1.0, -0.005, "", ""),
        ("nDCG@10 > baseline", nDCG @ 10, 1.0, 0.0, "", ""),
        ("nDCG@10 > baseline + 0.01", nDCG @ 10, 1.0, 0.01, "", ""),
        ("nDCG@10 >= baseline - 1 %", nDCG @ 10, 0.99, 0.0, "", ""),
        ("nDCG@10 >= 0.4", nDCG @ 10, 0.0, 0.4, "", ""),
        ("TopKLoss(k=3) <= baseline + 0.1", TopKLoss(k=3), 1.0, 0.1, "", ""),
        ("TopKLoss(k=3) < 2", TopKLoss(k=3), 0.0, 2.0, "", ""),
        ("nDCG@10 >= baseline - 0.02 in each language", nDCG @ 10, 1.0, -0.02, "language", ""),
        ("nDCG@10 >= 0.4 in query type = how to", nDCG @ 10, 0.0, 0.4, "query type", "how to"),
    ],
)
def test_text_stands_for_a_requirement(text, measure, factor, offset, column, value) -> None:
    requirement = Requirement.parse(text)
    assert requirement.measure == measure
    assert (requirement.factor, requirement.offset) == pytest.approx((factor, offset))
    assert (requirement.column, requirement.value) == (column, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@10", "is not a requirement"),
        ("nDCG@10 >= baseline - 0.005 - 0.1", "is not a requirement"),
        ("nDCG@10 => baseline", "'nDCG@10 => baseline' is not a requirement"),
        ("nDCG@10 >= __import__('os')", "is not a requirement"),
        ("nDCG@10 >= " + "1" * 1000, "is not a requirement"),
        ("nDCG@10 >= 1e999", "infinite"),
        ("nDCG@10 >= baseline", "cannot be shown"),
        ("nDCG@10 <= baseline + 0.1", "larger values are better"),
        ("TopKLoss(k=3) >= baseline - 0.1", "smaller values are better"),
        ("nDGC@10 > baseline", "Did you mean"),
        ("nDCG@10 >= baseline - 100%", "nothing of the baseline"),
    ],
)
def test_other_text_is_refused_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Requirement.parse(text)


def by_hall(values: np.ndarray, bound: float, share: float | None = None) -> float:
    """The p-value as the formulas have it; ``share`` is that of the variance in the mean's."""
    count = len(values)
    root = math.sqrt(1 / count if share is None else share)
    t = (float(values.mean()) - bound) / (float(np.std(values, ddof=1)) * root)
    skew = min(float(stats.skew(values)) - math.sqrt(6 / count), 0.0) * root
    return float(stats.t.sf(t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6, count - 1))


def by_t(values: np.ndarray, bound: float, level: float, weights: Any = None) -> MeanTest:
    """The test where no value is below the mean, so that no loss can be unseen."""
    return mean_above(values, bound, level, float(np.average(values, weights=weights)), weights)


def test_it_is_the_t_test_corrected_for_skewness() -> None:
    values = np.array([-0.3, -0.1, 0.1, 0.3, 0.2, 0.4])
    tested = by_t(values, 0.05, 0.05)
    assert tested.p_value == pytest.approx(by_hall(values, 0.05))
    assert tested.p_value > stats.ttest_1samp(values, 0.05, alternative="greater").pvalue
    assert tested.mean == pytest.approx(float(values.mean()))
    assert tested.deviation == pytest.approx(float(np.std(values, ddof=1)))


def test_rare_losses_make_it_cautious_and_rare_gains_leave_the_t_test() -> None:
    losses = np.array([0.1] * 19 + [-1.0])
    assert by_t(losses, 0.0, 0.05).p_value == pytest.approx(by_hall(losses, 0.0))
    gains = np.array([-0.1] * 19 + [3.0])
    expected = stats.ttest_1samp(gains, -0.2, alternative="greater")
    tested = by_t(gains, -0.2, 0.05)
    assert tested.p_value == pytest.approx(float(expected.pvalue))
    assert tested.low == pytest.approx(float(expected.confidence_interval(0.95).low))


@pytest.mark.parametrize("seed", range(20))
def test_the_limit_is_beyond_the_bound_exactly_if_it_is_shown(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.exponential(1.0, 12) * random.choice([-1.0, 1.0])
    for least in (float(values.mean()), -1.0, -50.0):
        tested = mean_above(values, 0.0, 0.05, least)
        # At the limit the p-value is the level.
        assert mean_above(values, tested.low, 0.05, least).p_value == pytest.approx(0.05)


def test_losses_that_no_query_has_are_counted() -> None:
    """With the share q of queries at the least value the mean is at the bound; n miss them all."""
    values = np.array([0.1, 0.12, 0.11, 0.09, 0.1, 0.1])
    q = (values.mean() + 0.02) / (values.mean() + 1.0)
    tested = mean_above(values, -0.02, 0.05, -1.0)
    assert tested.p_value == tested.unseen == pytest.approx((1 - q) ** 6)
    assert (1 - q) * values.mean() + q * -1.0 == pytest.approx(-0.02)
    assert by_t(values, -0.02, 0.05).p_value < 1e-3
    assert mean_above(values, -0.02, 0.05, -0.01).unseen == 0.0


def test_equal_weights_change_nothing_and_weights_are_those_of_the_jackknife() -> None:
    values = np.array([0.1, -0.2, 0.4, 0.3, 0.2])
    plain = mean_above(values, 0.0, 0.05, -1.0)
    assert vars(mean_above(values, 0.0, 0.05, -1.0, np.full(5, 2.0))) == pytest.approx(vars(plain))
    weights = np.array([1.0, 1.0, 1.0, 3.0, 1.0])
    weighted = by_t(values, 0.0, 0.05, weights)
    mean = np.average(values, weights=weights)
    assert weighted.mean == pytest.approx(mean)
    without = [
        np.average(np.delete(values, query), weights=np.delete(weights, query))
        for query in range(5)
    ]
    moved = 4 * (mean - np.array(without))
    assert weighted.deviation == pytest.approx(math.sqrt(np.sum(moved**2) / 4))
    assert weighted.effective == pytest.approx(7**2 / 13 / 5)
    # A query that is not there may be as heavy as the heaviest.
    heavy = mean_above(values, 0.0, 0.05, -1.0, weights)
    assert heavy.least == pytest.approx(mean + 5 * 3 / 7 * (-1.0 - mean))
    alone = mean_above(values, 0.0, 0.05, -1.0, np.array([1e9, 1.0, 1.0, 1.0, 1.0]))
    assert (alone.p_value, math.isnan(alone.low)) == (1.0, True)


def test_values_without_spread() -> None:
    tested = mean_above(np.full(5, 0.2), 0.1, 0.05, -1.0)
    assert tested.p_value == pytest.approx((1.1 / 1.2) ** 5)
    # 0.05 is the chance that five queries miss all of those that make the mean this low.
    assert tested.low == pytest.approx(0.2 - (1 - 0.05**0.2) * 1.2)
    assert mean_above(np.full(5, 0.1), 0.1, 0.05, -1.0).p_value == 1.0
    assert mean_above(np.full(5, 0.0), 0.1, 0.05, -1.0).p_value == 1.0
    single = mean_above(np.array([0.3]), 0.1, 0.05, -1.0)
    assert (single.mean, single.p_value) == (0.3, 1.0)
    assert math.isnan(single.low)


def made_up(queries: int = 60, gain: float = 0.8, *, systems: int = 2, seed: int = 3):
    """Judgments and runs of random documents, the later systems with more of the label."""
    random = np.random.default_rng(seed)
    truth, runs = {}, {f"s{system}": {} for system in range(systems)}
    for query in range(queries):
        labels = random.integers(0, 3, 8)
        truth[f"q{query}"] = {f"d{row}": int(label) for row, label in enumerate(labels)}
        for system, run in enumerate(runs.values()):
            scores = labels * (0.3 + gain * (system > 0)) + random.normal(size=8)
            run[f"q{query}"] = {f"d{row}": float(score) for row, score in enumerate(scores)}
    return truth, runs


def test_each_requirement_is_the_one_sided_test_of_its_differences() -> None:
    truth, runs = made_up()
    comparison = compare(["nDCG@5", "AP"], truth, runs)
    decision = require(
        comparison,
        "nDCG@5 >= baseline - 0.01",
        "AP > baseline + 0.02",
        "nDCG@5 >= baseline - 5%",
        "AP >= 0.6",
    )
    ndcg5, ap = comparison.values["nDCG@5"], comparison.values["AP"]
    expected = [
        mean_above(ndcg5[:, 1] - ndcg5[:, 0], -0.01, 0.05, -ndcg5[:, 0].max()),
        mean_above(ap[:, 1] - ap[:, 0], 0.02, 0.05, -ap[:, 0].max()),
        mean_above(ndcg5[:, 1] - 0.95 * ndcg5[:, 0], 0.0, 0.05, -0.95 * ndcg5[:, 0].max()),
        mean_above(ap[:, 1], 0.6, 0.05, 0.0),
    ]
    # A percentage is shown as a difference from the baseline, too.
    shifts = [0.0, 0.0, -0.05 * ndcg5[:, 0].mean(), 0.0]
    for result, test, shift in zip(decision.results, expected, shifts, strict=True):
        assert result.value == pytest.approx(test.mean + shift)
        assert result.limit == pytest.approx(test.low + shift)
        assert result.bound == pytest.approx(result.requirement.offset + shift)
        assert result.p_value == result.corrected == pytest.approx(test.p_value)
        assert result.shown == (test.p_value < 0.05)
    assert decision.ships == {"s1": True}
    assert decision.shown


def test_one_requirement_that_is_not_shown_stops_the_system() -> None:
    truth, runs = made_up()
    comparison = compare("nDCG@5", truth, runs)
    decision = require(comparison, "nDCG@5 > baseline", "nDCG@5 >= 0.99")
    assert [result.shown for result in decision.results] == [True, False]
    assert not decision.shown
    assert decision.results[1].missing.startswith("the mean is not beyond the bound")


def test_of_losses_smaller_values_have_to_be_shown() -> None:
    truth, runs = made_up()
    comparison = compare("TopKLoss(k=3)", truth, runs)
    better = require(comparison, "TopKLoss(k=3) < baseline").results[0]
    values = comparison.values["TopKLoss(k=3)"]
    test = mean_above(values[:, 0] - values[:, 1], 0.0, 0.05, values[:, 0].min() - 1.0)
    assert (better.value, better.limit) == pytest.approx((-test.mean, -test.low))
    assert better.shown
    assert better.limit < better.bound
    turned = dict(reversed(runs.items()))
    worse = require(compare("TopKLoss(k=3)", truth, turned), "TopKLoss(k=3) <= baseline + 0.001")
    assert not worse.shown


def test_what_is_missing_is_a_number_of_queries() -> None:
    truth, runs = made_up(queries=30, gain=0.15)
    result = require(compare("nDCG@5", truth, runs), "nDCG@5 > baseline").results[0]
    assert not result.shown
    assert result.needed is not None
    assert result.needed > 30
    assert result.unseen >= 0.05
    assert result.missing == (
        "cannot be decided with 30 queries: so few may lack the rare bad ones that would bring the "
        f"mean to the bound; about {result.needed:,} are needed"
    )
    gains = 0.12 + 0.45 * np.tile([1.0, -1.0], 15)
    table = np.column_stack([np.full(30, 0.5), 0.5 + gains])
    comparison = compare("nDCG@5", truth, runs)
    wide = replace(comparison, values=ByMeasure({comparison.measures[0]: table}))
    result = require(wide, "nDCG@5 > baseline").results[0]
    assert not result.shown
    assert result.unseen < 0.05
    assert result.missing == (
        f"about {result.needed:,} queries would show it (80 % power), there are 30"
    )


@pytest.mark.parametrize(("queries", "margin"), [(6, 0.01), (60, 0.04), (298, 0.01)])
def test_the_same_run_twice_shows_nothing_with_too_few_queries(queries: int, margin) -> None:
    """A system that loses all on every hundredth query is the same on most samples of 100."""
    truth = {f"q{query}": {"a": 1} for query in range(queries)}
    run = {query: {"a": 2.0, "b": 1.0} for query in truth}
    comparison = compare("P@1", truth, {"old": run, "new": run})
    result = require(comparison, f"P@1 >= baseline - {margin}").results[0]
    assert result.p_value == pytest.approx((1 - margin) ** queries)
    assert (result.shown, result.limit) == (False, pytest.approx(0.05 ** (1 / queries) - 1))
    assert result.needed == math.floor(math.log(0.05) / math.log(1 - margin)) + 1 > queries
    assert not require(comparison, "P@1 > baseline").shown


def test_the_same_run_twice_is_not_inferior_with_enough_queries() -> None:
    truth = {f"q{query}": {"a": 1} for query in range(299)}
    run = {query: {"a": 2.0, "b": 1.0} for query in truth}
    comparison = compare("P@1", truth, {"old": run, "new": run})
    assert require(comparison, "P@1 >= baseline - 0.01").shown
    assert not require(comparison, "P@1 >= baseline - 0.01", look="1/5").shown


def test_fewer_queries_than_the_test_was_calibrated_for_show_nothing() -> None:
    """However large the gain: benchmarks.statistics begins at five queries."""
    others = {f"x{number}": 0 for number in range(9)}
    for queries in (1, 4, 5):
        truth = {f"q{number}": {"a": 1, **others} for number in range(queries)}
        old = {query: {"a": 0.0, **dict.fromkeys(others, 1.0)} for query in truth}
        new = {query: {"a": 2.0, **dict.fromkeys(others, 1.0)} for query in truth}
        result = require(compare("RR", truth, {"old": old, "new": new}), "RR > baseline").results[0]
        assert result.shown == (queries == 5)
        if queries < 5:
            assert (result.p_value, math.isnan(result.limit)) == (1.0, True)
            assert result.missing == (
                f"cannot be decided with fewer than 5 queries, there are {queries}"
            )


def test_most_queries_without_a_judged_document_show_nothing() -> None:
    """Their documents may have other ids: such a baseline is easily beaten."""
    truth = {f"q{number}": {"a": 1, "b": 0} for number in range(12)}
    names = list(truth)
    good = {query: {"a": 2.0, "b": 1.0} for query in truth}
    kinds = {"kind": {query: "odd" if query in names[:6] else "even" for query in truth}}

    def results(unknown: int, wish: str, judged: Any = truth) -> Any:
        old = {query: {"x": 1.0} if query in names[:unknown] else good[query] for query in truth}
        systems = {"old": old, "new": good}
        return require(compare("RR", judged, systems), wish, properties=kinds).results

    wish = "RR >= baseline - 0.4"
    assert results(6, wish)[0].shown
    (result,) = results(7, wish)
    assert (result.shown, result.p_value, result.needed) == (False, 1.0, None)
    assert result.uncovered in result.missing
    assert "old has no judged document among the first for 7 of 12 queries" in result.uncovered
    # The mean of the other system does not depend on the baseline.
    assert results(7, "RR >= 0.4")[0].shown
    # Each slice has its own queries.
    by_kind = {each.slice_name: each for each in results(6, "RR > baseline in each kind")}
    assert by_kind["kind=odd"].uncovered
    assert not by_kind["kind=even"].uncovered
    # Where only relevant documents were judged, such a query may be one without a hit.
    relevant = {query: {"a": 1} for query in truth}
    assert results(7, wish, relevant)[0].shown
    for unknown, said in ((11, True), (7, True), (6, False)):
        old = {query: {"x": 1.0} if query in names[:unknown] else good[query] for query in truth}
        comparison = compare("RR", relevant, {"old": old, "new": good})
        decision = require(comparison, "RR > baseline", "RR >= 0.4")
        assert decision.shown
        sentence = f"old has no judged document among the first for {unknown} of 12 queries, and "
        assert [each.startswith(sentence) for each in decision.warnings()] == [True] * said
        for write in (as_markdown, as_json, as_html):
            assert ("cannot be known" in write(comparison, Details(decision))) == said


@pytest.mark.parametrize("queries", [5, 10, 20, 50, 200])
def test_rare_losses_of_everything_pass_at_most_at_the_level(queries: int) -> None:
    """Exactly, by the binomial: each share q of queries is lost, and the margin is q."""
    passed = []
    for share in np.linspace(0.002, 0.5, 60).tolist():
        lost = np.arange(queries + 1)
        shown = [
            mean_above(-(np.arange(queries) < count).astype(float), -share, 0.05, -1.0).p_value
            < 0.05
            for count in lost[lost <= share * queries]  # none with more losses passes
        ]
        chances = stats.binom.pmf(lost[: len(shown)], queries, share)
        passed.append(float(chances[np.array(shown)].sum()))
    assert max(passed) < 0.056


def test_queries_that_only_the_baseline_answers_are_not_left_out_in_silence() -> None:
    truth, runs = made_up()
    part = {query: run for query, run in runs["s1"].items() if query > "q3"}
    systems = {"old": runs["s0"], "new": part}
    by_tool = compare("nDCG@5", truth, systems, conventions="trec_eval")
    assert by_tool.unanswered == {"new": by_tool.left_out}
    with pytest.raises(DataError, match=rf"'new' has no value for {by_tool.left_out} of the"):
        require(by_tool, "nDCG@5 >= baseline - 0.5")
    assert require(compare("nDCG@5", truth, systems), "nDCG@5 >= baseline - 0.6").shown
    # Queries that the baseline lacks do not count against the other system.
    other = compare("nDCG@5", truth, {"old": part, "new": runs["s1"]}, conventions="trec_eval")
    assert other.left_out == by_tool.left_out
    assert require(other, "nDCG@5 >= baseline - 0.5").shown


@pytest.mark.parametrize("bound", ["baseline - 5", "-0.1"])
def test_bounds_that_a_system_without_results_would_meet_are_refused(bound: str) -> None:
    truth, runs = made_up()
    comparison = compare("nDCG@5", truth, runs)
    mean = comparison.summaries["nDCG@5"]["s0"].mean
    with pytest.raises(
        ArgumentError, match=f"that finds nothing: the baseline's mean is {mean:.4f}"
    ):
        require(comparison, f"nDCG@5 >= {bound}")
    # The largest margin that asks for something.
    assert require(comparison, f"nDCG@5 >= baseline - {math.floor(mean * 1e6) / 1e6}").shown


def test_bounds_are_checked_in_each_slice_by_its_own_mean() -> None:
    """A system that answers nothing in one language must not ship by the mean of the others."""
    truth = {f"q{number}": {"d": 1} for number in range(30)}
    hard = set(list(truth)[:15])
    crowd = {f"x{number}": 2.0 + number for number in range(39)}
    old = {query: {"d": 1.0, **(crowd if query in hard else {})} for query in truth}
    new = {query: ranked for query, ranked in old.items() if query not in hard}
    language = {"language": {query: "de" if query in hard else "en" for query in truth}}
    comparison = compare("RR", truth, {"old": old, "new": new})
    with pytest.raises(
        ArgumentError, match=r"finds nothing for language=de: the baseline's mean is 0\.0250"
    ):
        require(comparison, "RR >= baseline - 0.03 in each language", properties=language)
    decision = require(comparison, "RR >= baseline - 20% in each language", properties=language)
    assert [each.shown for each in decision.results] == [False, True]
    # More than the mean of all queries (0.51), less than that of the slice.
    assert require(comparison, "RR >= baseline - 0.9 in language=en", properties=language).shown


def test_weights_count_where_bounds_are_checked() -> None:
    truth = {f"q{number}": {"d": 1} for number in range(30)}
    old = {query: {"d": 1.0} if query < "q2" else {"x": 1.0} for query in truth}
    weight = {query: 99.0 if query < "q2" else 1.0 for query in truth}
    wish = "RR >= baseline - 0.5"
    with pytest.raises(ArgumentError, match=r"the baseline's mean is 0\.4000"):
        require(compare("RR", truth, {"old": old, "new": old}), wish)
    weighted = compare("RR", truth, {"old": old, "new": old}, sample_weight=weight)
    assert require(weighted, wish).results[0].queries == 30


@pytest.mark.parametrize(
    ("wish", "of_nothing"),
    [
        ("TopKLoss(k=3) <= baseline + 5", "1"),
        ("TopKLoss(k=3) <= 1.01", "1"),
        ("WKT(k=3) <= 3.1", "3"),
    ],
)
def test_bounds_of_losses_that_a_system_without_results_would_meet_are_refused(
    wish: str, of_nothing: str
) -> None:
    truth = {f"q{number}": {"a": 3, "b": 2, "c": 1} for number in range(60)}
    run = {query: {"a": 3.0, "b": 2.0, "c": 1.0} for query in truth}
    name = wish.partition(" ")[0]
    comparison = compare(name, truth, {"old": run, "new": run})
    message = rf"finds nothing.*Give a bound below {of_nothing}, or ask for a gain: '{name[:3]}"
    with pytest.raises(ArgumentError, match=message):
        require(comparison, wish)
    assert require(comparison, f"{name} <= {float(of_nothing) - 1e-6:.6f}").results[0].queries == 60


def test_what_a_system_without_results_has_is_measured_on_the_compared_queries() -> None:
    """Half of these queries have nothing to find, so that an empty result loses nothing."""
    truth = {f"q{number}": {"a": number % 2} for number in range(40)}
    good = {query: {"a": 1.0} for query in truth}
    one = {"q1": {"a": 1.0}}
    comparison = compare("TopKLoss(k=3)", truth, {"old": good, "new": one})
    assert float(comparison.empty_values["TopKLoss(k=3)"].mean()) == 0.5
    with pytest.raises(ArgumentError, match=r"finds nothing.*Give a bound below 0\.5, or"):
        require(comparison, "TopKLoss(k=3) <= baseline + 0.6")
    assert not require(comparison, "TopKLoss(k=3) <= baseline + 0.4").shown

    # Documents that are rightly left out count here: without results the mean is 999.5.
    utility = "SetUtility(weights=(1,-1,0,1),collection=1000)"
    comparison = compare(utility, truth, {"old": good, "new": one})
    empty = [1000.0 - judged["a"] for judged in truth.values()]
    assert comparison.empty_values[utility].tolist() == empty
    strict = "SetUtility(weights=(1,-1,-1,0))"
    comparison = compare(strict, truth, {"old": {"q1": {"a": 1.0}, "q3": {"a": 1.0}}, "new": one})
    with pytest.raises(ArgumentError, match=r"finds nothing.*Give a bound above -0\.5, or"):
        require(comparison, f"{strict} >= -0.6")
    assert not require(comparison, f"{strict} >= -0.45").shown


@pytest.mark.parametrize("conventions", ["podium", "trec_eval"])
def test_results_are_taken_away_whatever_conventions_do_without_them(conventions: str) -> None:
    truth = {f"q{number}": {"a": 1, "b": 0} for number in range(6)}
    run = {query: {"a": 2.0, "b": 1.0} for query in truth}
    measures = ["RR", "TopKLoss(k=1)"]
    comparison = compare(measures, truth, {"old": run, "new": run}, conventions=conventions)
    assert comparison.empty_values["RR"].tolist() == [0.0] * 6
    assert comparison.empty_values["TopKLoss(k=1)"].tolist() == [1.0] * 6


def test_preferences_and_data_sets_have_a_value_without_results_too() -> None:
    truth = Preferences.from_columns(["q", "r"], ["a", "a"], ["b", "b"], [1, 1])
    run = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 1.0, "b": 2.0}}
    comparison = compare("ppref", truth, {"old": run, "new": run})
    assert comparison.values["ppref"][:, 0].tolist() == [1.0, 0.0]
    assert comparison.empty_values["ppref"].tolist() == [0.0, 0.0]
    data = Dataset.from_arrays(np.eye(4), [1, 0, 1, 0], group=[2, 2])
    comparison = compare("TopKLoss(k=1)", data, {"old": [1, 0, 1, 0], "new": [1, 0, 1, 0]})
    assert comparison.empty_values["TopKLoss(k=1)"].tolist() == [1.0, 1.0]


def test_where_the_baseline_is_worse_than_no_results_any_bound_is_tested() -> None:
    truth, runs = made_up()
    for measure, wish in (
        ("DCG(gains=(-9,0,1))@5", "DCG(gains=(-9,0,1))@5 >= baseline - 2"),
        ("RBPResidual", "RBPResidual <= baseline + 0.5"),
    ):
        comparison = compare(
            measure, truth, runs | {"s0": {q: r | {"?": 9.0} for q, r in runs["s0"].items()}}
        )
        assert require(comparison, wish).shown
    with pytest.raises(ArgumentError, match="finds nothing"):
        require(compare("DCG(gains=(-1,0,9))@5", truth, runs), "DCG(gains=(-1,0,9))@5 >= -0.5")


def test_several_systems_are_corrected_by_holm_over_their_joint_claims() -> None:
    truth, runs = made_up(systems=4, gain=0.2)
    comparison = compare(["nDCG@5", "AP"], truth, runs)
    decision = require(comparison, "nDCG@5 > baseline", "AP > baseline")
    systems = comparison.systems[1:]
    joint = [
        max(each.p_value for each in decision.results if each.system == name) for name in systems
    ]
    corrected = [
        max(each.corrected for each in decision.results if each.system == name) for name in systems
    ]
    assert corrected == pytest.approx(holm(np.array(joint)).tolist())
    assert decision.ships == {
        name: bool(p_value < 0.05) for name, p_value in zip(systems, corrected, strict=True)
    }
    assert "Holm" in " ".join(decision.notes())


def test_results_of_several_systems_are_plain_values() -> None:
    """Two equal systems: Holm's correction gives the second what the first has."""
    truth = {f"q{number}": {"a": 1} for number in range(30)}
    run = {query: {"a": 1.0} for query in truth}
    noisy = {query: {"a": 1.0, **({"b": 2.0} if query < "q13" else {})} for query in truth}
    comparison = compare("RR", truth, {"old": run, "new": noisy, "other": noisy})
    decision = require(comparison, "RR >= baseline - 0.4")
    assert {(type(each.corrected), each.shown) for each in decision.results} == {(float, True)}
    written = json.loads(as_json(comparison, Details(decision=decision)))
    assert [each["shown"] for each in written["decision"]["results"]] == [True, True]


@pytest.mark.parametrize("tiny", [0.0, -1e-17, -1e-9])
def test_next_to_no_skewness_is_student_t(tiny: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "podium.measures.comparison.one_sided._towards_losses", lambda _skewness, _count: tiny
    )
    values = np.random.default_rng(1).normal(0.1, 0.2, 30)
    test = by_t(values, 0.0, 0.05)
    student = stats.ttest_1samp(values, 0.0, alternative="greater")
    assert test.p_value == pytest.approx(student.pvalue, rel=1e-7)
    assert test.low == pytest.approx(student.confidence_interval(0.95).low, rel=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_not_shown_needs_more_queries_than_there_are(weighted: bool) -> None:
    """However skewed values and weights are; by Student's t alone, fewer often seem enough."""
    random = np.random.default_rng(5)
    seen = 0
    for _ in range(200):
        count = int(random.integers(3, 60))
        values = 0.5 - random.exponential(size=count) ** 1.5 + random.uniform(0.5, 1.2)
        weights = random.exponential(size=count) ** 2 if weighted else None
        test = mean_above(values, 0.0, 0.05, float(random.uniform(-9.0, 0.0)), weights)
        needed = queries_to_show(test, 0.0, 0.05)
        if test.mean > 0 and test.p_value >= 0.05:
            seen += 1
            assert needed is None or needed > count
    assert seen > 40


def test_so_many_queries_show_a_mean_as_often_as_they_should() -> None:
    random = np.random.default_rng(6)
    losses = MeanTest(0.4, 0.0, 0.0, unseen=0.0, deviation=1.0, skewness=-2.0, least=-4.0)
    needed = queries_to_show(losses, 0.2, 0.05)
    assert needed == 183  # 156 by Student's t alone
    drawn = 1.4 - random.exponential(size=(4000, needed))
    shown = [mean_above(values, 0.2, 0.05, -4.0).p_value < 0.05 for values in drawn]
    assert np.mean(shown) == pytest.approx(0.8, abs=0.06)


def test_queries_needed_are_those_of_the_first_system_of_holms_correction() -> None:
    truth, runs = made_up(systems=4)
    comparison = compare("nDCG@5", truth, runs)
    random = np.random.default_rng(7)
    seen: Counter[bool] = Counter()
    for _ in range(100):
        table = 0.5 + random.normal(0.0, 0.1, (60, 4)) + [0.0, 0.02, 0.03, 0.04]
        values = ByMeasure({comparison.measures[0]: table})
        decision = require(replace(comparison, values=values), "nDCG@5 > baseline", "nDCG@5 >= 0.4")
        for each in decision.results:
            if each.needed is not None:
                tested = table[:, comparison.systems.index(each.system)]
                if each.requirement.against_baseline:
                    tested = tested - table[:, 0]
                least = -table[:, 0].max() if each.requirement.against_baseline else 0.0
                alone = mean_above(tested, each.bound, 0.05, least)
                assert each.needed == queries_to_show(alone, each.bound, 0.05 / 3)
                waits = 3 * each.p_value < 0.05
                seen[waits] += 1
                assert (each.needed > 60) == ("about" in each.missing) == (not waits)
                assert ("a system with smaller p-values is not shown" in each.missing) == waits
    assert min(seen[False], seen[True]) > 20


def test_a_look_has_its_share_of_the_level() -> None:
    truth, runs = made_up(gain=0.25)
    comparison = compare("nDCG@5", truth, runs)
    alone = require(comparison, "nDCG@5 > baseline").results[0]
    assert 0.01 < alone.p_value < 0.05
    assert alone.shown
    second = require(comparison, "nDCG@5 > baseline", look="2/5").results[0]
    assert not second.shown
    assert second.p_value == alone.p_value
    values = comparison.values["nDCG@5"]
    assert second.limit == pytest.approx(
        mean_above(values[:, 1] - values[:, 0], 0.0, 0.01, -values[:, 0].max()).low
    )
    assert Look(2, 5).level(0.05) == pytest.approx(0.01)


@pytest.mark.parametrize("look", ["0/5", "6/5", "2", "2/0", "-1/5", "1/1001", "2/5x"])
def test_other_looks_are_refused(look: str) -> None:
    truth, runs = made_up(queries=5)
    with pytest.raises(ArgumentError, match="look"):
        require(compare("nDCG@5", truth, runs), "nDCG@5 > baseline", look=look)


def test_slices_are_tested_one_by_one() -> None:
    truth, runs = made_up()
    comparison = compare("nDCG@5", truth, runs)
    language = {query: "de" if index % 3 else "en" for index, query in enumerate(truth)}
    decision = require(
        comparison,
        "nDCG@5 >= baseline - 0.05 in each language",
        "nDCG@5 >= baseline - 0.05 in language=en",
        properties={"language": language},
    )
    values = comparison.values["nDCG@5"]
    differences = values[:, 1] - values[:, 0]
    german = np.array([language[query] == "de" for query in comparison.query_ids])
    assert [(each.slice_name, each.queries) for each in decision.results] == [
        ("language=de", 40),
        ("language=en", 20),
        ("language=en", 20),
    ]
    expected = [
        mean_above(differences[part], -0.05, 0.05, -values[part, 0].max())
        for part in (german, ~german, ~german)
    ]
    assert [each.p_value for each in decision.results] == pytest.approx(
        [each.p_value for each in expected]
    )


def test_a_slice_that_loses_stops_a_system_that_gains_over_all() -> None:
    truth, runs = made_up(queries=100)
    bad = {f"q{query}" for query in range(12)}
    new = {
        query: {document: -score for document, score in ranked.items()} if query in bad else ranked
        for query, ranked in runs["s1"].items()
    }
    comparison = compare("nDCG@5", truth, {"old": runs["s0"], "new": new})
    properties = pa.table(
        {"query_id": list(truth), "kind": ["rare" if query in bad else "usual" for query in truth]}
    )
    assert require(comparison, "nDCG@5 > baseline").shown
    decision = require(
        comparison,
        "nDCG@5 > baseline",
        "nDCG@5 >= baseline - 0.05 in each kind",
        properties=properties,
    )
    assert [(each.slice_name, each.shown) for each in decision.results] == [
        ("", True),
        ("kind=rare", False),
        ("kind=usual", True),
    ]
    assert decision.missing() == [
        "nDCG@5 >= baseline - 0.05 in each kind, new, kind=rare: the mean is not beyond the "
        "bound: more queries alone will not show it."
    ]


@pytest.mark.parametrize("value", [5, None, b"RR > baseline", ["RR > baseline"]])
def test_a_requirement_that_is_no_text_is_refused(value: Any) -> None:
    truth, runs = made_up(queries=6)
    with pytest.raises(ArgumentError, match=f"a requirement is a {type(value).__name__}"):
        require(compare("RR", truth, runs), value)


def test_signs_may_be_those_of_a_text_processor() -> None:
    typed = Requirement.parse("nDCG@10 >= baseline - 0.02 in each kind")
    for text in (
        "nDCG@10 \u2265 baseline \u2212 0.02 in each kind",
        "nDCG@10 \u2265baseline\u20130.02 in each kind",
    ):
        read = Requirement.parse(text)
        assert replace(read, text=typed.text) == typed
    assert Requirement.parse("TopKLoss(k=3) \u2264 0.5").offset == 0.5
    assert Requirement.parse("SetUtility >= \u22120.5").offset == -0.5
    # The names of slices stay as they are.
    assert Requirement.parse("RR > baseline in kind=a\u2013b").value == "a\u2013b"


def test_slices_that_were_not_compared_are_reported() -> None:
    truth, runs = made_up(queries=40)
    comparison = compare("nDCG@5", truth, runs)
    language = {query: "de" if number < 20 else "en" for number, query in enumerate(truth)}
    language |= {"q0": None, "q38": " \n", "q39": "", **{f"x{n}": f"l{n}\n!" for n in range(7)}}
    words = {query: number for number, query in enumerate(truth)} | {"x0": 10_000}
    properties = {"language": language, "words": words}
    wishes = ["nDCG@5 >= baseline - 0.3 in each language", "nDCG@5 >= 0.01 in language=de"]
    decision = require(comparison, *wishes, properties=properties)
    sentences = (
        "3 of 40 compared queries have no value of language, and are in no slice.",
        "No query of language=l0 !, language=l1 !, language=l2 !, language=l3 !, language=l4 ! and "
        "2 more was compared.",
    )
    assert decision.left_out == sentences
    assert decision.warnings()[-2:] == list(sentences)
    # A slice that is named, or ranges, which every number is in, leave nothing out.
    assert require(comparison, wishes[1], properties=properties).left_out == ()
    ranges = require(comparison, "nDCG@5 >= 0.01 in each words", properties=properties)
    assert (len(ranges.results), ranges.left_out) == (3, ())


def test_properties_that_do_not_fit_are_refused() -> None:
    truth, runs = made_up(queries=6)
    comparison = compare("nDCG@5", truth, runs)
    wish = "nDCG@5 >= baseline - 0.05 in each kind"
    with pytest.raises(ArgumentError, match="properties="):
        require(comparison, wish)
    with pytest.raises(DataError, match="'q5' has no value of 'kind'"):
        require(comparison, wish, properties={"kind": {f"q{query}": "a" for query in range(5)}})
    table = pa.table({"qid": ["q0", *truth], "kind": ["a"] * 7})
    with pytest.raises(DataError, match="'q0' has 2 rows"):
        require(comparison, wish, properties=table)
    with pytest.raises(ArgumentError, match="column of queries"):
        require(comparison, wish, properties={"kin": dict.fromkeys(truth, "a")})
    with pytest.raises(DataError, match="no column of the queries has values"):
        require(comparison, wish, properties={"kind": dict.fromkeys(truth)})
    with pytest.raises(ArgumentError, match="value of kind"):
        require(
            comparison, "nDCG@5 >= 0.1 in kind=b", properties={"kind": dict.fromkeys(truth, "a")}
        )
    with pytest.raises(ArgumentError, match="was not compared"):
        require(comparison, "AP > baseline")
    with pytest.raises(ArgumentError, match="level is 1"):
        require(comparison, "nDCG@5 > baseline", level=1)
    with pytest.raises(ArgumentError, match="no requirements"):
        require(comparison)


def most(share: float, repeats: int) -> int:
    """What a count with this chance does not exceed in 999 of 1,000 cases."""
    return int(stats.binom.ppf(0.999, repeats, share))


@pytest.mark.parametrize("draw", [ndcg, reciprocal_rank], ids=["nDCG", "RR"])
@pytest.mark.parametrize("queries", [25, 100])
def test_a_system_at_the_margin_passes_at_most_at_the_level(draw, queries: int) -> None:
    repeats, margin = 2000, 0.02
    random = np.random.default_rng(queries)
    passed = 0
    for _ in range(repeats):
        values = draw(random, queries, 2)
        # The true difference is exactly the margin: shipping it is a false alarm.
        passed += by_t(values[:, 1] - values[:, 0] - margin, -margin, 0.05).p_value < 0.05
    assert passed <= most(0.05, repeats)


def test_skewed_losses_pass_at_most_at_the_level_where_the_t_test_does_not() -> None:
    repeats, queries = 2000, 100
    # Most queries gain a little and a few lose much; the mean is 0.
    draws = 1.0 - np.random.default_rng(1).exponential(1.0, (repeats, queries))
    passed = sum(by_t(values, 0.0, 0.05).p_value < 0.05 for values in draws)
    student = np.sum(stats.ttest_1samp(draws, 0.0, axis=1, alternative="greater").pvalue < 0.05)
    assert passed <= most(0.05, repeats)
    assert student > most(0.05, repeats)


def test_five_looks_pass_at_most_at_the_level_together_and_unplanned_ones_do_not() -> None:
    repeats, looks = 1000, (20, 40, 60, 80, 100)
    random = np.random.default_rng(2)
    planned = unplanned = 0
    for _ in range(repeats):
        values = random.normal(size=looks[-1])
        p_values = [by_t(values[:count], 0.0, 0.05).p_value for count in looks]
        planned += min(p_values) < Look(1, len(looks)).level(0.05)
        unplanned += min(p_values) < 0.05
    assert planned <= most(0.05, repeats)
    assert unplanned > most(0.05, repeats)

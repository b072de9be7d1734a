"""Plans: how many queries show a difference, and which documents to judge next."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from benchmarks import _gates as gates
from podium.data import Dataset, Judgments, as_judgments, as_rankings
from podium.errors import ArgumentError, DataError
from podium.measures import (
    compare,
    conventions_named,
    detectable_difference,
    difference_power,
    evaluate,
    next_judgments,
    parse_measure,
    queries_needed,
)
from podium.measures.comparison.unjudged import (
    Unjudged,
    UnjudgedBounds,
    unjudged_bounds,
    unjudged_documents,
)

needs_shared = pytest.mark.skipif(
    not gates.TREC.exists(), reason="the TREC runs of ../shared/data are not here"
)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("difference", "queries"), [(0.01, 50), (0.05, 50), (0.02, 700)])
def test_power_is_that_of_statsmodels(difference: float, queries: int, one_sided: bool) -> None:
    # Of two sides, statsmodels counts significant differences of the wrong sign, too.
    sides = "larger"
    level = 0.05 if one_sided else 0.025
    expected = TTestPower().power(difference / 0.2, queries, level, alternative=sides)
    measured = difference_power(difference, 0.2, queries, one_sided=one_sided)
    assert measured == pytest.approx(float(expected), abs=1e-6)


def test_needed_queries_are_the_fewest_and_detectable_is_their_inverse() -> None:
    for difference, deviation, power in [(0.01, 0.1, 0.8), (0.03, 0.2, 0.9), (0.5, 0.3, 0.8)]:
        needed = queries_needed(difference, deviation, power=power)
        assert difference_power(difference, deviation, needed) >= power
        assert difference_power(difference, deviation, needed - 1) < power
        least = detectable_difference(deviation, needed, power=power)
        assert difference_power(least, deviation, needed) == pytest.approx(power)
        assert least <= difference


def test_extremes() -> None:
    assert queries_needed(1e-9, 1.0) is None
    assert queries_needed(0.1, 0.0) == 2
    assert detectable_difference(0.0, 10) == 0.0
    assert detectable_difference(0.1, 1) == math.inf
    assert difference_power(0.1, 0.0, 5) == 1.0
    assert difference_power(10.0, 0.001, 50) == 1.0
    assert difference_power(0.0, 0.1, 50) == 0.0
    assert difference_power(0.1, 0.1, 1) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        {"difference": 0.0},
        {"difference": -0.1},
        {"difference": math.nan},
        {"deviation": -1.0},
        {"deviation": math.inf},
        {"power": 1.0},
        {"level": 0.0},
    ],
)
def test_other_numbers_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        queries_needed(
            arguments.get("difference", 0.01),
            arguments.get("deviation", 0.1),
            power=arguments.get("power", 0.8),
            level=arguments.get("level", 0.05),
        )


def test_simulated_comparisons_have_the_power_that_was_planned() -> None:
    needed = queries_needed(0.03, 0.2, power=0.8)
    random = np.random.default_rng(5)
    # Like differences of nDCG: heavier tails than the normal distribution's.
    draws = 0.03 + 0.2 * random.laplace(scale=math.sqrt(0.5), size=(4000, needed))
    result = stats.ttest_1samp(draws, 0.0, axis=1)
    share = float(np.mean((result.pvalue < 0.05) & (result.statistic > 0)))
    assert share == pytest.approx(0.8, abs=0.03)


def test_a_plan_is_of_the_deviation_of_the_differences() -> None:
    random = np.random.default_rng(0)
    truth = {f"q{query}": {"a": 1} for query in range(40)}
    runs = [
        {query: {"a": float(random.normal()), "b": 0.0, "c": 0.1} for query in truth}
        for _ in range(3)
    ]
    comparison = compare(["RR", "P@1"], truth, dict(zip("abc", runs, strict=True)))
    plans = comparison.plan(difference=0.05, power=0.7, level=0.01)
    assert [(repr(plan.measure), plan.system) for plan in plans] == list(
        itertools.product(["RR", "P@1"], ["b", "c"])
    )
    values = comparison.values["P@1"]
    deviation = float(np.std(values[:, 2] - values[:, 0], ddof=1))
    assert plans[3].deviation == pytest.approx(deviation)
    assert plans[3].needed == queries_needed(0.05, deviation, power=0.7, level=0.01)
    assert plans[3].power == pytest.approx(difference_power(0.05, deviation, 40, level=0.01))
    least = detectable_difference(deviation, 40, power=0.7, level=0.01)
    assert plans[3].detectable == pytest.approx(least)
    with pytest.raises(DataError, match="single query"):
        compare("RR", {"q": {"a": 1}}, {"a": {"q": {"a": 1}}, "b": {"q": {"a": 1}}}).plan()


TRUTH = {"p": {"a": 2, "b": 0, "z": 1}, "q": {"a": 1, "x": 0}}
OLD = {"p": {"a": 9, "u": 8, "b": 7, "v": 6}, "q": {"w": 9, "a": 8}}
NEW = {"p": {"u": 9, "a": 8, "v": 7, "b": 6}, "q": {"a": 9, "w": 8, "y": 7}}


LEVELS = (0, 1, 2)
UNJUDGED = {"p": ("u", "v"), "q": ("w", "y")}


def judgments(truth: dict) -> Judgments:
    return as_judgments(truth)


def unjudged(name: str, truth: dict = TRUTH) -> Unjudged:
    return unjudged_documents(
        parse_measure(name),
        conventions_named("podium"),
        judgments(truth),
        as_rankings(OLD),
        as_rankings(NEW),
    )


def difference(name: str, query: str, labels: dict[str, int]) -> float:
    """The difference of a query whose documents have more labels."""
    truth = {query: {**TRUTH[query], **labels}}
    old, new = (evaluate(name, truth, {query: run[query]})[name][0] for run in (OLD, NEW))
    return float(np.nan_to_num(new) - np.nan_to_num(old))


def bounds(name: str) -> UnjudgedBounds:
    return unjudged_bounds(
        parse_measure(name),
        conventions_named("podium"),
        judgments(TRUTH),
        as_rankings(OLD),
        as_rankings(NEW),
        name="new",
    )


@pytest.mark.parametrize("name", ["DCG@4", "P@2", "AP"])
def test_the_extremes_are_those_of_all_labels(name: str) -> None:
    every = [
        [
            difference(name, query, dict(zip(UNJUDGED[query], labels, strict=True)))
            for labels in itertools.product(LEVELS, repeat=2)
        ]
        for query in ("p", "q")
    ]
    result = bounds(name)
    judged = np.mean([difference(name, query, {}) for query in ("p", "q")])
    assert result.difference == pytest.approx(judged, abs=1e-6)
    assert result.most == pytest.approx(np.mean([max(each) for each in every]), abs=1e-6)
    assert result.least == pytest.approx(np.mean([min(each) for each in every]), abs=1e-6)


def test_with_an_ideal_ranking_the_extremes_are_of_the_labels_that_are_stated() -> None:
    # u, v and y are higher in the new run, w in the old one.
    most = [
        difference("nDCG@3", "p", {"u": 2, "v": 2}),
        difference("nDCG@3", "q", {"w": 0, "y": 2}),
    ]
    least = [
        difference("nDCG@3", "p", {"u": 0, "v": 0}),
        difference("nDCG@3", "q", {"w": 2, "y": 0}),
    ]
    result = bounds("nDCG@3")
    assert result.most == pytest.approx(np.mean(most), abs=1e-6)
    assert result.least == pytest.approx(np.mean(least), abs=1e-6)
    assert (result.unjudged, result.queries, result.could_turn) == (4, 2, True)


@pytest.mark.parametrize("name", ["nDCG@3", "DCG@3", "ERR(max=2)@3", "bpref"])
def test_a_swing_is_the_variance_that_the_label_gives(name: str) -> None:
    # One document is left to judge, so nothing is drawn at random.
    result = unjudged(name, {"p": {**TRUTH["p"], "v": 1}, "q": {**TRUTH["q"], "w": 1, "y": 0}})
    assert result.document_ids == ("u",)
    # Judged among the first three of p: a, b and a, v; of q: w, a and a, w, y.
    first = {"nDCG@3": 3, "DCG@3": 3, "ERR(max=2)@3": 3, "bpref": 4}[name]
    labels = {"a": 2, "b": 0, "v": 1, "u": None}
    own = [
        labels[document]
        for run in (OLD, NEW)
        for document in list(run["p"])[:first]
        if labels[document] is not None
    ]
    others = [1, 1, 1, 1, 0]
    overall = np.array([own.count(level) + others.count(level) + 1 for level in LEVELS])
    weights = np.array([own.count(level) for level in LEVELS]) + 5 * overall / overall.sum()
    chances = weights / weights.sum()
    values = np.array([difference(name, "p", {"v": 1, "u": level}) for level in LEVELS])
    mean = chances @ values
    assert result.swings[0] == pytest.approx(chances @ (values - mean) ** 2, abs=1e-9)
    # Of 100 draws the mean is within four of its errors.
    error = math.sqrt(result.swings[0] / 100)
    assert result.expected[0] == pytest.approx(mean, abs=4 * error + 1e-9)
    assert result.variances[1] == 0.0
    assert result.expected[1] == result.differences[1]


def test_the_documents_that_matter_most_come_first() -> None:
    plan = next_judgments("DCG@4", TRUTH, OLD, NEW)
    # u is 2nd in the one and 1st in the other, w the reverse, v 4th and 3rd, y only 3rd.
    assert [(each.query_id, each.document_id) for each in plan.documents][-1] == ("p", "v")
    assert plan.unjudged == 4
    swings = [each.swing for each in plan.documents]
    assert swings == sorted(swings, reverse=True)
    ranks = {each.document_id: (each.baseline_rank, each.system_rank) for each in plan.documents}
    assert ranks == {"u": (2, 1), "w": (1, 2), "v": (4, 3), "y": (None, 3)}
    turned = next_judgments("DCG@4", TRUTH, NEW, OLD)
    assert turned.expected == pytest.approx(-plan.expected)
    assert turned.deviation == pytest.approx(plan.deviation)
    assert [each.swing for each in turned.documents] == pytest.approx(swings)


def test_a_document_that_both_rank_alike_tells_nothing() -> None:
    run = {"q": {"a": 2, "u": 1}}
    plan = next_judgments("DCG@3", {"q": {"a": 1}}, run, run)
    assert (plan.documents, plan.unjudged, plan.chance_to_turn) == ((), 1, 0.0)
    assert next_judgments("nDCG@3", {"q": {"a": 1}}, run, run).documents == ()


def test_judgments_of_one_label_leave_a_better_one_possible() -> None:
    old, new = {"q": {"a": 2, "u": 1}}, {"q": {"a": 1, "u": 2}}
    plan = next_judgments("DCG@2", {"q": {"a": 0}}, old, new)
    assert [each.document_id for each in plan.documents] == ["u"]
    assert plan.expected > 0.0


def test_measures_that_are_not_means_are_refused() -> None:
    with pytest.raises(ArgumentError, match="not a mean"):
        next_judgments("NumRet", TRUTH, OLD, NEW)


def test_all_judged_is_decided() -> None:
    truth = {"q": {"a": 1, "b": 0}}
    plan = next_judgments("DCG@2", truth, {"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}})
    assert (plan.documents, plan.unjudged, plan.deviation) == ((), 0, 0.0)
    assert plan.expected == plan.difference == pytest.approx(1 / math.log2(3) - 1)


def test_the_chance_to_turn_is_the_normal_tail() -> None:
    plan = next_judgments("DCG@4", TRUTH, OLD, NEW, bound=-0.3)
    assert plan.difference < -0.3 < plan.expected
    expected = float(stats.norm.sf(-(plan.expected + 0.3) / plan.deviation))
    assert plan.chance_to_turn == pytest.approx(expected)


def test_a_difference_that_is_expected_to_turn_turns_more_often_than_not() -> None:
    plan = replace(
        next_judgments("DCG@4", TRUTH, OLD, NEW), difference=0.02, expected=-0.03, deviation=0.02
    )
    turns = float(stats.norm.cdf(1.5))
    assert plan.chance_to_turn == pytest.approx(turns)
    assert replace(plan, difference=-0.02).chance_to_turn == pytest.approx(1 - turns)
    assert replace(plan, difference=0.0).chance_to_turn == pytest.approx(1 - turns)
    assert replace(plan, bound=-0.05).chance_to_turn == pytest.approx(float(stats.norm.sf(1)))
    assert replace(plan, deviation=0.0).chance_to_turn == 1.0
    assert replace(plan, deviation=0.0, difference=-0.01).chance_to_turn == 0.0


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_counts_are_checked(count: int) -> None:
    with pytest.raises(ArgumentError, match="count"):
        next_judgments("DCG@4", TRUTH, OLD, NEW, count=count)


def test_what_has_no_documents_by_id_is_refused() -> None:
    data = Dataset.from_arrays([[0.0]] * 2, [1, 0], group=[2])
    with pytest.raises(ArgumentError, match="by id"):
        next_judgments("DCG@4", data, [1, 2], [2, 1])


@needs_shared
@pytest.mark.slow
def test_chosen_documents_decide_a_comparison_with_fewer_judgments_than_random_ones() -> None:
    known, runs = gates.dl21()
    pair = runs["bcai_p_vbert"], runs["pash_f3"]
    counts = {}
    for by_plan in (True, False):
        counts[by_plan], right = gates.judgments_until_decided(
            known, *pair, by_plan=by_plan, seed=3
        )
        assert right
    assert counts[True] <= 0.7 * counts[False]

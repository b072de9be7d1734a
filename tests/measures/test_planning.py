"""Plans: how many queries show a difference, and which documents to judge next."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from benchmarks import _gates as gates
from benchmarks._unjudged import BOUNDED, bound_violations
from podium.data import Dataset, Judgments
from podium.data.sources import as_judgments, as_rankings
from podium.errors import ArgumentError, DataError
from podium.measures import compare, evaluate, next_judgments, plan_queries
from podium.measures.comparison.power import detectable_difference, difference_power, queries_needed
from podium.measures.comparison.unjudged import (
    LabelTrial,
    UnjudgedBounds,
    unjudged_bounds,
)
from podium.measures.names import parse_measure
from podium.measures.presets import conventions_named
from podium.measures.registry import definition_of

needs_shared = pytest.mark.skipif(
    not gates.TREC.exists(), reason="the TREC runs of ../shared/data are not here"
)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("difference", "queries"), [(0.01, 50), (0.05, 50), (0.02, 700)])
def test_power_is_that_of_statsmodels(difference: float, queries: int, one_sided: bool) -> None:
    # With two sides, statsmodels counts significant differences of the wrong sign, too.
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


def test_a_difference_that_no_values_of_the_measure_have_is_refused() -> None:
    truth = {query: {"a": 3, "b": 0} for query in "pqr"}
    old = {query: {"b": 2.0, "a": 1.0} for query in truth}
    new = old | {"p": {"a": 2.0, "b": 1.0}}
    comparison = compare(["RR", "DCG@1"], truth, {"old": old, "new": new})
    assert len(plan_queries(comparison, difference=1.0)) == 2
    with pytest.raises(ArgumentError, match=r"is 1.01, and no two values of RR .* 1 apart.* 0\.05"):
        plan_queries(comparison, difference=1.01)
    gains = compare("DCG@1", truth, {"old": old, "new": new})
    assert len(plan_queries(gains, difference=5.0)) == 1
    with pytest.raises(ArgumentError, match=r"DCG@1 are more than 7 apart"):
        plan_queries(gains, difference=7.5)


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
    plans = plan_queries(comparison, difference=0.05, power=0.7, level=0.01)
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
        plan_queries(compare("RR", {"q": {"a": 1}}, {"a": {"q": {"a": 1}}, "b": {"q": {"a": 1}}}))


TRUTH = {"p": {"a": 2, "b": 0, "z": 1}, "q": {"a": 1, "x": 0}}
OLD = {"p": {"a": 9, "u": 8, "b": 7, "v": 6}, "q": {"w": 9, "a": 8}}
NEW = {"p": {"u": 9, "a": 8, "v": 7, "b": 6}, "q": {"a": 9, "w": 8, "y": 7}}


LEVELS = (0, 1, 2)
UNJUDGED = {"p": ("u", "v"), "q": ("w", "y")}


def judgments(truth: dict) -> Judgments:
    return as_judgments(truth)


def difference(name: str, query: str, labels: dict[str, int]) -> float:
    """The difference of a query whose documents have more labels."""
    truth = {query: {**TRUTH[query], **labels}}
    old, new = (evaluate(name, truth, {query: run[query]})[name][0] for run in (OLD, NEW))
    return float(np.nan_to_num(new) - np.nan_to_num(old))


def bounds(name: str, truth: dict = TRUTH, conventions: str = "podium") -> UnjudgedBounds:
    return unjudged_bounds(
        parse_measure(name),
        conventions_named(conventions),
        judgments(truth),
        as_rankings(OLD),
        as_rankings(NEW),
        name="new",
    )


@pytest.mark.parametrize("name", ["DCG@4", "P@2", "AP", "RR", "ERR", "nDCG@3"])
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
    assert (result.exact, result.queries) == (True, 2)
    assert result.difference == pytest.approx(judged, abs=1e-6)
    assert result.most == pytest.approx(np.mean([max(each) for each in every]), abs=1e-6)
    assert result.least == pytest.approx(np.mean([min(each) for each in every]), abs=1e-6)


@pytest.mark.parametrize("name", ["AP", "RR", "ERR@3", "nDCG@3", "P@2", "bpref", "TopKLoss(k=2)"])
def test_bounds_hold_for_all_labels(name: str) -> None:
    assert bound_violations(name, 200, seed=3) == 0


def test_no_list_is_better_for_the_worse_of_two_labels_at_the_better_rank() -> None:
    """Bounds of many unjudged documents rest on this."""
    random = np.random.default_rng(0)
    lists, swapped = [], []
    for size in random.integers(2, 9, 5_000).tolist():
        labels = random.integers(0, random.integers(1, 5), size, endpoint=True).astype(float)
        first, second = np.sort(random.choice(size, 2, replace=False))
        labels[[first, second]] = np.sort(labels[[first, second]])[::-1]
        lists.append(labels)
        swapped.append(labels.copy())
        swapped[-1][[first, second]] = labels[[second, first]]
    scores = np.concatenate([np.arange(len(each), 0, -1.0) for each in lists])
    for name in (*BOUNDED, "NGain"):
        measure = parse_measure(name)
        better, worse = (
            evaluate(measure, np.concatenate(each), scores, group=[len(row) for row in each])
            for each in (lists, swapped)
        )
        sign = 1.0 if definition_of(measure).larger_is_better else -1.0
        holds = bool(np.nanmin(sign * (better[measure] - worse[measure])) > -1e-9)
        assert holds == definition_of(measure).monotone == (name != "NGain"), name


def test_a_sign_that_labels_turn_is_not_called_certain() -> None:
    truth = {"q0": {"b": 1, "c": 0}, "q1": {"b": 0}}
    old = {"q0": {"a": 2, "b": 3, "c": 1}, "q1": {"a": 1, "b": 3, "c": 2}}
    new = {"q0": {"a": 1, "b": 2, "c": 3}, "q1": {"a": 2, "b": 1, "c": 3}}
    plan = next_judgments("AP", truth, old, new)
    assert plan.difference == pytest.approx(-1 / 4)
    # In q1 with a and c relevant: 7/12 and 1; in q0 with a relevant: 1 and 7/12.
    assert plan.most == pytest.approx((1 - 7 / 12 + 0 - 1 / 3) / 2)
    assert plan.could_turn


def test_queries_that_a_convention_skips_are_not_in_the_mean() -> None:
    truth = {"p": TRUTH["p"], "q": {"x": 0}}
    chosen = replace(conventions_named("podium"), nothing_relevant="skip")
    systems = {"old": OLD, "new": NEW}
    compared = compare("nDCG@3", truth, systems, conventions=chosen)
    plan = next_judgments("nDCG@3", truth, OLD, NEW, conventions=chosen)
    assert plan.difference == pytest.approx(
        compared.against_baseline["nDCG@3"]["new"].difference.mean
    )
    # q joins the mean if one of its documents is relevant.
    own = [
        compare(
            "nDCG@3",
            {"p": {**truth["p"], "u": u, "v": v}, "q": {"x": 0, "a": a, "w": w, "y": y}},
            systems,
            conventions=chosen,
        )
        .against_baseline["nDCG@3"]["new"]
        .difference.mean
        for u, v, a, w, y in itertools.product((0, 2), (0, 2), (0, 2), (0, 2), (0, 2))
    ]
    assert plan.least <= min(own) + 1e-9
    assert plan.most >= max(own) - 1e-9


def test_judgments_of_relevant_documents_alone_leave_others_irrelevant() -> None:
    truth = {f"q{number}": {"d0": 1} for number in range(20)}
    old = {query: {f"d{each}": (each - 5) % 10 for each in range(10)} for query in truth}
    new = {query: {**run, "d0": 20} for query, run in old.items()}
    plan = next_judgments("RR@10", truth, old, new)
    gap = 1 - 1 / (1 + sum(each > old["q0"]["d0"] for each in old["q0"].values()))
    assert plan.difference == pytest.approx(gap)
    assert "no irrelevant document" in plan.why_unknown
    assert plan.expected is plan.deviation is plan.unlikely_to_turn is None
    assert plan.least is not None
    assert plan.least <= 0.0 < gap <= plan.most
    assert len(plan.documents) == 20


def simulated(random: np.random.Generator, judged: str) -> tuple[dict, dict, dict, dict]:
    """Truth, its judged part and two runs of 60 queries: relevance falls with the rank."""
    truth, part, old, new = {}, {}, {}, {}
    for number in range(60):
        query, ease = f"q{number}", random.normal()
        quality = random.normal(size=40) + ease
        labels = (quality + random.logistic(size=40) > 0.5).astype(int)
        truth[query] = {f"d{each}": int(label) for each, label in enumerate(labels)}
        one, other, third = quality + random.normal(size=(3, 40)) * [[1.5], [1.0], [1.0]]
        old[query], new[query] = (
            {f"d{each}": float(score) for each, score in enumerate(scores)}
            for scores in (one, other)
        )
        pool = np.argsort(-third)[:8]
        known = random.random(40) < 1 / 3 if judged != "pool" else np.isin(range(40), pool)
        part[query] = {f"d{each}": int(labels[each]) for each in np.flatnonzero(known)} or {"d0": 0}
    return truth, part, old, new


def test_what_is_expected_of_a_sample_holds() -> None:
    errors = []
    for seed in range(12):
        truth, part, old, new = simulated(np.random.default_rng(seed), "sample")
        plan = next_judgments("P@10", part, old, new)
        means = [evaluate("P@10", truth, run).means["P@10"] for run in (old, new)]
        if plan.expected is not None and plan.deviation is not None:
            errors.append((means[1] - means[0] - plan.expected) / plan.deviation)
    assert len(errors) >= 9
    # A sum of squared normal numbers, but for one in a thousand.
    low, high = stats.chi2.interval(0.999, len(errors))
    assert low < np.sum(np.square(errors)) < high


@pytest.mark.parametrize("judged", ["pool", "chosen"])
def test_nothing_is_expected_of_other_judgments(judged: str) -> None:
    truth, part, old, new = simulated(np.random.default_rng(0), judged)
    if judged == "chosen":
        for each in next_judgments("nDCG@10", part, old, new, count=100).documents:
            part[each.query_id][each.document_id] = truth[each.query_id][each.document_id]
    plan = next_judgments("nDCG@10", part, old, new)
    assert plan.expected is None
    assert plan.why_unknown
    assert plan.least is not None
    assert plan.documents


@pytest.mark.parametrize("name", ["nDCG@3", "DCG@3", "ERR(max=2)@3", "bpref"])
def test_a_swing_is_the_deviation_that_the_label_gives(name: str) -> None:
    # One document is left to judge.
    truth = {"p": {**TRUTH["p"], "v": 1}, "q": {**TRUTH["q"], "w": 1, "y": 0}}
    (document,) = next_judgments(name, truth, OLD, NEW).documents
    trial = LabelTrial.of(
        parse_measure(name),
        conventions_named("podium"),
        *(judgments(truth), as_rankings(OLD), as_rankings(NEW)),
    )
    (chances,) = trial.likely_labels().chances
    values = np.array([difference(name, "p", {"v": 1, "u": level}) for level in LEVELS])
    variance = chances @ (values - chances @ values) ** 2
    assert document.document_id == "u"
    assert chances.sum() == pytest.approx(1.0)
    assert document.swing == pytest.approx(math.sqrt(variance) / 2, abs=1e-6)


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
    assert (turned.least, turned.most) == pytest.approx((-plan.most, -plan.least))
    # Labels are drawn anew.
    assert [each.swing for each in turned.documents] == pytest.approx(swings, rel=0.1)


def test_a_document_that_both_rank_alike_tells_nothing() -> None:
    run = {"q": {"a": 2, "u": 1}}
    plan = next_judgments("DCG@3", {"q": {"a": 1}}, run, run)
    assert (plan.documents, plan.unjudged, plan.could_turn) == ((), 1, False)
    assert (plan.least, plan.most, plan.unlikely_to_turn) == (0.0, 0.0, True)
    assert next_judgments("nDCG@3", {"q": {"a": 1}}, run, run).documents == ()


def test_judgments_of_one_label_leave_a_better_one_possible() -> None:
    old, new = {"q": {"a": 2, "u": 1}}, {"q": {"a": 1, "u": 2}}
    plan = next_judgments("DCG@2", {"q": {"a": 0}}, old, new)
    assert [each.document_id for each in plan.documents] == ["u"]
    assert plan.least == 0.0
    assert plan.most == pytest.approx(1 - 1 / math.log2(3))


def test_measures_that_are_not_means_are_refused() -> None:
    with pytest.raises(ArgumentError, match="not a mean"):
        next_judgments("NumRet", TRUTH, OLD, NEW)


def test_all_judged_is_decided() -> None:
    truth = {"q": {"a": 1, "b": 0}}
    plan = next_judgments("DCG@2", truth, {"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}})
    assert (plan.documents, plan.unjudged, plan.deviation, plan.exact) == ((), 0, 0.0, True)
    assert plan.expected == plan.difference == pytest.approx(1 / math.log2(3) - 1)
    assert (plan.least, plan.most, plan.could_turn) == (plan.difference, plan.difference, False)


def test_a_difference_stays_if_it_is_expected_far_from_the_bound_on_the_same_side() -> None:
    plan = replace(
        next_judgments("DCG@4", TRUTH, OLD, NEW), difference=0.02, expected=0.05, deviation=0.02
    )
    assert plan.could_turn
    assert plan.unlikely_to_turn
    assert not replace(plan, deviation=0.03).unlikely_to_turn
    assert not replace(plan, difference=-0.02).unlikely_to_turn
    assert not replace(plan, difference=0.0).unlikely_to_turn
    assert not replace(plan, bound=0.015).unlikely_to_turn
    assert not replace(plan, bound=0.03).unlikely_to_turn
    assert replace(plan, bound=0.1).unlikely_to_turn
    assert replace(plan, could_turn=False, expected=None, deviation=None).unlikely_to_turn
    assert replace(plan, expected=None, deviation=None).unlikely_to_turn is None


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
def test_chosen_documents_make_a_sign_certain_with_fewer_judgments_than_random_ones() -> None:
    known, runs = gates.dl21()
    pair = runs["NLE_P_v1"], runs["p_bm25rm3"]
    chosen, at_random = (
        gates.judgments_until_certain(known, *pair, by_plan=by_plan, seed=3)
        for by_plan in (True, False)
    )
    assert chosen <= 0.9 * at_random


def test_a_bound_that_is_met_but_for_rounding_is_met() -> None:
    def run(lists: dict[str, str]) -> dict[str, dict[str, float]]:
        return {
            query: {document: 9.0 - rank for rank, document in enumerate(documents)}
            for query, documents in lists.items()
        }

    judged = {
        "q0": {"a": 2, "c": 0, "z": 2, "y": 0, "w": 2},
        "q1": {"c": 1, "d": 0, "z": 1, "y": 2},
    }
    plan = next_judgments(
        "bpref", judged, run({"q0": "badc", "q1": "bc"}), run({"q0": "dac", "q1": "db"})
    )
    assert plan.most == pytest.approx(0, abs=1e-15)
    assert plan.could_turn


def test_that_little_is_judged_is_the_reason_for_a_plan_and_nothing_to_warn_of() -> None:
    judgments = {f"q{number}": {"x": 1.0} for number in range(6)}
    one, other = (
        {query: dict.fromkeys(names, 1.0) for query in judgments}
        for names in (["a", "b"], ["c", "d"])
    )
    plan = next_judgments("P@2", judgments, one, other)
    assert (plan.unjudged, plan.least, plan.most) == (24, -1.0, 1.0)
    assert plan.why_unknown

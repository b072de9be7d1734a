"""Plans: how many queries show a difference, and which documents to judge next."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from podium.data import Judgments, as_rankings
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
from podium.measures.comparison.unjudged import unjudged_effects


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
        queries_needed(**({"difference": 0.01, "deviation": 0.1} | arguments))


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


@pytest.mark.parametrize("name", ["nDCG@3", "DCG@3", "P@2", "RR", "AP", "ERR(max=2)@3", "bpref"])
def test_effects_are_what_evaluating_with_the_label_gives(name: str) -> None:
    measure = parse_measure(name)
    effects = unjudged_effects(
        measure,
        conventions_named("podium"),
        Judgments.from_columns(
            [query for query, row in TRUTH.items() for _ in row],
            [document for row in TRUTH.values() for document in row],
            [label for row in TRUTH.values() for label in row.values()],
        ),
        as_rankings(OLD),
        as_rankings(NEW),
    )

    def difference(truth: dict, query: str) -> float:
        values = [evaluate(name, truth, run) for run in (OLD, NEW)]
        old, new = (
            dict(zip(each.query_ids.to_pylist(), each[name], strict=True))[query] for each in values
        )
        return float(np.nan_to_num(new) - np.nan_to_num(old))

    assert effects.levels.tolist() == [0, 1, 2]
    # Without a cut-off all are tried, at 2 or 3 those that are so high in one of the runs.
    everything = [("p", "u"), ("p", "v"), ("q", "w"), ("q", "y")]
    candidates = [everything[0], everything[2]] if name == "P@2" else everything
    pairs = zip(effects.query.tolist(), effects.document_ids, strict=True)
    assert [(effects.query_ids[query], document) for query, document in pairs] == candidates
    for row, (query, document) in enumerate(zip(effects.query, effects.document_ids, strict=True)):
        key = effects.query_ids[query]
        for column, label in enumerate((0, 1, 2)):
            tried = {**TRUTH, key: {**TRUTH[key], document: label}}
            change = difference(tried, key) - difference(TRUTH, key)
            assert effects.effects[row, column] == pytest.approx(change, abs=1e-6)


def test_the_documents_that_matter_most_come_first() -> None:
    plan = next_judgments("DCG@4", TRUTH, OLD, NEW)
    # u is 2nd in the one and 1st in the other, w the reverse, v 4th and 3rd, y only 3rd.
    assert [(each.query_id, each.document_id) for each in plan.documents][-1] == ("p", "v")
    assert plan.unjudged == 4
    swings = [each.swing for each in plan.documents]
    assert swings == sorted(swings, reverse=True)
    assert plan.deviation == pytest.approx(math.sqrt(sum(swing**2 for swing in swings)))
    ranks = {each.document_id: (each.baseline_rank, each.system_rank) for each in plan.documents}
    assert ranks == {"u": (2, 1), "w": (1, 2), "v": (4, 3), "y": (None, 3)}
    turned = next_judgments("DCG@4", TRUTH, NEW, OLD)
    assert turned.expected == pytest.approx(-plan.expected)
    assert [each.swing for each in turned.documents] == pytest.approx(swings)


def test_a_document_that_both_rank_alike_tells_nothing() -> None:
    plan = next_judgments(
        "DCG@3", {"q": {"a": 1}}, {"q": {"a": 2, "u": 1}}, {"q": {"a": 2, "u": 1}}
    )
    assert (plan.documents, plan.unjudged, plan.chance_to_turn) == ((), 1, 0.0)


def test_all_judged_is_decided() -> None:
    truth = {"q": {"a": 1, "b": 0}}
    plan = next_judgments("DCG@2", truth, {"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}})
    assert (plan.documents, plan.unjudged, plan.deviation) == ((), 0, 0.0)
    assert plan.expected == plan.difference == pytest.approx(1 / math.log2(3) - 1)


def test_the_chance_to_turn_is_the_normal_tail() -> None:
    plan = next_judgments("DCG@4", TRUTH, OLD, NEW, bound=-0.3)
    expected = float(stats.norm.sf(abs(plan.expected + 0.3) / plan.deviation))
    assert plan.chance_to_turn == pytest.approx(expected)


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_counts_are_checked(count: int) -> None:
    with pytest.raises(ArgumentError, match="count"):
        next_judgments("DCG@4", TRUTH, OLD, NEW, count=count)

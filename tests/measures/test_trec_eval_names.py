"""All that trec_eval's ``-m`` takes, by its names: values, nicknames, parameters and refusals."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings

import podium
from podium.data import Judgments, Rankings, read_qrels, read_run
from podium.errors import ArgumentError
from podium.measures import Conventions, IPrec, Rprec, compare, evaluate, nDCG
from podium.measures.evaluation import Evaluation
from podium.measures.names import parse_measure, read_spellings
from podium.measures.presets import PRESETS
from podium.measures.trec_eval import TrecMeasure, trec_eval_measures
from tests.data.shared_files import shared
from tests.measures.queries import RUNS, as_dicts, dl21, expected, judged_runs

TREC_EVAL = PRESETS["trec_eval"]
# trec_eval 10 rounds levels of recall otherwise than trec_eval 9, which pytrec_eval runs.
TREC_EVAL_10 = replace(TREC_EVAL, recall_rounding="nearest")
# In trec_eval 10 alone.
NEW = ("unj", "rbp")


def numbers(*names: str) -> list[TrecMeasure]:
    return [each for each in trec_eval_measures(names) if each.measure is not None]


def evaluated(listed: list[TrecMeasure], case: tuple, conventions: Conventions) -> Evaluation:
    return evaluate([each.measure for each in listed], *case, conventions=conventions)


def assert_as_pytrec_eval(case: tuple[Judgments, Rankings], level: int = 1) -> int:
    listed = [each for each in numbers("all_trec") if not each.name.startswith(NEW)]
    qrels, run = as_dicts(*case)
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, pytrec_eval.supported_measures, relevance_level=level
    )
    theirs = evaluator.evaluate(run)
    result = evaluated(listed, case, replace(TREC_EVAL, relevant_from=level))
    compared = 0
    for query, topic in enumerate(result.query_ids.to_pylist()):
        for each in listed:
            value = result[each.measure][query]
            if topic not in theirs:
                assert math.isnan(value)
                continue
            printed = theirs[topic][each.name]
            if each.name.startswith("gm_"):  # the logarithm, of at least 0.00001
                value = math.log(max(value, 1e-5))
            if each.name == "Rndcg" and math.isnan(printed):
                continue  # 0 / 0 there
            assert value == pytest.approx(printed, abs=1e-6), (topic, each.name)
            compared += 1
    return compared


@pytest.mark.parametrize("run", RUNS[:4])
@pytest.mark.parametrize("level", [1, 2])
def test_every_measure_on_real_runs(run: str, level: int) -> None:
    listed = [each for each in numbers("all_trec") if not each.name.startswith(NEW)]
    assert len(listed) == 93
    assert assert_as_pytrec_eval(dl21(run), level) == 53 * len(listed)


@settings(max_examples=30)
@given(judged_runs(lowest=-2))
def test_every_measure_on_any_run(case: tuple[Judgments, Rankings]) -> None:
    """Labels below 0 are documents of the pool that were not judged, which infAP counts."""
    assert_as_pytrec_eval(case)


def golden_case() -> tuple[Judgments, Rankings]:
    folder = shared("trec/trec_eval")
    return read_qrels(folder / "qrels.test"), read_run(folder / "results.test")


def test_means_sums_and_geometric_means_are_those_that_it_prints() -> None:
    printed = expected(shared("trec/trec_eval") / "out.test.a")["all"]
    listed = numbers("all_trec")
    assert {each.name for each in listed} == set(printed)
    means = evaluated(listed, golden_case(), TREC_EVAL_10).means
    for each in listed:
        assert means[each.measure] == pytest.approx(printed[each.name], abs=5.1e-5), each.name


def test_a_topic_that_is_missing_counts_with_complete_averages() -> None:
    folder = shared("trec/trec_eval")
    printed = expected(folder / "out.test.aqc")["all"]
    lines = (folder / "results.test").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.startswith("301")]
    kept += [line for line in lines if line.startswith("303")][:84]
    case = read_qrels(folder / "qrels.test"), read_run(io.BytesIO("".join(kept).encode()))
    listed = numbers("all_trec")
    means = evaluated(listed, case, replace(TREC_EVAL_10, missing="empty")).means
    for each in listed:
        if each.name in printed:
            assert means[each.measure] == pytest.approx(printed[each.name], abs=5.1e-5), each.name


def test_parameters() -> None:
    printed = expected(shared("trec/trec_eval") / "out.test.meas_params")
    texts = [
        *("iprec_at_recall..10,.20,.25,.75,.50", "P.5,7,3", "recall.20,2000"),
        *("Rprec_mult.5.0,0.2,0.35", "utility.2,-1,0,0", "11pt_avg..25,.5,.75"),
        *("ndcg.1=3,2=9,4=4.5", "ndcg_cut.10,20,23", "success.2,5,20"),
    ]
    listed = numbers(*texts)
    assert [each.name for each in listed] == list(printed["301"])
    result = evaluated(listed, golden_case(), TREC_EVAL_10)
    for query, topic in enumerate(result.query_ids.to_pylist()):
        for each in listed:
            value = result[each.measure][query]
            assert value == pytest.approx(printed[topic][each.name], abs=5.1e-5), each.name


def test_nicknames_from_python() -> None:
    judgments, run = dl21("p_bm25")
    official = podium.evaluate("official", judgments, run)
    assert official.conventions == TREC_EVAL
    assert len(official.means) == 29  # all but the run's name
    assert official.means["num_q"] == 53
    qrels, dictionary = as_dicts(judgments, run)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "P"}).evaluate(dictionary)
    assert official.means["P_15"] == pytest.approx(np.mean([v["P_15"] for v in theirs.values()]))
    logarithms = [math.log(max(values["map"], 1e-5)) for values in theirs.values()]
    assert official.means["gm_map"] == pytest.approx(math.exp(np.mean(logarithms)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("official", 29),
        ("all_trec", 98),
        ("set", 10),
        ("ndcg_cut", 9),
        ("iprec_at_recall", 11),
        ("Rprec_mult", 10),
        ("relative_P.5,10", 2),
        ("P.5,10,10", 2),
        ("P", 1),  # Podium's, of the whole list
    ],
)
def test_how_many_measures_a_text_stands_for(text: str, count: int) -> None:
    case = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    result = evaluate(text, *case)
    assert len(result.values) == count
    assert (result.conventions == TREC_EVAL) == (text != "P")


@pytest.mark.parametrize(
    "name", ["gm_map", "infAP", "num_ret", "G", "binG", "utility", "unj_5", "11pt_avg"]
)
def test_its_names_imply_its_conventions(name: str) -> None:
    assert [each.tool for each in read_spellings(name)] == ["trec_eval"]


def test_levels_after_names() -> None:
    assert parse_measure("iprec_at_recall_0.10") == IPrec(recall=0.1) == IPrec @ 0.1
    assert parse_measure("IPrec@0.1") == IPrec @ 0.1
    assert parse_measure("Rprec_mult_1.20") == Rprec(multiple=1.2)
    assert trec_eval_measures(["ndcg_cut_10"])[0].measure == nDCG @ 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map_avgjg", "judgments in groups"),
        ("prefs_pair", "prefs_simp"),
        ("runid", "is text"),
        ("relstring", "is text"),
        ("P.5,x", "is not a number"),
        ("P.5,0", "integer of at least 1"),
        ("iprec_at_recall.2", "from 0 to 1"),
        ("utility.1,2", "four numbers"),
        ("map.5,6", "has no parameters"),
        ("ndcg.1,2", "is not NAME=NUMBER"),
        ("ndcg.x=2", "is not a relevance level"),
        ("rbp.p=2", "below 1"),
        ("P_2.5", "not an integer"),
    ],
)
def test_what_cannot_be_had_is_refused(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        evaluate(text, {"q": {"a": 1}}, {"q": {"a": 1.0}})


@pytest.mark.parametrize("name", ["gm_map", "num_ret"])
def test_what_is_not_a_mean_is_not_compared(name: str) -> None:
    run = {"q": {"a": 1.0}}
    with pytest.raises(ArgumentError, match="not a mean over queries"):
        compare(name, {"q": {"a": 1}}, {"one": run, "other": run})

"""The preset ``trec_eval`` against trec_eval: as pytrec_eval runs it, and its expected output."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings

from podium.data import Judgments, Rankings, read_qrels, read_run
from podium.data.formats.trec import read_prefs
from podium.data.preferences import Preferences
from podium.measures import evaluate
from podium.measures.evaluation import Evaluation
from podium.measures.presets import PRESETS
from tests.data.shared_files import shared
from tests.measures.queries import RUNS, as_dicts, dl21, expected, judged_runs

CUTS = (1, 3, 5, 10, 30, 200)
NAMES = [
    *("map", "Rprec", "bpref", "recip_rank", "ndcg", "set_recall", "set_P"),
    *(
        f"{name}_{cut}"
        for name in ("P", "recall", "ndcg_cut", "map_cut", "success")
        for cut in CUTS
    ),
]
TREC_EVAL = PRESETS["trec_eval"]


def peer(judgments: Judgments, run: Rankings, level: int = 1, judged_only: bool = False) -> dict:
    qrels, result = as_dicts(judgments, run)
    names = {name.rpartition("_")[0] if name[-1].isdigit() else name for name in NAMES}
    target = {
        f"{name}.{','.join(map(str, CUTS))}" if name + "_1" in NAMES else name for name in names
    }
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, target, relevance_level=level, judged_docs_only_flag=judged_only
    )
    return evaluator.evaluate(result)


def assert_same(result: Evaluation, theirs: dict, names: list[str]) -> int:
    """Compare query by query, and return the number of values compared."""
    compared = 0
    for query, identity in enumerate(result.query_ids.to_pylist()):
        for name in names:
            value = result[name][query]
            if identity in theirs:
                assert value == pytest.approx(theirs[identity][name], abs=1e-6), (identity, name)
                compared += 1
            else:
                assert math.isnan(value)
    return compared


@pytest.mark.parametrize("run", RUNS)
def test_real_runs(run: str) -> None:
    result = evaluate(NAMES, *dl21(run), conventions="trec_eval")
    assert assert_same(result, peer(*dl21(run)), NAMES) == 53 * len(NAMES)


@given(judged_runs(lowest=-2))
def test_any_runs(case: tuple[Judgments, Rankings]) -> None:
    result = evaluate(NAMES, *case, conventions="trec_eval")
    assert_same(result, peer(*case), NAMES)


@pytest.mark.parametrize("run", RUNS[:3])
def test_relevance_level(run: str) -> None:
    names = ["map", "Rprec", "bpref", "recip_rank", "P_10", "recall_30", "success_5"]
    result = evaluate([f"{_ours(name)}-l2" for name in names], *dl21(run), conventions="trec_eval")
    theirs = peer(*dl21(run), level=2)
    renamed = {
        identity: {f"{_ours(name)}-l2": values[name] for name in names}
        for identity, values in theirs.items()
    }
    assert_same(result, renamed, [f"{_ours(name)}-l2" for name in names])


def _ours(name: str) -> str:
    return name.replace("_10", "@10").replace("_30", "@30").replace("_5", "@5")


@settings(max_examples=50)
@given(judged_runs(lowest=-1))
def test_judged_documents_only(case: tuple[Judgments, Rankings]) -> None:
    """trec_eval -J."""
    condensed = replace(TREC_EVAL, unjudged="drop")
    result = evaluate(NAMES, *case, conventions=condensed)
    assert_same(result, peer(*case, judged_only=True), NAMES)


GOLDEN = [
    *("map", "Rprec", "bpref", "recip_rank", "ndcg", "set_recall"),
    *(f"P_{cut}" for cut in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    *(f"recall_{cut}" for cut in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    *(f"ndcg_cut_{cut}" for cut in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    *(f"map_cut_{cut}" for cut in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    *("success_1", "success_5", "success_10", "set_P"),
]


def check_golden(result: Evaluation, values: dict[str, dict[str, float]]) -> None:
    for name in GOLDEN:
        own = dict(zip(result.query_ids.to_pylist(), result[name], strict=True))
        own["all"] = np.nanmean(result[name])
        for topic, printed in values.items():
            assert own[topic] == pytest.approx(printed[name], abs=5.1e-5), (topic, name)


def test_own_output() -> None:
    folder = shared("trec/trec_eval")
    truth, run = read_qrels(folder / "qrels.test"), read_run(folder / "results.test")
    result = evaluate(GOLDEN, truth, run, conventions="trec_eval")
    check_golden(result, expected(folder / "out.test.aq"))


def test_own_output_with_a_topic_missing() -> None:
    """trec_eval -c, on a run without topic 302 and with the first 84 lines of topic 303."""
    folder = shared("trec/trec_eval")
    lines = (folder / "results.test").read_text().splitlines(keepends=True)
    kept = [line for line in lines if line.startswith("301")]
    kept += [line for line in lines if line.startswith("303")][:84]
    run = read_run(io.BytesIO("".join(kept).encode()))
    counting_all = replace(TREC_EVAL, missing="empty")
    truth = read_qrels(folder / "qrels.test")
    result = evaluate(GOLDEN, truth, run, conventions=counting_all)
    check_golden(result, expected(folder / "out.test.aqc"))


def test_own_rank_biased_precision_and_unjudged() -> None:
    folder = shared("trec/trec_eval")
    values = expected(folder / "out.test.a")["all"]
    result = evaluate(
        ["RBP(p=0.9)", "Judged@5", "Judged@10", "Judged@20"],
        read_qrels(folder / "qrels.test"),
        read_run(folder / "results.test"),
        conventions="trec_eval",
    )
    assert np.mean(result["RBP(p=0.9)"]) == pytest.approx(values["rbp"], abs=5.1e-5)
    for cut in (5, 10, 20):
        assert 1 - np.mean(result[f"Judged@{cut}"]) == pytest.approx(
            values[f"unj_{cut}"], abs=5.1e-5
        )


def test_own_output_with_parameters() -> None:
    """Cut-offs of all kinds, and gains that are not in the order of the levels."""
    folder = shared("trec/trec_eval")
    values = expected(folder / "out.test.meas_params")
    names = ["P_3", "P_5", "P_7", "recall_20", "recall_2000", "ndcg_cut_10", "ndcg_cut_20"]
    names += ["ndcg_cut_23", "success_2", "success_5", "success_20"]
    gains = "nDCG(gains=(0, 3, 9, 3, 4.5))"
    result = evaluate(
        [*names, gains],
        read_qrels(folder / "qrels.test"),
        read_run(folder / "results.test"),
        conventions="trec_eval",
    )
    for query, topic in enumerate(result.query_ids.to_pylist()):
        for name in names:
            assert result[name][query] == pytest.approx(values[topic][name], abs=5.1e-5)
        theirs = values[topic]["ndcg_1=3,2=9,4=4.5"]
        assert result[gains][query] == pytest.approx(theirs, abs=5.1e-5)


def closed(preferences: Preferences, groups: list[str]) -> set[tuple[str, str, str, str]]:
    """All preferences that follow within a group: trec_eval adds the transitive ones."""
    pairs = set(
        zip(
            preferences.query_id_of_row().to_pylist(),
            groups,
            preferences.left.to_pylist(),
            preferences.right.to_pylist(),
            strict=True,
        )
    )
    while True:
        more = {
            (topic, group, first, last)
            for topic, group, first, middle in pairs
            for other, same, start, last in pairs
            if (topic, group, middle) == (other, same, start)
        }
        if more <= pairs:
            return pairs
        pairs |= more


def test_own_preferences() -> None:
    """ppref is trec_eval's prefs_simp_imp and rpref its prefs_simp."""
    folder = shared("trec/trec_eval")
    values = expected(folder / "out.test.prefs")
    levels = read_prefs(folder / "prefs.test")
    pairs: list[tuple[str, str, str]] = []
    names = levels.groups.to_pylist()
    for group in sorted(set(names)):
        inside = levels.groups.to_numpy(zero_copy_only=False) == group
        part = (
            type(levels)  # type: ignore[call-arg]
            .from_columns(
                *(
                    np.asarray(column.to_pylist(), object)[inside]
                    for column in (
                        levels.query_id_of_row(),
                        levels.groups,
                        levels.subgroups,
                        levels.document_ids,
                    )
                ),
                levels.levels[inside],
            )
            .pairs()
        )
        pairs += [(topic, one, other) for topic, _, one, other in closed(part, [group] * part.rows)]
    topics, left, right = zip(*sorted(pairs), strict=True)
    preferences = Preferences.from_columns(topics, left, right, [1] * len(pairs))
    run = read_run(folder / "prefs.results.test")
    result = evaluate(["ppref", "rpref"], preferences, run, conventions="trec_eval")
    for query, topic in enumerate(result.query_ids.to_pylist()):
        printed = values[topic]
        assert result["rpref"][query] == pytest.approx(printed["prefs_simp"], abs=5.1e-5), topic
        assert result["ppref"][query] == pytest.approx(printed["prefs_simp_imp"], abs=5.1e-5), topic
    assert len(result) > 10

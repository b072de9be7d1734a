"""Other tools' names of measures imply the tools' conventions."""

import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings

from podium.data import Dataset, Judgments, Rankings, write_parquet, write_qrels, write_run
from podium.errors import ArgumentError
from podium.measures import AP, Conventions, P, compare, evaluate, evaluate_table, nDCG
from podium.measures.names import parse_measure, read_spellings
from podium.measures.presets import (
    PRESETS,
    conventions_for,
    conventions_text,
    resolve_measure,
    resolve_measures,
)
from podium.measures.registry import measure_definitions
from tests.cli.run_podium import fail, succeed
from tests.measures.queries import as_dicts, dl21, judged_runs

# Every name of trec_eval that Podium understands; Rprec and bpref are Podium's own names, too.
TREC_EVAL = ["map", "recip_rank", "ndcg", "set_P", "set_recall"]
CUT = ["P_5", "recall_10", "ndcg_cut_10", "map_cut_10", "success_5", "P.5", "ndcg_cut.3"]


def trec_eval(judgments: Judgments, run: Rankings, names: list[str]) -> dict[str, dict[str, float]]:
    qrels, result = as_dicts(judgments, run)
    expected = {name.replace("_5", ".5").replace("_10", ".10") for name in names}
    return pytrec_eval.RelevanceEvaluator(qrels, expected).evaluate(result)


@pytest.mark.parametrize("name", [*TREC_EVAL, *CUT])
def test_a_name_of_trec_eval_has_its_value(name: str) -> None:
    judgments, run = dl21("p_bm25")
    result = evaluate([name, "Rprec", "bpref"], judgments, run)
    theirs = trec_eval(judgments, run, [name, "Rprec", "bpref"])
    for key in (name, "Rprec", "bpref"):
        printed = key.replace(".", "_")
        expected = np.mean([values[printed] for values in theirs.values()])
        assert result.means[key] == pytest.approx(expected, abs=1e-6)
        assert result[key].mean() == result.means[key] == result.means[parse_measure(key)]
    assert result.conventions == PRESETS["trec_eval"]


def test_the_value_of_ndcg_cut_10() -> None:
    judgments, run = dl21("p_bm25")
    assert evaluate("ndcg_cut_10", judgments, run).means["ndcg_cut_10"] == pytest.approx(
        0.4458, abs=5e-5
    )
    assert evaluate("nDCG@10", judgments, run).means["nDCG@10"] == pytest.approx(0.3421, abs=5e-5)
    podium = evaluate("ndcg_cut_10", judgments, run, conventions="podium")
    assert podium.means["ndcg_cut_10"] == pytest.approx(0.3421, abs=5e-5)


@settings(max_examples=40)
@given(judged_runs())
def test_any_run_has_trec_evals_values(case: tuple[Judgments, Rankings]) -> None:
    result = evaluate([*TREC_EVAL, *CUT], *case)
    theirs = trec_eval(*case, [*TREC_EVAL, *CUT])
    for query, topic in enumerate(result.query_ids.to_pylist()):
        for name in (*TREC_EVAL, *CUT):
            if topic in theirs:
                expected = theirs[topic][name.replace(".", "_")]
                assert result[name][query] == pytest.approx(expected, abs=1e-6), name
            else:
                assert np.isnan(result[name][query])


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        *((name, "trec_eval") for name in (*TREC_EVAL, *CUT, "prefs_simp", "prefs_simp_imp")),
        *((name, "ranx") for name in ("precision@10-l2", "map-l2", "ndcg_burges@5", "rbp.95")),
        ("pre@10", "xgboost"),
        *((name, "podium") for name in ("nDCG@10", "ndcg@10", "NDCG@10", "AP", "P(rel=2)@5", "RR")),
        *((name, "podium") for name in ("mrr@10", "MAP", "recall@5", "hit_rate@3", "r-precision")),
        *((name, None) for name in ("Rprec", "bpref")),
        (nDCG @ 10, "podium"),
    ],
)
def test_whose_name_it_is(name: str, tool: str | None) -> None:
    assert [each.tool for each in read_spellings(name)] == [tool]
    assert conventions_for(name, None) == PRESETS[tool or "podium"]
    assert conventions_for(name, "letor4") == PRESETS["letor4"]
    mine = Conventions(ties="worst")
    assert conventions_for([name], mine) is mine


def test_measures_are_resolved_together_with_their_conventions() -> None:
    measures, conventions = resolve_measures(["P.5,10", "P_10", "map"], None)
    assert measures == [P @ 5, P @ 10, AP]
    assert conventions == PRESETS["trec_eval"]
    assert resolve_measures(["P.5", AP], "ranx") == ([P @ 5, AP], PRESETS["ranx"])
    assert resolve_measure("ndcg_cut_10", None) == (nDCG @ 10, PRESETS["trec_eval"])
    with pytest.raises(ArgumentError, match=r"'P\.5,10' is 2 measures"):
        resolve_measure("P.5,10", None)
    with pytest.raises(ArgumentError, match="there are no measures"):
        resolve_measures([], None)


def test_the_names_of_all_measures_are_podiums() -> None:
    for kind in measure_definitions():
        if kind.function.__module__.startswith("podium."):
            own, lower = read_spellings([kind.name, kind.name.lower()])
            assert own.tool in ("podium", None)
            assert lower.tool in ("podium", "trec_eval", None)


@pytest.mark.parametrize(
    "names",
    [
        ["ndcg_cut_10", "nDCG@10"],
        [nDCG @ 10, "map"],
        ["AP", "recip_rank"],
        ["P_5", "map-l2"],
        ["bpref", "pre@5", "ndcg@5"],
    ],
)
def test_names_of_two_tools_at_once_are_refused(names: list) -> None:
    judgments, run = dl21("p_bm25")
    with pytest.raises(ArgumentError, match=r"conventions differ\. Name the conventions"):
        evaluate(names, judgments, run)
    with pytest.raises(ArgumentError, match="conventions differ"):
        compare(names, judgments, {"one": run, "other": run})
    assert evaluate(names, judgments, run, conventions="trec_eval").means


def test_comparisons_follow_the_names_too() -> None:
    judgments, one = dl21("p_bm25")
    _, other = dl21("NLE_P_v1")
    result = compare(["ndcg_cut_10", "map"], judgments, {"one": one, "other": other})
    assert result.conventions == "trec_eval"
    assert "Conventions: trec_eval." in str(result)
    expected = evaluate("nDCG@10", judgments, other, conventions="trec_eval").means["nDCG@10"]
    assert result.summaries["ndcg_cut_10"]["other"].mean == pytest.approx(expected)
    assert result.against_baseline["map"] is result.against_baseline[AP]
    assert compare("nDCG@10", judgments, {"one": one, "other": other}).conventions == "podium"
    mine = compare(
        "AP", judgments, {"one": one, "other": other}, conventions=Conventions(ties="worst")
    )
    assert mine.conventions == "podium with ties='worst'"


def test_conventions_in_words() -> None:
    for name, preset in PRESETS.items():
        assert conventions_text(preset) == name
    mine = Conventions(relevant_from=2.0).except_for("map", pool="retrieved")
    assert conventions_text(mine) == "podium with relevant_from=2, AP: pool='retrieved'"


def test_tables_follow_the_names_too(tmp_path: Path) -> None:
    data = Dataset.from_arrays(
        [[3.0], [2.0], [1.0]], [2, 0, 1], qid=["a"] * 3, feature_names=["score"]
    )
    write_parquet(data, tmp_path / "scored.parquet")
    result = evaluate_table(["ndcg_cut_3"], tmp_path / "scored.parquet")
    linear = (2 + 1 / 2) / (2 + 1 / np.log2(3))
    assert result.means["ndcg_cut_3"] == pytest.approx(linear)


def test_reports_of_the_command_line_name_the_conventions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judgments, run = dl21("p_bm25")
    write_qrels(judgments, "judged.qrels")
    write_run(run, "bm25.run")
    printed = succeed("evaluate", "judged.qrels", "bm25.run", "-m", "ndcg_cut_10")
    assert printed.splitlines()[1].split("\t")[2::5] == ["0.4458", "trec_eval"]
    printed = succeed("evaluate", "judged.qrels", "bm25.run", "-m", "nDCG@10")
    assert printed.splitlines()[1].split("\t")[2::5] == ["0.3421", "podium"]
    printed = succeed("evaluate", "judged.qrels", "bm25.run", "-m", "map", "--json")
    assert next(iter(json.loads(printed).values()))["conventions"] == "trec_eval"
    assert "Name them, as --conventions trec_eval" in fail(
        "evaluate", "judged.qrels", "bm25.run", "-m", "map", "-m", "nDCG@10"
    )

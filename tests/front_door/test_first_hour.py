"""What newcomers typed that was wrong, silent or unclear."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import podium
from tests.cli.run_podium import fail, succeed
from tests.cli.run_podium import podium as run_podium

QRELS = {"q1": {"a": 5, "b": 4, "c": 0}, "q2": {"a": 1, "b": 0}}
RUN = {"q1": {"b": 3.0, "a": 2.0, "c": 1.0}, "q2": {"b": 2.0, "a": 1.0}}


@pytest.mark.parametrize("name", ["map", "ndcg_cut_10", "official"])
def test_grades_above_4_matter_only_to_err(name):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    evaluation = podium.evaluate(name, QRELS, RUN)
    reference = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut_10"}).evaluate(RUN)
    key = "ndcg_cut_10" if name == "ndcg_cut_10" else "map"
    expected = np.mean([values[key] for values in reference.values()])
    assert evaluation.means[key] == pytest.approx(expected, abs=1e-12)
    with pytest.raises(podium.DataError, match=r"grade of 4 of ERR@10. .*: ERR\(max=5\)"):
        podium.evaluate("ERR@10", QRELS, RUN, conventions="trec_eval")


def test_a_series_of_query_weights_is_matched_by_its_index():
    weights = {"q1": 3.0, "q2": 1.0}
    expected = podium.evaluate("AP", QRELS, RUN, sample_weight=weights).means["AP"]
    assert expected == pytest.approx((3 * 1.0 + 0.5) / 4)
    series = pd.Series(weights).iloc[::-1]
    assert podium.evaluate("AP", QRELS, RUN, sample_weight=series).means["AP"] == expected
    in_order = pd.Series([3.0, 1.0])
    assert podium.evaluate("AP", QRELS, RUN, sample_weight=in_order).means["AP"] == expected
    with pytest.raises(podium.DataError, match="query 'q1' has no weight"):
        podium.evaluate("AP", QRELS, RUN, sample_weight=pd.Series([3.0, 1.0], index=["x", "q2"]))


def test_rankings_of_other_queries_are_refused():
    others = {f"other-{query}": documents for query, documents in RUN.items()}
    message = "none of the 2 queries of the rankings is judged: the first is 'other-q1'"
    with pytest.raises(podium.DataError, match=message):
        podium.evaluate("AP", QRELS, others)
    with pytest.raises(podium.DataError, match=message):
        podium.compare("AP", QRELS, {"old": RUN, "new": others})
    one_of_two = podium.evaluate("AP", QRELS, {"q2": RUN["q2"]})
    assert one_of_two.means["AP"] == 0.25


def test_systems_without_names_are_refused():
    systems: Any = [RUN, RUN]
    with pytest.raises(podium.ArgumentError, match=r"systems are a list\. Give them by name"):
        podium.compare("AP", QRELS, systems)


def table(path, names: str) -> None:
    random = np.random.default_rng(0)
    lines = [names]
    for row in range(40):
        x, y = random.random(2).round(3)
        lines.append(f"{row // 10},d{row},{int(x > 0.5)},{x},{y}")
    path.write_text("\n".join(lines) + "\n")


def test_predict_writes_a_run_where_the_name_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "rows.csv", "query,doc,grade,x,y")
    assert run_podium("train", "rows.csv", "ranker.podium", "--scorer", "linear").returncode == 0
    succeed("predict", "ranker.podium", "rows.csv", "-o", "scored.run")
    first = (tmp_path / "scored.run").read_text().splitlines()[0].split()
    assert len(first) == 6
    assert first[0] == "0"
    assert first[2].startswith("d")
    succeed("predict", "ranker.podium", "rows.csv", "-o", "scores.txt")
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 40


def test_a_column_of_words_is_told_with_its_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "rows.csv", "query,article,grade,x,y")
    printed = fail("train", "rows.csv", "ranker.podium")
    assert "column 'article' is string, not numeric" in printed
    assert "--document-column" in printed


def fit(**arguments: Any) -> None:
    X = np.arange(12.0).reshape(6, 2)
    podium.TreeRanker(n_estimators=1).fit(X, [0, 1, 2, 0, 1, 2], **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_at": [5]}, r"no argument eval_at. .*TreeRanker\(measure=\"nDCG@5\"\)"),
        ({"eval_metric": "ndcg"}, r"no argument eval_metric. .*TreeRanker\(measure="),
        ({"sample_weigth": [1]}, "no argument of fit 'sample_weigth'. Did you mean: sample_weight"),
        ({"group": [3, 3], "qid": [1, 1, 1, 2, 2, 2]}, "qid= and group= are both given"),
        ({}, "the rows are not grouped by query. Give either qid= or group="),
    ],
)
def test_arguments_of_other_rankers_are_refused_with_what_to_give(arguments, message):
    with pytest.raises(podium.ArgumentError, match=message):
        fit(**arguments)


def test_a_misspelt_objective_of_lightgbm_is_understood():
    with pytest.raises(
        podium.ArgumentError, match=r"'lamdarank'\. Did you mean: LambdaRank \(LambdaLoss\)"
    ):
        podium.TreeRanker("lamdarank").fit([[1.0], [2.0]], [0, 1], group=[2])


def test_values_beyond_float32_are_named_as_such():
    with pytest.raises(podium.DataError, match=r"too large for float32 \(above 3.4e38\)"):
        podium.TreeRanker().fit([[1e300], [2.0]], [0, 1], group=[2])


@pytest.mark.slow
@pytest.mark.long  # ranx compiles for most of a minute
def test_objects_of_ranx_are_judgments_and_runs():
    ranx = pytest.importorskip("ranx")
    expected = podium.evaluate("nDCG@10", QRELS, RUN)["nDCG@10"].tolist()
    evaluation = podium.evaluate("nDCG@10", ranx.Qrels(QRELS), ranx.Run(RUN))
    assert evaluation["nDCG@10"].tolist() == expected


def test_set_measures_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    own = [ir_measures.SetP, ir_measures.SetR]
    evaluation = podium.evaluate(own, QRELS, RUN)
    reference = ir_measures.calc_aggregate(own, QRELS, RUN)
    means = list(evaluation.means.values())
    assert means == pytest.approx([reference[each] for each in own], abs=1e-12)

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, Judgments, Rankings, read_qrels, read_run
from podium.errors import ArgumentError, DataError
from podium.measures import AP, compare, evaluate, nDCG
from podium.measures.comparison.formats import as_json, as_latex, as_markdown
from podium.measures.comparison.html import as_html, cut_off_curves
from podium.measures.comparison.result import HEADINGS, coherent_cell, notes
from podium.measures.comparison.statistics import holm, paired_difference
from podium.measures.registry import Measure

SHARED = Path(__file__).parents[3] / "shared" / "data" / "trec"
needs_shared = pytest.mark.skipif(
    not SHARED.exists(), reason="the TREC runs of ../shared/data are not here"
)


def made_up(queries: int = 30, *, names: tuple[str, ...] = ("old", "new")) -> tuple:
    random = np.random.default_rng(4)
    ids = np.repeat([f"q{query}" for query in range(queries)], 12)
    documents = [f"d{row}" for row in range(len(ids))]
    labels = random.integers(0, 4, len(ids))
    judgments = Judgments.from_columns(ids, documents, labels)
    runs = {
        name: Rankings.from_columns(
            ids, documents, labels * (0.2 * index) + random.normal(size=len(ids)), name=name
        )
        for index, name in enumerate(names)
    }
    return judgments, runs


def test_values_and_tests_are_those_of_evaluate_and_statistics() -> None:
    judgments, runs = made_up(names=("a", "b", "c"))
    result = compare(["nDCG@5", "AP"], judgments, runs, test="t")
    for measure in result.measures:
        expected = {name: evaluate(measure, judgments, run)[measure] for name, run in runs.items()}
        for index, name in enumerate(result.systems):
            np.testing.assert_allclose(result.values[measure][:, index], expected[name])
        p_values = [paired_difference(expected[name], expected["a"]).p_values["t"] for name in "bc"]
        corrected = [result.against_baseline[measure][name].corrected["t"] for name in "bc"]
        assert corrected == pytest.approx(holm(np.array(p_values)).tolist())
    assert result.baseline == "a"
    assert result.against_baseline["AP"]["b"].coherence is None


def test_the_coherence_is_of_the_measure_that_is_compared() -> None:
    judgments, runs = made_up()
    for name in ("nDCG@5", "DCG@5"):
        result = compare(name, judgments, runs)
        outcome = result.against_baseline[name]["new"]
        assert outcome.coherence is not None
        assert outcome.coherence.difference == pytest.approx(outcome.difference.mean)


NAMES = ["nDCG@5", nDCG @ 5, "ndcg_cut_5", "ndcg_cut.5", "NDCG@5", " nDCG@5 "]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_of_a_measure_is_a_key(name: str | Measure) -> None:
    judgments, runs = made_up()
    result = compare(["nDCG@5", "AP"], judgments, runs)
    assert result.measures == (nDCG @ 5, AP)
    for table in (result.values, result.summaries, result.against_baseline):
        assert name in table
        assert table[name] is table.get(name) is table[nDCG @ 5]
        assert table.copy()[name] is table[name]
        assert table.get("RR") is None
        assert "RR" not in table
        assert "no measure" not in table
        with pytest.raises(KeyError, match=r"'RR' is not among: nDCG@5, AP"):
            table["RR"]
    one = evaluate(["nDCG@5", "AP"], judgments, runs["old"])
    assert one.means[name] == one.means[nDCG @ 5] == one.values[name].mean() == one[name].mean()
    assert one.means.get(name, 0.0) == one.means[name]
    assert one.means.get("RR", 2.0) == 2.0


def test_stars_are_for_p_values_below_a_twentieth() -> None:
    """By hand: of n equal differences, two of 2^n choices of signs are as far from 0."""
    for queries, p in ((5, 2 / 2**5), (6, 2 / 2**6)):
        data = Dataset.from_arrays(
            np.zeros((2 * queries, 1)), [1, 0] * queries, group=[2] * queries
        )
        systems = {"bad": [1, 2] * queries, "good": [2, 1] * queries, "same": [1, 2] * queries}
        result = compare("RR", data, systems)
        cells = {row[1]: dict(zip(HEADINGS, row, strict=True)) for row in result.rows()}
        # Holm's correction over two systems doubles the smaller p-value.
        outcome = result.against_baseline["RR"]["good"]
        assert outcome.corrected["randomization"] == 2 * p
        assert cells["good"]["p (Holm)"] == f"{2 * p:.3g}"
        assert outcome.is_significant("randomization") == (2 * p < 0.05)
        assert cells["good"]["difference"] == ("+0.5000*" if 2 * p < 0.05 else "+0.5000")
        assert cells["same"]["difference"] == "+0.0000"
        assert cells["good"]["coherent"] == ""
        assert cells["good"]["effect"] == "+inf"
        assert cells["good"]["win/tie/loss"] == f"{queries}/0/0"
        assert cells["bad"]["difference"] == ""
    # Six queries: corrected, 0.0625 has no star; alone, 0.03125 has one.
    alone = compare("RR", data, {name: systems[name] for name in ("bad", "good")})
    assert alone.rows()[1][HEADINGS.index("difference")] == "+0.5000*"
    assert alone.against_baseline["RR"]["good"].is_significant("sign")
    assert not alone.against_baseline["RR"]["good"].is_significant("sign", level=0.03)


def test_one_query_is_not_significant() -> None:
    data = Dataset.from_arrays(np.zeros((2, 1)), [1, 0], group=[2])
    for test in ("t", "randomization", "wilcoxon", "sign"):
        result = compare("RR", data, {"bad": [1, 2], "good": [2, 1]}, test=test)  # type: ignore[arg-type]
        assert result.against_baseline["RR"]["good"].corrected[test] == 1.0  # type: ignore[index]
        row = dict(zip(HEADINGS, result.rows()[1], strict=True))
        assert (row["difference"], row["its interval"], row["effect"]) == ("+0.5000", "-", "-")
    new = json.loads(as_json(result))["measures"]["RR"]["good"]
    assert (new["effect"], new["difference_interval"]) == (None, [None, None])


def test_the_coherent_cell() -> None:
    judgments = Judgments.from_columns(["q"] * 3, ["a", "b", "c"], [2, 1, 1])
    runs = {
        "two": Rankings.from_columns(["q"] * 2, ["b", "c"], [2, 1]),
        "one": Rankings.from_columns(["q"], ["a"], [1]),
        "best": Rankings.from_columns(["q"] * 3, ["a", "b", "c"], [3, 2, 1]),
        "same": Rankings.from_columns(["q"] * 2, ["c", "b"], [2, 1]),
    }
    result = compare("nDCG@3", judgments, runs)
    cells = {row[1]: row[-1] for row in result.rows()}
    tried = result.against_baseline["nDCG@3"]["one"].coherence
    assert tried is not None
    kept = np.mean(tried.differences > 1e-12)
    assert 0 < kept < 1
    assert cells == {"two": "", "one": f"{kept:.0%}", "best": "all", "same": "-"}
    assert any("one against two flips with" in note for note in notes(result))
    assert not any("best against two flips" in note for note in notes(result))


@pytest.mark.parametrize(
    ("share", "text"), [(0.999, "99%"), (0.001, "1%"), (1.0, "100%"), (0.5, "50%")]
)
def test_a_whole_share_is_of_the_whole_family(share: float, text: str) -> None:
    judgments, runs = made_up()
    coherence = compare("nDCG@5", judgments, runs).against_baseline["nDCG@5"]["new"].coherence
    assert coherence is not None
    assert coherent_cell(replace(coherence, keeps=share, unanimous=False)) == text


def test_curves_are_means_at_every_cut_off() -> None:
    judgments, runs = made_up(8)
    runs["new"] = runs["new"].select(np.arange(6))
    result = compare(["AP", "nDCG@3"], judgments, runs, conventions="trec_eval")
    curves = cut_off_curves(result)
    assert curves is not None
    assert (curves.measure, curves.cut_offs) == ("nDCG", (1, 2, 3, 4, 5, 6))
    kept = list(result.query_ids)
    for name, run in runs.items():
        for cut_off, mean in zip(curves.cut_offs, curves.means[name], strict=True):
            values = evaluate(f"nDCG@{cut_off}", judgments, run, conventions="trec_eval")
            own = dict(zip(values.query_ids.to_pylist(), values[f"nDCG@{cut_off}"], strict=True))
            assert mean == pytest.approx(np.mean([own[query] for query in kept]))
    assert cut_off_curves(compare("AP", judgments, runs, conventions="trec_eval")) is None
    assert cut_off_curves(replace(result, source=None)) is None


def test_queries_that_one_system_lacks_are_left_out_for_all() -> None:
    judgments, runs = made_up(10)
    runs["new"] = runs["new"].select(np.arange(6))
    result = compare("nDCG@5", judgments, runs, conventions="trec_eval")
    assert (len(result.query_ids), result.left_out) == (6, 4)


def test_moved_queries_are_the_extremes() -> None:
    judgments, runs = made_up()
    result = compare("nDCG@5", judgments, runs)
    changes = result.values["nDCG@5"][:, 1] - result.values["nDCG@5"][:, 0]
    moved = result.against_baseline["nDCG@5"]["new"].moved
    assert changes[moved[0]] == changes.max()
    assert changes[moved[5]] == changes.min()


def test_data_sets_with_scores_compare_too() -> None:
    random = np.random.default_rng(2)
    data = Dataset.from_arrays(
        random.random((60, 1)), labels=random.integers(0, 3, 60), group=[10] * 6
    )
    result = compare("nDCG@5", data, {"one": data.features[:, 0], "two": -data.features[:, 0]})
    assert result.against_baseline["nDCG@5"]["two"].difference.mean == pytest.approx(
        result.summaries["nDCG@5"]["two"].mean - result.summaries["nDCG@5"]["one"].mean
    )


def test_one_system_is_not_compared() -> None:
    judgments, runs = made_up()
    with pytest.raises(ArgumentError, match="at least two"):
        compare("AP", judgments, {"old": runs["old"]})


def test_runs_of_other_queries_are_refused() -> None:
    judgments, runs = made_up()
    other = Rankings.from_columns(["x"], ["d"], [1.0])
    with pytest.raises(DataError, match="none of the 1 queries of the rankings is judged"):
        compare("AP", judgments, {"old": runs["old"], "new": other}, conventions="trec_eval")


HOSTILE = "<script>alert(1)</script>&_%|"


def test_names_in_reports_are_escaped() -> None:
    judgments, runs = made_up(names=("old", HOSTILE))
    result = compare("nDCG@5", judgments, runs)
    page = as_html(result)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=", page)  # nothing is loaded
    assert "\\|" in as_markdown(result)
    assert r"\&\_\%" in as_latex(result)


def test_json_holds_every_value() -> None:
    judgments, runs = made_up()
    result = compare(["nDCG@5", "RR"], judgments, runs)
    content = json.loads(as_json(result))
    assert content["measures"]["RR"]["new"]["values"] == result.values["RR"][:, 1].tolist()
    new = content["measures"]["nDCG@5"]["new"]
    assert 0 <= new["coherence"]["keeps"] <= 1
    assert new["p_values_holm"].keys() == {"t", "randomization", "wilcoxon", "sign"}


@needs_shared
def test_real_runs_give_the_verdicts_they_should() -> None:
    judgments = read_qrels(SHARED / "qrels.dl21-passage.txt.gz")
    names = ("p_bm25", "p_bm25rm3", "NLE_P_v1")
    runs = {name: read_run(SHARED / "dl21-runs" / f"{name}.run.gz") for name in names}
    result = compare("nDCG@10", judgments, runs)
    clear = result.against_baseline["nDCG@10"]["NLE_P_v1"]
    assert clear.is_significant("randomization")
    assert clear.coherence is not None
    assert clear.coherence.keeps == 1.0
    assert clear.coherence.nearest is None
    close = result.against_baseline["nDCG@10"]["p_bm25rm3"]
    assert not close.is_significant("randomization")
    assert close.coherence is not None
    assert close.coherence.nearest is not None
    assert 0.2 < close.coherence.keeps < 0.8


def test_two_perfect_systems_are_equal_whatever_is_tied() -> None:
    """One has ties among equal labels, which are averaged: its values differ in the last digit."""
    labels = np.random.default_rng(1).integers(0, 3, 38 * 11).astype(float)
    data = Dataset.from_arrays(np.zeros((418, 1)), labels=labels, group=[11] * 38)
    other = labels + np.tile(np.linspace(0, 0.5, 11), 38)
    result = compare("nDCG@3", data, {"a": labels, "b": other})
    outcome = result.against_baseline["nDCG@3"]["b"]
    assert (outcome.tukey, outcome.difference.ties) == (1.0, 38)
    assert outcome.coherence is not None
    assert outcome.coherence.difference == 0.0
    assert result.rows()[1][-1] == "-"

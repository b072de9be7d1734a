import json
import re
from pathlib import Path

import numpy as np
import pytest

from podium.data import Dataset, Judgments, Rankings, read_qrels, read_run
from podium.errors import ArgumentError, DataError
from podium.measures import as_html, as_json, as_latex, as_markdown, compare, evaluate
from podium.measures.statistics import holm, paired_difference

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
            ids, documents, labels * (0.2 * place) + random.normal(size=len(ids)), name=name
        )
        for place, name in enumerate(names)
    }
    return judgments, runs


def test_values_and_tests_are_those_of_evaluate_and_statistics() -> None:
    judgments, runs = made_up(names=("a", "b", "c"))
    found = compare(["nDCG@5", "AP"], judgments, runs, test="t")
    for measure in found.measures:
        expected = {name: evaluate(measure, judgments, run)[measure] for name, run in runs.items()}
        for place, name in enumerate(found.systems):
            np.testing.assert_allclose(found.values[measure][:, place], expected[name])
        p_values = [paired_difference(expected[name], expected["a"]).p_values["t"] for name in "bc"]
        corrected = [found.verdicts[measure][name].corrected["t"] for name in "bc"]
        assert corrected == pytest.approx(holm(np.array(p_values)).tolist())
    assert found.baseline == "a"
    assert found.verdicts["AP"]["b"].coherence is None


def test_the_coherence_is_of_the_measure_that_is_compared() -> None:
    judgments, runs = made_up()
    for name in ("nDCG@5", "DCG@5"):
        found = compare(name, judgments, runs)
        verdict = found.verdicts[name]["new"]
        assert verdict.coherence is not None
        if name == "nDCG@5":  # DCG's family is scaled to a highest gain of 1
            assert verdict.coherence.difference == pytest.approx(verdict.difference.mean)
        else:
            gain = 2**3 - 1
            assert verdict.coherence.difference * gain == pytest.approx(verdict.difference.mean)


def test_queries_that_one_system_lacks_are_left_out_for_all() -> None:
    judgments, runs = made_up(10)
    runs["new"] = runs["new"].select(np.arange(6))
    found = compare("nDCG@5", judgments, runs, conventions="trec_eval")
    assert (len(found.query_ids), found.left_out) == (6, 4)


def test_moved_queries_are_the_extremes() -> None:
    judgments, runs = made_up()
    found = compare("nDCG@5", judgments, runs)
    changes = found.values["nDCG@5"][:, 1] - found.values["nDCG@5"][:, 0]
    moved = found.verdicts["nDCG@5"]["new"].moved
    assert changes[moved[0]] == changes.max()
    assert changes[moved[5]] == changes.min()


def test_data_sets_with_scores_compare_too() -> None:
    random = np.random.default_rng(2)
    data = Dataset.from_arrays(
        random.random((60, 1)), labels=random.integers(0, 3, 60), group=[10] * 6
    )
    found = compare("nDCG@5", data, {"one": data.features[:, 0], "two": -data.features[:, 0]})
    assert found.verdicts["nDCG@5"]["two"].difference.mean == pytest.approx(
        found.summaries["nDCG@5"]["two"].mean - found.summaries["nDCG@5"]["one"].mean
    )


def test_one_system_is_not_compared() -> None:
    judgments, runs = made_up()
    with pytest.raises(ArgumentError, match="at least two"):
        compare("AP", judgments, {"old": runs["old"]})


def test_runs_of_other_queries_are_refused() -> None:
    judgments, runs = made_up()
    other = Rankings.from_columns(["x"], ["d"], [1.0])
    with pytest.raises(DataError, match="no query"):
        compare("AP", judgments, {"old": runs["old"], "new": other}, conventions="trec_eval")


HOSTILE = "<script>alert(1)</script>&_%|"


def test_names_in_reports_are_escaped() -> None:
    judgments, runs = made_up(names=("old", HOSTILE))
    found = compare("nDCG@5", judgments, runs)
    page = as_html(found)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=", page)  # nothing is loaded
    assert "\\|" in as_markdown(found)
    assert r"\&\_\%" in as_latex(found)


def test_json_holds_every_value() -> None:
    judgments, runs = made_up()
    found = compare(["nDCG@5", "RR"], judgments, runs)
    content = json.loads(as_json(found))
    assert content["measures"]["RR"]["new"]["values"] == found.values["RR"][:, 1].tolist()
    new = content["measures"]["nDCG@5"]["new"]
    assert 0 <= new["coherence"]["keeps"] <= 1
    assert new["p_values_holm"].keys() == {"t", "randomisation", "wilcoxon", "sign"}


@needs_shared
def test_real_runs_give_the_verdicts_they_should() -> None:
    judgments = read_qrels(SHARED / "qrels.dl21-passage.txt.gz")
    names = ("p_bm25", "p_bm25rm3", "NLE_P_v1")
    runs = {name: read_run(SHARED / "dl21-runs" / f"{name}.run.gz") for name in names}
    found = compare("nDCG@10", judgments, runs)
    clear = found.verdicts["nDCG@10"]["NLE_P_v1"]
    assert clear.is_significant("randomisation")
    assert clear.coherence is not None
    assert clear.coherence.unanimous
    assert clear.coherence.nearest is None
    close = found.verdicts["nDCG@10"]["p_bm25rm3"]
    assert not close.is_significant("randomisation")
    assert close.coherence is not None
    assert close.coherence.nearest is not None
    assert 0.2 < close.coherence.keeps < 0.8

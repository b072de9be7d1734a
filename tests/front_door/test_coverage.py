"""Runs that do not fit the judgments are noticed, and every report says so."""

import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.data import read_run
from podium.data.preferences import Preferences
from podium.errors import CoverageWarning, DataError
from podium.measures import Conventions, P, compare, nDCG
from podium.measures.comparison.formats import as_json, as_markdown
from podium.measures.comparison.html import as_html
from podium.measures.coverage import RunCoverage
from tests.cli.run_podium import podium as run_podium

QUERIES = [f"q{number}" for number in range(20)]
TRUTH = {query: {f"D{item}": item % 3 for item in range(12)} for query in QUERIES}
Run = dict[str, dict[str, float]]


def lists(documents: list[str], queries: list[str] = QUERIES) -> Run:
    draw = random.Random(0)
    return {query: {each: draw.random() for each in documents} for query in queries}


GOOD = lists([f"D{item}" for item in range(12)])
REFUSED: dict[str, Run] = {
    "other document ids": lists([f"http://shop/D{item}" for item in range(12)]),
    "lower case": lists([f"d{item}" for item in range(12)]),
    "other query ids": lists([f"D{item}" for item in range(12)], [f"t{n}" for n in range(20)]),
    "judged documents at the end": {
        query: {**{f"U{item}": 2.0 for item in range(10)}, "D1": 1.0} for query in QUERIES
    },
    "documents that only other queries have": {
        query: {f"{other}-{item}": 1.0 for item in range(12)}
        for query, other in zip(QUERIES, QUERIES[1:] + QUERIES[:1], strict=True)
    },
}
WARNED: dict[str, tuple[Run, str]] = {
    "a fifth of the queries": ({each: GOOD[each] for each in QUERIES[:4]}, "16 of 20 judged"),
    "half of the query ids changed": (
        {each.upper() if at % 2 else each: GOOD[each] for at, each in enumerate(QUERIES)},
        "10 of 20 judged",
    ),
    "a query lacking": ({each: GOOD[each] for each in QUERIES[1:]}, "1 of 20 judged"),
    "most document ids changed": (
        lists([f"D{item}" if item < 3 else f"X{item}" for item in range(12)]),
        "of the first 10 documents are judged",
    ),
    "another index": (
        lists([f"D{item}" for item in range(6)] + [f"N{item}" for item in range(40)]),
        "of the first 10 documents are judged",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_runs_of_which_nothing_is_judged_are_refused(mistake: str) -> None:
    for refused in (
        lambda: podium.evaluate("nDCG@10", TRUTH, REFUSED[mistake]),
        lambda: compare("nDCG@10", TRUTH, {"old": GOOD, "new": REFUSED[mistake]}),
    ):
        with pytest.raises(DataError, match=r"Compare the (document|query) ids"):
            refused()


@pytest.mark.filterwarnings("always::podium.errors.CoverageWarning")
@pytest.mark.parametrize("mistake", WARNED)
def test_every_report_says_what_is_not_there(mistake: str, tmp_path: Path) -> None:
    wrong, sentence = WARNED[mistake]
    with pytest.warns(CoverageWarning, match=sentence):
        podium.evaluate("nDCG@10", TRUTH, wrong)
    with pytest.warns(CoverageWarning, match=sentence):
        compared = compare("nDCG@10", TRUTH, {"old": GOOD, "new": wrong})
    for text in (str(compared), as_markdown(compared), as_html(compared)):
        assert sentence in text
    assert any(sentence in each for each in json.loads(as_json(compared))["warnings"])

    qrels, old, new = written(tmp_path, GOOD, wrong)
    for command in (["evaluate", qrels, new], ["compare", qrels, old, new]):
        piped = run_podium(*command)
        assert sentence in piped.stderr.decode()
        assert "answered" in piped.stdout.decode()
        printed = run_podium(*command, "--json").stdout.decode()
        assert any(sentence in each for each in _warnings(printed))


@pytest.mark.filterwarnings("always::podium.errors.CoverageWarning")
def test_every_report_says_that_no_label_reaches_a_grade(tmp_path: Path) -> None:
    sentence = "none of the 240 judged documents has a label of 9 or more; the largest is 2."
    for measures in (["P(rel=9)@5"], ["nDCG@10", "RR(rel=9)", "P(rel=9)@5"]):
        with pytest.warns(CoverageWarning, match=sentence) as seen:
            result = podium.evaluate(measures, TRUTH, GOOD)
        assert len(seen) == 1
        assert result.coverage is not None
        assert result.coverage.label_warnings([P(rel=2) @ 5, nDCG @ 10], result.conventions) == []
    with pytest.warns(CoverageWarning, match=f"RR: {sentence}"):
        podium.evaluate("RR", TRUTH, GOOD, conventions=Conventions(relevant_from=9.0))
    with pytest.warns(CoverageWarning, match=sentence):
        compared = compare("RR(rel=9)", TRUTH, {"old": GOOD, "new": GOOD})
    for text in (str(compared), as_markdown(compared), as_html(compared)):
        assert text.count(sentence) == 1
    assert sentence in json.loads(as_json(compared))["warnings"][0]

    qrels, old, new = written(tmp_path, GOOD, GOOD)
    for command in (["evaluate", qrels, old, new], ["compare", qrels, old, new]):
        for options in (["-m", "RR(rel=9)"], ["-m", "RR(rel=9)", "--json"]):
            done = run_podium(*command, *options)
            piped = done.stdout if "--json" in options else done.stderr
            assert sentence in piped.decode()
    assert sentence in run_podium("evaluate", qrels, old, "-l", 9, "--trec").stderr.decode()


@pytest.mark.filterwarnings("always::podium.errors.CoverageWarning")
def test_every_report_counts_queries_whose_ranks_contradict_their_scores(tmp_path: Path) -> None:
    qrels, old, new = written(tmp_path, GOOD, GOOD)
    lines = [line.split() for line in new.read_text().splitlines()]
    for line in lines:
        if line[0] in ("q3", "q4"):  # numbered in the order of the file, not that of the scores
            line[3] = line[2][1:]
    new.write_text("\n".join(map(" ".join, lines)))
    sentence = "the ranks of 2 of 20 queries contradict the scores, which count."
    with pytest.warns(CoverageWarning, match=sentence):
        result = podium.evaluate("RR", str(qrels), str(new))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        podium.evaluate("RR", str(qrels), str(old))
        kept = [each for each in QUERIES if each not in ("q3", "q4")]
        podium.evaluate("RR", {each: TRUTH[each] for each in kept}, read_run(new))
        podium.evaluate("RR", {each: TRUTH[each] for each in kept}, read_run(new).select(kept))
    assert result.coverage is not None
    assert result.coverage.contradicted == 2
    compared = compare("RR", str(qrels), {"old": str(old), "new": str(new)})
    for text in (str(compared), as_markdown(compared), as_html(compared), as_json(compared)):
        assert f"new: {sentence}" in text
    for command in (["evaluate", qrels, new], ["compare", qrels, old, new]):
        assert sentence in run_podium(*command).stderr.decode()
        assert sentence in run_podium(*command, "--json").stdout.decode()
    described = run_podium("describe", new, "--format", "run").stdout.decode()
    assert "queries whose ranks contradict the scores\t2" in described


def written(folder: Path, *runs: Run) -> list[Path]:
    """Write the judgments, and runs called old and new."""
    paths = [folder / name for name in ("q.qrels", "old.run", "new.run")]
    paths[0].write_text("".join(f"{q} 0 {d} {g}\n" for q in TRUTH for d, g in TRUTH[q].items()))
    for path, ranked in zip(paths[1:], runs, strict=True):
        path.write_text(
            "".join(f"{q} Q0 {d} 0 {s} {path.stem}\n" for q in ranked for d, s in ranked[q].items())
        )
    return paths


def _warnings(printed: str) -> list[str]:
    content = json.loads(printed)
    return content["warnings"] if "warnings" in content else content["new"]["warnings"]


def test_nothing_is_said_of_runs_that_fit() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = podium.evaluate("nDCG@10", TRUTH, GOOD)
        # Relevant documents alone were judged, as in MS MARCO: most of a run is not.
        positives = {query: {"D1": 1} for query in QUERIES}
        podium.evaluate("RR@10", positives, GOOD)
    assert result.coverage == RunCoverage(
        20, 20, 0, 10, 200, 200, only_relevant=False, documents=240, largest=2.0
    )


def test_counts_of_first_documents_are_those_of_brute_force() -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        truth = {
            f"q{n}": {f"d{i}": int(draw.integers(3)) for i in draw.choice(30, 9)} for n in range(6)
        }
        ranked = {
            f"q{n}": {
                f"d{i}": float(draw.integers(1000) + i / 99) for i in range(draw.integers(1, 30))
            }
            for n in range(8)
        }
        shown = judged = 0
        for query in truth:
            first = sorted(ranked[query], key=ranked[query].__getitem__, reverse=True)[:5]
            shown, judged = shown + len(first), judged + len(set(first) & set(truth[query]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            coverage = podium.evaluate(["P@5", "AP"], truth, ranked).coverage
        assert coverage is not None
        assert (coverage.shown, coverage.judged, coverage.others) == (shown, judged, 2)


def test_preferences_cover_the_documents_of_their_pairs() -> None:
    preferences = Preferences.from_columns(["q", "p"], ["a", "a"], ["b", "c"], [1, -1])
    ranked = {"q": {"a": 3.0, "x": 2.0, "b": 1.0}, "p": {"c": 1.0}}
    coverage = podium.evaluate("ppref", preferences, ranked).coverage
    assert coverage is not None
    assert (coverage.answered, coverage.shown, coverage.judged) == (2, 4, 3)


def test_unjudged_documents_can_be_left_out_of_comparisons(tmp_path: Path) -> None:
    (tmp_path / "q.qrels").write_text("q 0 a 1\nq 0 b 0\np 0 a 1\np 0 b 0\n")
    (tmp_path / "old.run").write_text("q Q0 x 1 3 old\nq Q0 a 2 2 old\np Q0 a 1 3 old\n")
    (tmp_path / "new.run").write_text("q Q0 a 1 3 new\np Q0 a 1 3 new\n")
    files = [str(tmp_path / name) for name in ("q.qrels", "old.run", "new.run")]
    printed = run_podium("compare", *files, "-m", "RR", "-J", "--json").stdout.decode()
    means = json.loads(printed)["measures"]["RR"]
    assert means["old"]["mean"] == means["new"]["mean"] == 1.0

"""``podium evaluate`` for users of trec_eval: its options, its output, line by line."""

import json
from pathlib import Path

import pytest
import pytrec_eval

from podium.data import write_qrels, write_run
from tests.cli.run_podium import fail, succeed
from tests.data.shared_files import shared
from tests.measures.queries import as_dicts, dl21

# Levels of recall are rounded as in trec_eval 9; the outputs are trec_eval 10's.
OTHER_ROUNDING = ("iprec_at_recall", "11pt_avg")


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OTHER_ROUNDING)]


@pytest.mark.parametrize(
    ("output", "options"),
    [
        ("out.test", ()),
        ("out.test.a", ("-m", "all_trec")),
        ("out.test.aq", ("-m", "all_trec", "-q")),
    ],
)
def test_its_own_output_line_by_line(output: str, options: tuple[str, ...]) -> None:
    folder = shared("trec/trec_eval")
    printed = succeed(
        "evaluate", folder / "qrels.test", folder / "results.test", "--trec", *options
    )
    expected = (folder / output).read_text()
    assert lines(printed) == lines(expected)
    assert len(printed.splitlines()) == len(expected.splitlines())


def test_complete_averages(tmp_path: Path) -> None:
    folder = shared("trec/trec_eval")
    every = (folder / "results.test").read_text().splitlines(keepends=True)
    kept = [line for line in every if line.startswith("301")]
    kept += [line for line in every if line.startswith("303")][:84]
    (tmp_path / "part").write_text("".join(kept))
    arguments = (folder / "qrels.test", tmp_path / "part", "--trec", "-m", "all_trec", "--complete")
    expected = [
        line for line in lines((folder / "out.test.aqc").read_text()) if line.split()[1] == "all"
    ]
    assert lines(succeed("evaluate", *arguments)) == expected


def test_levels_of_recall_are_those_of_pytrec_eval(tmp_path: Path) -> None:
    judgments, run = dl21("p_bm25")
    write_qrels(judgments, tmp_path / "judged.qrels")
    write_run(run, tmp_path / "bm25.run")
    printed = succeed(
        "evaluate", tmp_path / "judged.qrels", tmp_path / "bm25.run", "--trec", "-q",
        "-m", "iprec_at_recall", "-m", "11pt_avg", "-l", 2,
    )  # fmt: skip
    evaluator = pytrec_eval.RelevanceEvaluator(
        as_dicts(judgments, run)[0], {"iprec_at_recall", "11pt_avg"}, relevance_level=2
    )
    theirs = evaluator.evaluate(as_dicts(judgments, run)[1])
    compared = 0
    for line in printed.splitlines():
        name, topic, value = line.split()
        if topic != "all":
            assert float(value) == pytest.approx(theirs[topic][name], abs=5.1e-5)
            compared += 1
    assert compared == 53 * 12


def test_strings_of_relevance(tmp_path: Path) -> None:
    """Judged levels, - for a document out of the pool, . for one of the pool without a judgment."""
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b -1\nq 0 c 12\nq 0 d 0\n")
    (tmp_path / "run").write_text(
        "".join(f"q Q0 {document} 0 {9 - rank} tag\n" for rank, document in enumerate("xbacd"))
    )
    arguments = ("evaluate", tmp_path / "qrels", tmp_path / "run", "--trec", "-q")
    assert succeed(*arguments, "-m", "relstring") == f"{'relstring':<22}\tq\t'-.1>0'\n"
    short = succeed(*arguments, "-m", "relstring", "-m", "relstring.3", "-m", "runid")
    assert short.splitlines() == [
        f"{'relstring_3':<22}\tq\t'-.1'",
        f"{'runid':<22}\tall\ttag",
    ]
    judged = succeed(*arguments, "-J", "-m", "relstring", "-m", "num_ret")
    assert judged.splitlines()[:2] == [f"{'num_ret':<22}\tq\t3", f"{'relstring':<22}\tq\t'1>0'"]


def test_lists_and_levels_without_its_output(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 2\nq 0 c 2\n")
    (tmp_path / "run").write_text("q Q0 a 0 3 tag\nq Q0 b 0 2 tag\n")
    arguments = ("evaluate", tmp_path / "qrels", tmp_path / "run", "--json")
    (result,) = json.loads(succeed(*arguments, "-m", "P.1,2", "-m", "num_rel")).values()
    assert result["means"] == {"P@1": 1.0, "P@2": 1.0, "NumRel": 3.0}
    (result,) = json.loads(succeed(*arguments, "-m", "P.1,2", "-m", "num_rel", "-l", 2)).values()
    assert result["means"] == {"P@1": 0.0, "P@2": 0.5, "NumRel": 2.0}
    assert result["conventions"] == "trec_eval with relevant_from=2"
    (tmp_path / "two").write_text("q 0 a 1\nr 0 b 2\n")
    (every,) = json.loads(
        succeed("evaluate", tmp_path / "two", tmp_path / "run", "--json", "-m", "map", "--complete")
    ).values()
    assert (every["queries"], every["means"]) == (2, {"AP": 0.5})


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("map_avgjg", "needs judgments in groups of several judges"),
        ("prefs_pair", "Of preferences there are prefs_simp"),
        ("P.0", "integer of at least 1"),
        ("ndcg_cutt", "There is no measure 'ndcg_cutt'"),
    ],
)
def test_what_cannot_be_had_says_why(tmp_path: Path, measure: str, message: str) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 a 0 3 tag\n")
    for options in (("--trec",), ()):
        printed = fail("evaluate", tmp_path / "qrels", tmp_path / "run", "-m", measure, *options)
        assert message in printed

"""``podium compare --require``: the exit status is the decision."""

import html
import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import Judgments, Rankings, write_qrels, write_run
from podium.measures import compare
from tests.cli.run_podium import fail, podium, podium_on_terminal, succeed

QUERIES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gate")
    random = np.random.default_rng(0)
    names = [f"{query:03d}" for query in range(QUERIES)]
    ids = np.repeat(names, 10)
    documents = [f"d{row}" for row in range(len(ids))]
    labels = random.integers(0, 4, len(ids))
    write_qrels(Judgments.from_columns(ids, documents, labels), path / "truth.qrels")
    for name, noise in (("weak", 4.0), ("strong", 0.5)):
        scores = labels + noise * random.normal(size=len(ids))
        write_run(Rankings.from_columns(ids, documents, scores, name=name), path / f"{name}.run")
    kinds = ["news" if index < 25 else "how-to" for index in range(QUERIES)]
    lines = [f"{name}\t{kind}\n" for name, kind in zip(names, kinds, strict=True)]
    (path / "queries.tsv").write_text("query_id\tkind\n" + "".join(lines))
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_what_is_shown_exits_with_0_and_prints_the_requirement() -> None:
    printed = succeed(
        *("compare", "truth.qrels", "weak.run", "strong.run"),
        *("--require", "nDCG@10 >= baseline - 0.005", "--require", "AP > baseline"),
    )
    rows = [line.split("\t") for line in printed.splitlines()]
    # The measures of requirements are compared without being asked for.
    assert [row[0] for row in rows[1:5]] == ["nDCG@10", "nDCG@10", "AP", "AP"]
    assert rows[6] == ["Requirements: all shown"]
    shown = [(row[0], row[1], row[3], row[-1]) for row in rows[8:]]
    assert shown == [
        ("nDCG@10 >= baseline - 0.005", "strong", str(QUERIES), "yes"),
        ("AP > baseline", "strong", str(QUERIES), "yes"),
    ]


def test_what_is_not_shown_exits_with_1_and_says_what_is_missing() -> None:
    arguments = ("compare", "truth.qrels", "strong.run", "weak.run")
    done = podium(*arguments, "--require", "nDCG@10 >= baseline - 0.005", "--json")
    assert (done.returncode, done.stderr) == (1, b"")
    decision = json.loads(done.stdout)["decision"]
    assert (decision["shown"], decision["ships"]) == (False, {"weak": False})
    (result,) = decision["results"]
    expected = compare("nDCG@10", "truth.qrels", {"a": "strong.run", "b": "weak.run"})
    assert result["value"] == pytest.approx(
        expected.against_baseline["nDCG@10"]["b"].difference.mean
    )
    assert result["missing"].startswith("the mean is not beyond the bound")
    told = podium(*arguments, "--require", "nDCG@10 >= baseline - 0.005").stderr.decode()
    assert told == f"nDCG@10 >= baseline - 0.005, weak: {result['missing']}.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.run", "--require", "nDCG@10 > baseline"), "missing.run"),
        (("strong.run", "--require", "nDCG@10 > base line"), "is not a requirement"),
        (("strong.run", "--require", "nDCG@10 >= 0.1 in each kind"), "Give --slices"),
        (
            ("strong.run", "--require", "AP >= 0.1 in each kind", "--slices", "queries.txt"),
            ".tsv",
        ),
        (("strong.run", "--require", "AP > baseline", "--look", "7"), "2/5"),
        (("strong.run", "--require", "AP > baseline", "--level", "0"), "level is 0"),
        (("strong.run", "--require", "AP > baseline", "-o", "x.pdf"), ".html"),
    ],
)
def test_errors_exit_with_2(arguments: tuple[str, ...], message: str) -> None:
    done = podium("compare", "truth.qrels", "weak.run", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_levels_and_looks_need_requirements() -> None:
    for option in (("--look", "2/5"), ("--level", "0.01")):
        message = fail("compare", "truth.qrels", "weak.run", "strong.run", *option)
        assert "Give --require" in message


def test_slices_looks_and_levels_reach_the_decision() -> None:
    Path("more.tsv").write_text(Path("queries.tsv").read_text().rstrip("\n") + "\n999\tmaps\n")
    done = podium(
        *("compare", "truth.qrels", "weak.run", "strong.run", "--slices", "more.tsv"),
        *("--require", "nDCG@10 >= baseline - 0.05 in each kind", "--look", "2/4"),
        *("--level", "0.1", "--json", "-o", "report.html", "-o", "report.md", "-o", "report.tex"),
    )
    decision = json.loads(done.stdout)["decision"]
    assert (decision["level"], decision["look"]) == (0.1, [2, 4])
    assert [(each["slice"], each["queries"]) for each in decision["results"]] == [
        ("kind=how-to", 15),
        ("kind=news", 25),
    ]
    untested = "No query of kind=maps was compared."
    assert decision["left_out"] == [untested]
    for report in ("report.html", "report.md", "report.tex"):
        text = Path(report).read_text()
        assert "kind=how-to" in text
        assert "Look 2 of 4" in text
        assert untested in text


def test_a_report_has_slices_texts_and_lists(folder: Path) -> None:
    (folder / "topics.tsv").write_text("".join(f"{q:03d}\twhat is {q}\n" for q in range(QUERIES)))
    documents = "".join(f"d{row}\tTitle {row}\tText\n" for row in range(QUERIES * 10))
    (folder / "documents.tsv").write_text(documents)
    printed = succeed(
        *("compare", "truth.qrels", "strong.run", "weak.run", "--slices", "queries.tsv"),
        *("--topics", "topics.tsv", "--documents", "documents.tsv", "-o", "all.html", "--json"),
    )
    content = json.loads(printed)
    assert [row["slice"] for row in content["slices"]] == ["kind=how-to", "kind=news"]
    assert "decision" not in content
    comparison = compare("nDCG@10", "truth.qrels", {"a": "strong.run", "b": "weak.run"})
    moved = comparison.against_baseline["nDCG@10"]["b"].moved
    names = [comparison.query_ids[query] for query in moved]
    assert [each["query_id"] for each in content["lists"]] == names
    assert content["lists"][0]["text"] == f"what is {int(names[0])}"
    first = content["lists"][0]["ranked"][0]
    assert first["title"] == f"Title {first['document_id'][1:]}"
    page = Path("all.html").read_text()
    assert f"what is {int(names[0])}" in page
    assert "Slices" in page


def test_losing_slices_are_told_on_standard_error() -> None:
    done = podium("compare", "truth.qrels", "strong.run", "weak.run", "--slices", "queries.tsv")
    assert done.returncode == 0
    told = done.stderr.decode().splitlines()
    assert [line.partition(":")[0] for line in told if "kind=" in line] == [
        "weak loses on kind=how-to",
        "weak loses on kind=news",
    ]


def test_warnings_are_in_the_terminal_the_pipe_json_markdown_and_html(tmp_path: Path) -> None:
    """Six queries and identical runs: whatever the format, it says that this shows nothing."""
    queries = [f"q{number}" for number in range(7)]
    truth = Judgments.from_columns(queries, ["a"] * 7, [1] * 7)
    write_qrels(truth, tmp_path / "truth.qrels")
    for name in ("old", "new"):
        # No run has the last query, which these conventions leave out.
        run = Rankings.from_columns(queries[:6], ["a"] * 6, [1.0] * 6, name=name)
        write_run(run, tmp_path / f"{name}.run")
    kinds = "".join(f"{query}\tnews\n" for query in queries[:5])
    (tmp_path / "kinds.tsv").write_text(f"query_id\tkind\n{kinds}q5\t\nq6\t\nq9\tmaps\n")
    arguments = (
        *("compare", tmp_path / "truth.qrels", tmp_path / "old.run", tmp_path / "new.run"),
        *("--slices", tmp_path / "kinds.tsv", "--conventions", "trec_eval"),
        *("--require", "nDCG@1 >= baseline - 0.01"),
        *("--require", "nDCG@1 >= baseline - 0.01 in each kind"),
    )
    undecided = (
        "queries: so few may lack the rare bad ones that would bring the mean to the bound; about "
        "299 are needed."
    )
    warnings = [
        "old: 1 of 7 judged queries have no documents, and are left out.",
        "new: 1 of 7 judged queries have no documents, and are left out.",
        "1 of 7 queries are left out: no value for one of the systems.",
        f"nDCG@1 >= baseline - 0.01, new: cannot be decided with 6 {undecided}",
        "nDCG@1 >= baseline - 0.01 in each kind, new, kind=news: cannot be decided with 5 "
        + undecided,
        "1 of 6 compared queries has no value of kind, and is in no slice.",
        "No query of kind=maps was compared.",
    ]
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    piped = podium(*arguments, "-o", page, "-o", text)
    written = podium(*arguments, "--json")
    assert (piped.returncode, written.returncode) == (1, 1)
    assert json.loads(written.stdout)["warnings"] == warnings
    assert piped.stderr.decode().splitlines() == warnings
    for warning in warnings:
        assert html.escape(warning) in page.read_text()
        assert warning in text.read_text()
    terminal = podium_on_terminal(*arguments, status=1)
    shown = " ".join(terminal.split())
    for warning in warnings:
        assert warning in shown


def test_a_baseline_with_other_ids_is_named_in_every_output(folder: Path, tmp_path: Path) -> None:
    """All but the documents of one query are unknown, so the gain is one of ids."""
    lines = (folder / "weak.run").read_text().splitlines(keepends=True)
    changed = [each if each.startswith("000 ") else each.replace(" d", " other-") for each in lines]
    (tmp_path / "weak.run").write_text("".join(changed))
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    arguments = ("compare", "truth.qrels", tmp_path / "weak.run", "strong.run")
    require = ("--require", "nDCG@10 > baseline")
    printed = podium(*arguments, *require, "-o", page, "-o", text)
    written = podium(*arguments, *require, "--json")
    assert (printed.returncode, written.returncode) == (1, 1)
    reason = f"weak has no judged document among the first for {QUERIES - 1} of {QUERIES} queries"
    (result,) = json.loads(written.stdout)["decision"]["results"]
    assert reason in result["missing"]
    for output in (printed.stderr.decode(), page.read_text(), text.read_text()):
        assert reason in output

"""``podium hybrid``."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from podium.data import write_qrels, write_run
from podium.hybrid import Fusion
from tests.cli.run_podium import fail, podium, succeed
from tests.hybrid.test_tuning import collection


@pytest.fixture
def files(tmp_path):
    truth, runs, margin = collection(30, (2.0, 0.5))
    write_qrels(truth, tmp_path / "judged.qrels")
    for name, run in zip(("bm25", "dense"), runs.values(), strict=True):
        write_run(run, tmp_path / f"{name}.run")
    lines = ["document_id,margin", *(f"{each},{value}" for each, value in margin.items())]
    (tmp_path / "catalogue.csv").write_text("\n".join(lines))
    rng = np.random.default_rng(0)
    rows = [f"q{number},{rng.random()}" for number in range(29)]
    (tmp_path / "queries.csv").write_text("\n".join(["query_id,length", *rows]))
    return tmp_path


def test_tune_writes_a_fusion_and_reports(files):
    paths = [files / name for name in ("hybrid.toml", "report.html", "report.md", "report.json")]
    outputs = [part for path in paths for part in ("-o", path)]
    lists = (files / "bm25.run", f"semantic={files / 'dense.run'}")
    printed = succeed("hybrid", "tune", files / "judged.qrels", *lists, "--folds", 3, *outputs)
    assert "choice\t0." in printed
    fusion = Fusion.load(paths[0])
    assert fusion.lists == ("bm25", "semantic")
    assert all(path.stat().st_size > 500 for path in paths[1:])
    content = json.loads(succeed(
        "hybrid", "tune", files / "judged.qrels", *lists, "--folds", 3, "--json", "-m", "RR",
        "--normalization", "rank", "--depth", 5,
    ))  # fmt: skip
    assert content["measure"] == "RR"
    assert content["fusion"]["combination"] == "rrf"
    assert content["fusion"]["depth"] == 5
    assert len(content["held_out"]) == 5

    fused = files / "fused.run"
    succeed("hybrid", "rank", paths[0], *lists, "-o", fused)
    assert fused.read_text().split()[5] == "hybrid"
    assert "nDCG@10" in succeed("evaluate", files / "judged.qrels", fused)


def test_margin_under_requirements(files):
    command = (
        "hybrid", "tune", files / "judged.qrels", files / "bm25.run", files / "dense.run",
        "--folds", 2, "--column", f"margin={files / 'catalogue.csv'}", "--maximize",
        "mean(margin)@5", "--require",
    )  # fmt: skip
    toml = files / "hybrid.toml"
    assert "A share of 0." in succeed(*command, "nDCG@10 >= baseline - 30%", "-o", toml)
    assert Fusion.load(toml).columns == ("margin",)
    impossible = podium(*command, "nDCG@10 >= baseline + 9%")
    assert impossible.returncode == 1
    assert b"No share of margin" in impossible.stdout
    lists = (files / "bm25.run", files / "dense.run", "-o", files / "fused.run")
    assert "no list 'margin'" in fail("hybrid", "rank", toml, *lists)
    succeed("hybrid", "rank", toml, *lists, "--column", f"margin={files / 'catalogue.csv'}")


def test_a_list_of_few_judged_documents_is_named_in_every_form(files):
    lines = (files / "dense.run").read_text().splitlines()
    # Nine documents of ten have ids that no judgments have, and one query is ordered by its file.
    words = [line.split() for line in lines]
    for at, word in enumerate(words):
        word[2] = word[2] if at % 10 == 0 else f"other-{word[2]}"
        if word[0] == words[0][0]:
            word[3] = str(1000 - int(word[3]))
    (files / "poor.run").write_text("\n".join(map(" ".join, words)))
    lists = (files / "bm25.run", files / "poor.run", "--folds", 3)
    margin = ("--column", f"margin={files / 'catalogue.csv'}", "--maximize", "mean(margin)@5")
    for options in ((), (*margin, "--require", "nDCG@10 >= baseline - 90%")):
        report = [files / name for name in ("report.md", "report.html", "report.json")]
        outputs = [part for path in report for part in ("-o", path)]
        command = ("hybrid", "tune", files / "judged.qrels", *lists, *options)
        printed = podium(*command, *outputs).stderr.decode()
        printed_json = podium(*command, "--json").stdout.decode()
        for text in (printed, printed_json, *(path.read_text() for path in report)):
            assert re.search(r"poor: \d+ % of the first 10 documents are judged", text)
            assert "poor: the ranks of 1 of 30 queries contradict the scores" in text
            assert "bm25: " not in text


def test_weights_per_query(files):
    done = podium(
        "hybrid", "tune", files / "judged.qrels", files / "bm25.run", files / "dense.run",
        "--folds", 3, "--per-query", files / "queries.csv",
    )  # fmt: skip
    assert done.returncode == 0
    assert b"do not ship" in done.stdout
    assert done.stderr == b"Warning: 1 queries without features.\n"


def test_an_error_is_not_a_requirement_that_is_not_shown(files):
    done = podium(
        "hybrid", "tune", files / "judged.qrels", files / "bm25.run", "--require", "RR > baseline"
    )
    assert done.returncode == 2
    assert b"--maximize" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--maximize", "mean(margin)@5"), "--require"),
        (("--slices", "queries.csv"), "--slices is of --maximize"),
        (("--column", "catalogue.csv"), "NAME=TABLE"),
        (("--column", "price=catalogue.csv"), "no column 'price'"),
        (("--column", "margin=twice.csv"), "document twice"),
        (("--column", "margin=text.csv"), "not a column of numbers"),
        (("--column", "margin=judged.qrels"), "not a table"),
        (("--per-query", "empty.csv"), "no features"),
        (("--per-query", "two.csv"), "query twice"),
        (("-o", "fusion.txt"), "cannot be written"),
        (("-o", "bm25.run"), ""),
        (("--folds", "99"), "folds is 99"),
        (("x=bm25.run", "x=dense.run"), "same name"),
    ],
)
def test_what_is_refused(files, options, problem, monkeypatch):
    monkeypatch.chdir(files)
    (files / "twice.csv").write_text("document_id,margin\na,1\na,2\n")
    (files / "text.csv").write_text("document_id,margin\na,cheap\n")
    (files / "empty.csv").write_text("query_id\nq1\n")
    (files / "two.csv").write_text("query_id,words\nq1,1\nq1,2\n")
    message = fail("hybrid", "tune", "judged.qrels", "bm25.run", "dense.run", *options)
    assert problem in message


@pytest.mark.parametrize("column", [0, 2])  # the ids of queries and of documents
def test_a_list_that_matches_nothing_is_an_error_with_its_name(files, column):
    lines = [each.split() for each in (files / "dense.run").read_text().splitlines()]
    changed = [[*line[:column], f"x{line[column]}", *line[column + 1 :]] for line in lines]
    (files / "other.run").write_text("".join(f"{' '.join(line)}\n" for line in changed))
    lists = (files / "bm25.run", files / "other.run")
    error = fail("hybrid", "tune", files / "judged.qrels", *lists, "-o", files / "h.toml")
    assert "other: none of the" in error
    assert "is judged" in error
    assert not (files / "h.toml").exists()

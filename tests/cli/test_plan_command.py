"""``podium plan``."""

import json
from pathlib import Path

import numpy as np
import pytest

from podium.data import Judgments, Rankings, write_qrels, write_run
from podium.measures import compare, next_judgments, plan_queries
from tests.cli.run_podium import fail, podium, succeed

FILES = ("plan", "truth.qrels", "old.run", "new.run")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan")
    random = np.random.default_rng(0)
    ids = np.repeat([f"{query:03d}" for query in range(30)], 10)
    documents = np.array([f"d{row}" for row in range(len(ids))])
    labels = random.integers(0, 4, len(ids))
    judged = random.random(len(ids)) < 0.6
    judgments = Judgments.from_columns(ids[judged], documents[judged], labels[judged])
    write_qrels(judgments, path / "truth.qrels")
    for name, noise in (("old", 2.0), ("new", 1.5)):
        scores = labels + noise * random.normal(size=len(ids))
        write_run(Rankings.from_columns(ids, documents, scores, name=name), path / f"{name}.run")
    (path / "human.pref").write_text("000 d0 d1 d0\n")
    return path


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_queries_are_those_of_the_comparison() -> None:
    options = ("-m", "AP", "--difference", "0.03", "--power", "0.9", "--level", "0.1")
    (printed,) = json.loads(succeed(*FILES, *options, "--json"))
    runs = {"old": "old.run", "new": "new.run"}
    (plan,) = plan_queries(
        compare("AP", "truth.qrels", runs), difference=0.03, power=0.9, level=0.1
    )
    assert printed == {**vars(plan), "measure": "AP"}
    table = [line.split("\t") for line in succeed(*FILES, *options).splitlines()]
    assert table[0] == [
        *("measure", "system", "deviation", "queries", "power", "needed", "detectable")
    ]
    assert table[1][:2] == ["AP", "new"]
    assert table[1][5] == f"{plan.needed:,}"


def test_next_documents_are_those_of_the_function() -> None:
    printed = json.loads(succeed(*FILES, "--next", "7", "--json"))
    plan = next_judgments("nDCG@10", "truth.qrels", "old.run", "new.run", count=7)
    assert printed["documents"] == [vars(each) for each in plan.documents]
    assert len(printed["documents"]) == 7
    assert printed["could_turn"] == plan.could_turn
    assert printed["unlikely_to_turn"] == plan.unlikely_to_turn
    assert not [key for key in printed if "chance" in key]
    piped = podium(*FILES, "--next", "7")
    assert f"the difference is {plan.difference:+.4f} as judged.".encode() in piped.stderr
    assert b"With labels in use (0 to 3), it will be from" in piped.stderr
    assert printed["labels"] == [0, 3]
    table = [line.split("\t") for line in piped.stdout.decode().splitlines()]
    assert [row[:2] for row in table[1:]] == [
        [each.query_id, each.document_id] for each in plan.documents
    ]


def test_a_pipe_is_told_why_nothing_is_expected() -> None:
    Path("few.qrels").write_text("000 0 d0 1\n000 0 d1 1\n")
    done = podium("plan", "few.qrels", *FILES[2:], "--next", "7")
    assert done.returncode == 0
    assert b"cannot be learned: no irrelevant document" in done.stderr
    printed = json.loads(succeed("plan", "few.qrels", *FILES[2:], "--next", "7", "--json"))
    assert printed["expected"] is printed["deviation"] is printed["unlikely_to_turn"] is None
    assert "no irrelevant document" in printed["why_unknown"]
    assert printed["least"] < 0 < printed["most"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--difference", "0"), "difference is 0"),
        (("--power", "1"), "power is 1"),
        (("--next", "0"), "count is 0"),
        (("--next", "3", "-m", "AP", "-m", "RR"), "two runs and one measure"),
    ],
)
def test_other_options_are_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in fail(*FILES, *arguments)


def test_preferences_have_no_documents_to_label() -> None:
    assert "qrels" in fail("plan", "human.pref", *FILES[2:], "--next", "3")

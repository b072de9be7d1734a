"""``podium utility`` as users run it."""

import json
from pathlib import Path

import pytest

from podium.data import write_qrels, write_run
from podium.measures.names import parse_measure
from podium.utility import write_preferences
from podium.utility.learned_utility import read_learned
from tests.cli.run_podium import fail, podium, succeed
from tests.utility.people import people, random_pairs, runs


@pytest.fixture(autouse=True)
def _inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("utility")
    write_preferences(people(300, 3), path / "pairs.jsonl")
    judgments, systems = runs()
    write_qrels(judgments, path / "judged.qrels")
    for name, run in systems.items():
        write_run(run, path / f"{name}.run")
    pool = random_pairs(60, 3, 3, seed=8)
    with (path / "pool.jsonl").open("w") as file:
        for index in range(len(pool)):
            sides = {"left": pool.left[index].tolist(), "right": pool.right[index].tolist()}
            file.write(json.dumps({"id": f"p{index}", **sides}) + "\n")
    return path


def test_learn_prints_the_measure_and_writes_what_was_learned() -> None:
    printed = succeed("utility", "learn", "pairs.jsonl", "-o", "learned.json", "--intervals", 20)
    measure = parse_measure(printed.splitlines()[-1])
    assert measure == read_learned("learned.json").measure
    assert "95 % interval" in printed
    table = succeed(
        *("utility", "learn", "pairs.jsonl", "--C", 1, "--intervals", 0, "--decreasing"),
        *("--form", "by-position", "--normalized"),
    )
    assert " to " not in table
    assert table.splitlines()[-1].startswith("nDCG(")


def test_next_prints_pairs_of_the_pool_until_none_is_left(folder: Path) -> None:
    lines = succeed("utility", "next", "pool.jsonl", "--count", 5).splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == 5
    judged_pairs = [json.loads(line) | {"choice": 1} for line in lines]
    (folder / "said.jsonl").write_text("".join(json.dumps(each) + "\n" for each in judged_pairs))
    again = succeed(
        *("utility", "next", "pool.jsonl", "--verdicts", "said.jsonl", "--first", 2),
        *("--strategy", "margin", "--count", 100),
    )
    assert not set(lines) & set(again.splitlines())
    (folder / "known.jsonl").write_text('{"left": [2, 0], "right": [0, 0]}\n')
    done = podium("utility", "next", "known.jsonl")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"No informative pair" in done.stderr


def test_report_writes_a_page_and_says_what_turns_round(folder: Path) -> None:
    printed = succeed(
        *("utility", "report", "pairs.jsonl", "-o", "report.html", "--resamples", 20, "--C", 1),
        *("--truth", "judged.qrels", "--run", "one.run", "--run", "many.run"),
        "--no-test-position",
    )
    assert "learned, held out" in printed
    assert "comparisons of systems flip" in printed.replace("\n", " ")
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learn", "pool.jsonl"), "pool.jsonl, line 1: has no choice"),
        (("report", "pairs.jsonl", "--run", "one.run"), "judgments and two runs"),
    ],
)
def test_errors_are_one_line(arguments: tuple, message: str) -> None:
    assert message in fail("utility", *arguments)

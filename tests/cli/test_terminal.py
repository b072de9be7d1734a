"""What a terminal shows: whole values at 80 columns, help by -h, completion, no traceback."""

import ast
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.progress import Progress

from podium.cli import _COMMANDS, app
from podium.cli.progress import byte_progress, stage_progress
from podium.data import read_letor
from podium.measures import evaluate
from podium.rankers import TreeRanker, load_ranker
from tests.cli.run_podium import PODIUM, fail, podium, podium_on_terminal, podium_process, succeed

LONG = "nDCG(gains=(0, 1, 3, 7, 15), discounts=(1, 0.63, 0.5, 0.43, 0.39, 0.36))@5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("terminal")
    queries = range(12)
    (path / "truth.qrels").write_text(
        "".join(f"q{query} 0 d{each} {each % 3}\n" for query in queries for each in range(6))
    )
    for tag, sign in (("a-system-with-a-very-long-name-of-its-own", 1), ("other", -1)):
        (path / f"{sign}.run").write_text(
            "".join(
                f"q{query} Q0 d{each} 0 {sign * ((each * 7 + query) % 5 + each / 10)} {tag}\n"
                for query in queries
                for each in range(6)
            )
        )
    return path


def test_values_are_whole_at_80_columns(folder: Path) -> None:
    arguments = ("evaluate", folder / "truth.qrels", folder / "1.run", "-m", LONG, "-m", "AP")
    shown = podium_on_terminal(*arguments)
    means = next(iter(json.loads(succeed(*arguments, "--json")).values()))["means"]
    lines = [line for line in shown.partition("\rmeasure")[2].splitlines() if line.strip()]
    assert max(map(len, lines)) <= 80
    assert "…" in lines[1]
    for line, mean in zip(lines[1:3], means.values(), strict=True):
        assert f"{mean:.4f}" in line.split()
    assert "Conventions: podium." in lines


def test_comparisons_are_whole_at_80_columns(folder: Path) -> None:
    runs = (folder / "1.run", folder / "-1.run")
    arguments = ("compare", folder / "truth.qrels", "--", *runs)
    shown = podium_on_terminal(*arguments)
    report = json.loads(succeed("compare", "--json", *arguments[1:]))
    table = [line for line in shown.splitlines() if line.startswith("nDCG@10")]
    assert len(table) == 2
    assert all(len(line) <= 80 for line in table)
    tsv = [line.split("\t") for line in succeed(*arguments).splitlines()]
    assert tsv[0][:5] == ["measure", "system", "mean", "95 % interval", "difference"]
    assert tsv[1][1] == report["baseline"] == "a-system-with-a-very-long-name-of-its-own"
    for line, row in zip(table, tsv[1:], strict=True):
        assert row[2] in line.split()


def test_a_pipe_gets_tab_separated_values(folder: Path) -> None:
    arguments = ("evaluate", folder / "truth.qrels", folder / "1.run", "-m", LONG, "-m", "AP")
    rows = [line.split("\t") for line in succeed(*arguments).splitlines()]
    assert rows[0] == [
        *("measure", "system", "mean", "± 95 %", "queries", "answered", "judged@5", "conventions")
    ]
    assert rows[1][0] == LONG
    assert rows[2][-4:] == ["12", "12/12", "1.0000", "podium"]
    every = [line.split("\t") for line in succeed(*arguments, "-q").splitlines()]
    assert every[0] == ["measure", "system", "query", "value"]
    assert len(every) == 1 + 2 * 13
    assert [row[3] for row in every if row[2] == "all"] == [rows[1][2], rows[2][2]]


def test_help_by_one_letter() -> None:
    assert "evaluate" in succeed("-h")
    assert succeed("utility", "learn", "-h") == succeed("utility", "learn", "--help")


def test_completion() -> None:
    """As bash asks for it."""
    done = podium_process(_PODIUM_COMPLETE="complete_bash", COMP_WORDS="podium ev", COMP_CWORD="1")
    assert done.stdout.split() == [b"evaluate"]
    done = podium_process(
        _PODIUM_COMPLETE="complete_bash", COMP_WORDS="podium evaluate --per", COMP_CWORD="2"
    )
    assert b"--per-query" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "absent.qrels", "absent.run"),
        ("compare", "absent.qrels", "absent.run", "absent.run"),
        ("compare", "absent.qrels", "absent.run", "absent.run", "--require", "AP > baseline"),
        ("plan", "absent.qrels", "absent.run", "absent.run"),
        ("hybrid", "tune", "absent.qrels", "a=absent.run", "b=absent.run"),
        ("online", "report", "absent.parquet"),
        ("describe", "absent.txt"),
        ("train", "absent.txt", "out.podium"),
        ("verify", "absent"),
    ],
)
def test_a_missing_file_ends_every_command_with_the_same_status(command: tuple[str, ...]) -> None:
    assert "absent" in fail(*command)


def test_an_error_that_was_not_expected_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise KeyError('missing\\nkey')\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    command = [str(PODIUM), "--use", "broken", "describe", "x.txt"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300)
    assert done.returncode == 2
    assert done.stderr.startswith(b"Error: KeyError: ")
    assert done.stderr.count(b"\n") == 1
    environment["PODIUM_TRACEBACK"] = "1"
    done = subprocess.run(command, capture_output=True, env=environment, timeout=300)
    assert b"Traceback" in done.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("num_leaves=abc", "num_leaves"),
        ("learning_rate=-1", "learning_rate"),
        ("max_bin=0", "max_bin"),
        ("n_estimators=many", "n_estimators"),
        ("loss=5", "loss"),
        ("num_leaves=[1,2]", "num_leaves"),
        ('measure={"a":1}', "measure"),
        ("random_state=-3", "seed is -3"),
    ],
)
def test_wrong_values_of_set_are_explained(folder: Path, setting: str, message: str) -> None:
    rows = "".join(
        f"{each % 3} qid:{query} 1:{each * 0.1} 2:{query}\n"
        for query in range(8)
        for each in range(6)
    )
    (folder / "train.txt").write_text(rows)
    printed = fail("train", folder / "train.txt", folder / "m", "--set", setting)
    assert message in printed
    assert "did not expect" not in printed


def test_reports_of_a_fit(folder: Path) -> None:
    rows = [
        f"{(each % 3) * (query < 9)} qid:{query} 1:{each * 0.1} 2:{query}\n"
        for query in range(10)
        for each in range(6)
    ]
    (folder / "fit.txt").write_text("".join(rows))
    files = (folder / "fit.txt", folder / "model")
    options = ("--validation", folder / "fit.txt", "--set", "n_estimators=4")
    started = time.monotonic()
    done = podium("train", *files, *options, "--set", "min_child_samples=1")
    elapsed = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    facts = dict(line.split("  ", 1) for line in done.stderr.decode().splitlines())
    facts = {name: value.strip() for name, value in facts.items()}
    assert facts["training"].endswith(
        ": 10 queries (1 of them prefer no document: all labels equal), 60 documents, 2 features"
    )
    ranker, data = load_ranker(folder / "model"), read_letor(folder / "fit.txt")
    assert isinstance(ranker, TreeRanker)
    assert facts["trees"].split(",")[0] == str(ranker.best_iteration_)
    mean = evaluate("nDCG@10", data, ranker.predict(data)).means["nDCG@10"]
    assert float(facts["validation nDCG@10"]) == pytest.approx(mean, abs=5e-5)
    assert facts["saved"] == str(folder / "model")
    assert float(facts["seconds"]) <= elapsed + 0.05  # rounded to tenths
    started = time.monotonic()
    report = json.loads(succeed("train", *files, *options, "--json"))
    assert report["training"]["blank_queries"] == 1
    assert 0 < report["seconds"] < time.monotonic() - started
    assert list(report["validation_measure"]) == ["nDCG@10"]
    search = ("tune", *files, "--validation", folder / "fit.txt", "-s", "linear")
    report = json.loads(succeed(*search, "--try", "alpha=0.1,10", "--json"))
    assert report["trials"] == 2
    assert report["chosen"] == report["results"][0]["params"]
    assert report["validation_measure"]["nDCG@10"] == report["results"][0]["nDCG@10"]
    done = podium(*search, "--try", "alpha=0.1,10")
    assert f"alpha={report['chosen']['alpha']}" in done.stderr.decode()


@pytest.mark.parametrize("progress", [lambda: byte_progress("Reading"), stage_progress])
def test_no_bar_is_started_without_a_terminal(
    progress: Callable[[], AbstractContextManager[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a disabled one, which ends with an empty line in Rich before 14.3."""
    monkeypatch.setattr(Progress, "stop", lambda _bar: pytest.fail("a bar was shown"))
    with progress():
        pass


def test_the_help_lists_commands_without_importing_them() -> None:
    code = (
        "import sys; from podium.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('podium.cli.')])"
    )
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    names = ["podium.cli.app", "podium.cli.failing", "podium.cli.text"]
    assert sorted(ast.literal_eval(imported.decode().splitlines()[-1])) == names


@pytest.mark.parametrize("name", [name for group in _COMMANDS.values() for name in group])
def test_the_help_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    summary = next(group[name][1] for group in _COMMANDS.values() if name in group)
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, name)
    assert " ".join(command.help.split("\n\n")[0].split()) == summary


def test_flags_have_no_type_and_required_arguments_angle_brackets() -> None:
    for words in (("train",), ("evaluate",), ("studio",), ("clicks", "import"), ()):
        text = succeed(*words, "--help")
        assert "bool" not in text
        assert "{" not in text.partition("\n\n")[0]
    assert "train [OPTIONS] <data> [output]" in succeed("train", "--help")
    assert "clicks import [OPTIONS] <sources>..." in succeed("clicks", "import", "--help")


def test_summaries_of_commands_are_not_cut() -> None:
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        for each in (command, *getattr(command, "commands", {}).values()):
            summary = " ".join(each.help.split("\n\n")[0].split())
            assert each.get_short_help_str() == summary


def test_an_unknown_command_is_answered_with_similar_ones() -> None:
    done = podium_process("evalute", "judged.qrels")
    assert done.returncode == 2
    assert "Did you mean: evaluate" in " ".join(done.stderr.decode().split())

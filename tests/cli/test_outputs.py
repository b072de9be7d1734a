"""Commands do not write over the files that they read."""

import os
from pathlib import Path

import pytest

from podium.cli.outputs import require_other_file
from podium.errors import ArgumentError
from tests.cli.run_podium import fail

REFUSED = "is one of the files to read. Name another file to write."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("work").write_text("hours of work\n")
    Path("work.json").write_text("{}\n")
    Path("other").write_text("other work\n")
    Path("all").mkdir()
    Path("all/q1.session").write_text("judgments\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "convert work work --from letor --to qrels",
        "convert other ./work --from letor --to letor --group work",
        "judge new.session --from other --export new.session",
        "judge work --export work",
        "judge all --export all/q1.session",
        "judge new.session --from work --export work",
        "judge new.session --run work --topics other --documents other --export work",
        "judge new.session --run other --topics work --documents other --export work",
        "judge new.session --run other --topics other --documents work --export work",
        "judge new.session --from other --prior work --export work",
        "judge new.session --from other --model m --answers work --export work",
        "judge new --from other --model m --export new.answers.jsonl",
        "judge all --from other --model m --export all/answers.jsonl",
        "features log work --engine http://127.0.0.1:9/shop --queries other -o work",
        "features log other --engine http://127.0.0.1:9/shop --queries work -o work",
        "features log other --engine http://127.0.0.1:9/s --queries other --labels work -o work",
        "features from-log work work",
        "features from-log other work --labels work",
        "utility learn work -o work",
        "utility report work -o work",
        "utility report other --truth work -o work",
        "utility report other --truth other --run other --run work -o work",
        "compare work.json other -o work.json",
        "compare other other work.json -o report.html -o work.json",
        "compare other other --slices work.json -o work.json",
        "compare other other --topics work.json -o work.json",
        "compare other other --documents work.json -o work.json",
        "audit work other -o work",
        "audit other work -o work",
        "audit other other --groups work -o work",
        "audit other --sample 5 --from work --to work",
        "drift work other --report work",
        "drift other work --report work",
        "drift other other --yesterday work --report work",
        "drift other other --ranker work --report work",
    ],
)
def test_files_that_are_read_are_not_written_over(folder: Path, command: str) -> None:
    before = contents(folder)
    assert REFUSED in fail(*command.split())
    assert contents(folder) == before


def contents(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_one_file_under_two_names() -> None:
    os.link("work", "hard")
    Path("soft").symlink_to("work")
    for name in ("hard", "soft", "./work", "all/../work", str(Path("work").absolute())):
        with pytest.raises(ArgumentError, match="is one of the files"):
            require_other_file(name, "other", "work")
        with pytest.raises(ArgumentError, match="is one of the files"):
            require_other_file("work", None, name)


def test_other_files_standard_streams_and_folders_are_let_through() -> None:
    require_other_file(None, "work")
    require_other_file("-", "-")
    require_other_file("new", "work", None, "absent", "all/new")
    require_other_file("all", "all")
    # No file can have these names: whoever writes them explains it.
    require_other_file("x" * 5000, "work")
    Path("loop").symlink_to("loop")
    require_other_file("loop", "work")

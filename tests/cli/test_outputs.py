"""Commands do not write over the files that they read."""

import os
import subprocess
from pathlib import Path

import pytest

from podium.cli.outputs import require_other_file
from podium.errors import ArgumentError
from tests.cli.run_podium import PODIUM, fail

REFUSED = "is one of the files to read. Name another file to write."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("work").write_text("hours of work\n")
    Path("work.json").write_text("{}\n")
    Path("other").write_text("other work\n")
    Path("all").mkdir()
    for name in (
        "manifest.json",
        "part-0.parquet",
        "rankings-1.jsonl",
        "q1.session",
        "m.safetensors",
    ):
        Path("all", name).write_text("a part of what is read\n")
    Path("kept").write_text("a part that is elsewhere\n")
    Path("all/rankings-2.jsonl").symlink_to("../kept")
    Path("link.html").symlink_to("work")
    Path("link.md").symlink_to("work")
    Path("part.html").symlink_to("all/part-0.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "convert work work --from letor --to qrels",
        "convert other ./work --from letor --to letor --group work",
        "convert work work.query --from letor --to letor",
        "convert all all/part-0.parquet --to parquet",
        "train work work --model ListNet",
        "train work work.query --model ListNet",
        "train all all/manifest.json --model ListNet",
        "train all kept --model ListNet",
        "train all all/rankings-2.jsonl --model ListNet",
        "train other work --model ListNet --validation work",
        "train other work --model ListNet --labels work",
        "train other work --model ListNet --group work",
        "train other work --text bert --topics work --documents other",
        "train other work --text bert --topics other --documents work",
        "tune work work --validation other --model ListNet",
        "tune other work --validation work --model ListNet",
        "tune other work --validation other --labels work --model ListNet",
        "tune other work --validation other --group work --model ListNet",
        "tune other work --validation other --results work --model ListNet",
        "tune work new --validation other --results work --model ListNet",
        "tune other new --validation work --results work --model ListNet",
        "tune other new --validation other --labels work --results work --model ListNet",
        "tune other new --validation other --group work --results work --model ListNet",
        "predict work other -o work",
        "predict other work -o work",
        "predict all other -o all/m.safetensors",
        "predict other work -o work.query",
        "predict other all -o all/part-0.parquet",
        "predict other other --group work -o work",
        "predict other other --topics work --documents other -o work",
        "predict other other --topics other --documents work -o work",
        "explain work other -o link.html",
        "explain other work -o link.html",
        "explain other all -o part.html",
        "explain other other --group work -o link.html",
        "importance work other -o link.html",
        "importance other work -o link.html",
        "importance other other --group work -o link.html",
        "card work -o link.md",
        "card other work -o link.md",
        "card other --group work -o link.md",
        "judge new.session --from other --export new.session",
        "judge work --export work",
        "judge all --export all/q1.session",
        "judge all --export kept",
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
        "features from-log all all/rankings-1.jsonl",
        "utility learn work -o work",
        "utility report work -o work",
        "utility report other --truth work -o work",
        "utility report other --truth other --run other --run work -o work",
        "compare work.json other -o work.json",
        "compare other other work.json -o report.html -o work.json",
        "compare other other --slices work.json -o work.json",
        "compare other other --topics work.json -o work.json",
        "compare other other --documents work.json -o work.json",
        "compare other other --group work.json -o work.json",
        "audit work other -o work",
        "audit other work -o work",
        "audit other other --groups work -o work",
        "audit other all -o all/q1.session",
        "audit other --sample 5 --from work --to work",
        "audit other --sample 5 --run work --topics other --documents other --to work",
        "audit other --sample 5 --run other --topics work --documents other --to work",
        "audit other --sample 5 --run other --topics other --documents work --to work",
        "drift work other --report work",
        "drift other work --report work",
        "drift other other --yesterday work --report work",
        "drift other other --ranker work --report work",
        "drift other all --report all/rankings-1.jsonl",
        "drift other other --group work --report work",
    ],
)
def test_files_that_are_read_are_not_written_over(folder: Path, command: str) -> None:
    before = contents(folder)
    assert REFUSED in fail(*command.split())
    assert contents(folder) == before


@pytest.mark.parametrize("export", ["new/q1.session", "old/new.session", "link"])
@pytest.mark.parametrize("session", ["new/", "old"])
def test_labels_do_not_take_the_place_of_a_session(session: str, export: str) -> None:
    Path("old").mkdir()
    Path("link").symlink_to("old/q2.session")
    message = fail("judge", session, "--from", "other", "--export", export)
    assert f"{export} has the ending of a session. Name another file to export to." in message


@pytest.mark.parametrize("output", ["all", "./all/", "link"])
def test_a_ranker_of_texts_is_not_exported_into_its_own_folder(folder: Path, output: str) -> None:
    Path("link").symlink_to("all")
    before = contents(folder)
    message = fail("export", "all", "--to", "onnx", "-o", output)
    assert f"{output} is the ranker's own folder. Name another folder." in message
    assert contents(folder) == before


def test_standard_input_from_the_file_to_write() -> None:
    Path("data").write_text("1 qid:1 1:0.5\n")
    before = Path("data").read_bytes()
    words = [str(PODIUM), "convert", "-", "data", "--from", "letor", "--to", "csv"]
    with Path("data").open("rb") as source:
        ended = subprocess.run(words, stdin=source, capture_output=True, text=True)
    assert (ended.returncode, REFUSED in ended.stderr) == (2, True), ended.stderr
    assert Path("data").read_bytes() == before


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
    for name in ("report.html", "card.md", "scores.run", "all.csv", "new.parquet", "sub", "n.json"):
        require_other_file(f"all/{name}", "all")
    Path("all/scores.run").write_text("old scores\n")
    require_other_file("all/scores.run", "all")
    require_other_file("new", "-")
    # No file can have these names: whoever writes them explains it.
    require_other_file("x" * 5000, "work")
    Path("loop").symlink_to("loop")
    require_other_file("loop", "work")

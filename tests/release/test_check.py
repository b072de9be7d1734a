"""The check before a release: it goes on after failures, and where it was stopped."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.release.check import CODE, STEPS, current_commit, run_steps


def steps(folder: Path) -> dict[str, str]:
    return {
        "first": f"echo ran >> {folder}/first; printf 'a|b\\n\\n'",
        "second": f"echo ran >> {folder}/second; echo wrong >&2; echo 'make: *** Error 3'; exit 3",
        "third": f"echo ran >> {folder}/third; echo done",
    }


def runs(folder: Path, name: str) -> int:
    return (folder / name).read_text().count("ran")


def test_all_steps_run_and_the_page_tells_of_each(tmp_path: Path) -> None:
    outcomes = run_steps(steps(tmp_path), tmp_path / "build", "c0ffee")
    assert [(name, each.status, each.last_line) for name, each in outcomes.items()] == [
        ("first", 0, "a|b"), ("second", 3, "wrong"), ("third", 0, "done"),
    ]  # fmt: skip
    page = (tmp_path / "build/release-check.md").read_text()
    assert "Commit c0ffee. Failed: second." in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][2:]
    assert [row[0].strip("| ") for row in rows] == ["first", "second", "third"]
    assert [row[2] for row in rows] == ["0", "3", "0"]
    assert rows[0][4] == "a\\|b |"
    assert (tmp_path / "build/second.log").read_text() == "wrong\nmake: *** Error 3\n"


def test_what_passed_at_the_commit_is_not_run_again(tmp_path: Path) -> None:
    build = tmp_path / "build"
    run_steps(steps(tmp_path), build, "c0ffee")
    run_steps(steps(tmp_path), build, "c0ffee")
    assert [runs(tmp_path, name) for name in ("first", "second", "third")] == [1, 2, 1]
    run_steps(steps(tmp_path), build, "other")
    assert [runs(tmp_path, name) for name in ("first", "second", "third")] == [2, 3, 2]
    run_steps(steps(tmp_path), build, "other", fresh=True)
    assert [runs(tmp_path, name) for name in ("first", "second", "third")] == [3, 4, 3]
    changed = steps(tmp_path) | {"third": f"echo ran >> {tmp_path}/third"}
    run_steps(changed, build, "other")
    assert [runs(tmp_path, name) for name in ("first", "second", "third")] == [3, 5, 4]


def test_a_row_has_the_command_that_ran(tmp_path: Path) -> None:
    build, every = tmp_path / "build", {"first": "echo 1", "second": "echo 2"}
    run_steps(every, build, "c0ffee")
    run_steps({"second": "echo 2"}, build, "c0ffee", every={**every, "first": "echo later"})
    page = (build / "release-check.md").read_text()
    assert "| first | `echo 1` | 0 |" in page
    assert "later" not in page


def test_one_step_leaves_what_is_known_of_the_others(tmp_path: Path) -> None:
    build, every = tmp_path / "build", steps(tmp_path)
    page = build / "release-check.md"
    run_steps({"third": every["third"]}, build, "c0ffee", every=every)
    assert "Commit c0ffee. Not run yet: first, second." in page.read_text()
    run_steps(every, build, "c0ffee")
    run_steps({"first": every["first"]}, build, "c0ffee", every=every)
    assert "Commit c0ffee. Failed: second." in page.read_text()
    run_steps(every, build, "c0ffee")
    assert [runs(tmp_path, name) for name in ("first", "second", "third")] == [1, 2, 1]


def test_nothing_has_passed_with_changes(tmp_path: Path) -> None:
    first = {"first": steps(tmp_path)["first"]}
    for _ in range(2):
        run_steps(first, tmp_path / "build", "c0ffee with changes")
    assert runs(tmp_path, "first") == 2


def test_a_commit_of_docs_alone_is_not_one_of_code(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(path: str) -> str:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
        git("add", path)
        git("commit", "-m", path)
        return current_commit(folder=tmp_path)

    git("init")
    code = commit("src/module.py")
    for path in ("docs/page.md", "docs/plot.py", "README.md", "src/README.md"):
        assert commit(path) != code
        assert current_commit(*CODE, folder=tmp_path) == code
    code = commit("src/docs.py")
    assert current_commit(*CODE, folder=tmp_path) == code
    (tmp_path / "README.md").write_text("changed")
    assert current_commit(*CODE, folder=tmp_path) == f"{code} with changes"


def test_a_broken_state_is_as_none(tmp_path: Path) -> None:
    build = tmp_path / "build"
    build.mkdir()
    for text in ("", "[]", json.dumps({"first": {"status": 0}})):
        (build / "release-check.json").write_text(text)
        assert run_steps({"first": "exit 0"}, build, "c").keys() == {"first"}


@pytest.mark.parametrize("command", STEPS.values())
def test_steps_are_targets_of_the_makefile(command: str) -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    words = command.split("'")[0].split()
    assert words[0] == "make"
    assert {word for word in words[1:] if "=" not in word} <= known


def test_each_benchmark_is_a_step() -> None:
    root = Path(__file__).parents[2]
    names = {path.stem for path in root.glob("benchmarks/[!_]*.py")}
    assert {name.removeprefix("benchmark of ") for name in STEPS if "benchmark" in name} == names
    makefile = re.findall(r"^BENCHMARKS := (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert [set(line.split()) for line in makefile] == [names]

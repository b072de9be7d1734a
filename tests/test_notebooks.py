"""Every notebook runs, and its cells give what it shows."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.slow


def run(path: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.run_notebook", *options, path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_there_is_one_for_each_path() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["evaluate", "judge", "train"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_gives_what_it_shows(path: Path) -> None:
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_difference_fails_and_is_written(tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    stale = new_output("execute_result", data={"text/plain": "3"}, execution_count=1)
    nbformat.write(new_notebook(cells=[new_code_cell("1 + 1", outputs=[stale], id="sum")]), path)
    done = run(path)
    assert done.returncode == 1
    assert "one.ipynb, cell sum: shows\n3\nbut gives\n2\n" in done.stderr
    assert run(path, "--write").returncode == 0
    (output,) = nbformat.read(path, as_version=4).cells[0].outputs
    assert output.data["text/plain"] == "2"
    assert run(path).returncode == 0


def test_a_failing_cell_fails(tmp_path: Path) -> None:
    path = tmp_path / "one.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), path)
    done = run(path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr

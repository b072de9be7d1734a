"""Every code block of the README and of the docs runs, and prints what its page shows."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.run_markdown import NO_DATA, blocks

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "tests" / "run_markdown.py"
GUIDES = sorted((ROOT / "docs").glob("**/*.md"))
# The README must have blocks; a guide may be prose alone.
PAGES = [ROOT / "README.md", *(page for page in GUIDES if any(blocks(page)))]
# They train, judge or evaluate for several seconds and more each: `make nightly` runs them.
LONG = {
    "docs/tutorial.md",
    "docs/explanation/paths.md",
    "docs/from/ranklib.md",
    "docs/from/ranx.md",
    "docs/from/xgboost.md",
    "docs/how-to/choose-loss.md",
    "docs/how-to/compare-gate.md",
    "docs/how-to/data.md",
    "docs/how-to/drift.md",
    "docs/how-to/evaluate.md",
    "docs/how-to/explain.md",
    "docs/how-to/export/index.md",
    "docs/how-to/features.md",
    "docs/how-to/judging.md",
    "docs/how-to/language-models.md",
    "docs/how-to/serving.md",
    "docs/how-to/train.md",
    "docs/how-to/utility.md",
}


def _page(page: Path) -> Any:
    name = str(page.relative_to(ROOT))
    return pytest.param(page, id=name, marks=[pytest.mark.slow, pytest.mark.long] * (name in LONG))


def run(page: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, RUNNER, *options, page], capture_output=True, text=True, timeout=900
    )


def page_with(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.parametrize("page", [_page(page) for page in PAGES])
def test_page_runs_and_shows_what_it_prints(page: Path) -> None:
    done = run(page)
    if done.returncode == NO_DATA:
        pytest.skip(f"{done.stdout.strip()}: the shared data sets are not part of the repository")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": skipped, " not in done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_the_tutorial_runs_on_its_made_up_data(tmp_path: Path) -> None:
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    text = re.sub(r"<!-- data .* -->\n", "", text).replace("```py\n", "```python\n", 1)
    text = re.sub(r"(```output\n).*?(?=```)", r"\1...\n", text, flags=re.DOTALL)

    def any_output(block: re.Match[str]) -> str:
        return re.sub(r"(?:^(?![$>] |```).*\n)+", "...\n", block[0], flags=re.MULTILINE)

    text = re.sub(r"(?<=```console\n).*?```", any_output, text, flags=re.DOTALL)
    done = run(page_with(tmp_path, text))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b0 of \d+ golden rows off", done.stdout)


def test_blocks_run_in_order_in_one_place(tmp_path: Path) -> None:
    page = page_with(
        tmp_path,
        "```python\nfrom pathlib import Path\nwords = 'one two'\n```\n"
        "```text\nnot run\n```\n"
        "```console\n$ echo three \\\n    four > file\n$ python -c 'print(5)'\n5\n```\n"
        "1. indented\n\n"
        "    ```python\n    print(words, Path('file').read_text())\n    ```\n\n"
        "    ```output\n    one two three four\n    ```\n",
    )
    done = run(page)
    assert done.returncode == 0, done.stderr
    assert "\n5\n" in done.stdout
    assert done.stdout.endswith("one two three four\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n```python\nx = 1\nraise OSError(x)\n```\n", 'page.md", line 5'),
        ("```console\n$ false\n$ true\n```\n", "page.md, line 2: bash ended with 1"),
        ("```sh\ntrue\n```\n", "no python or console block"),
        ("```python\nprint(1)\n```\n\n```output\n2\n```\n", "-2\n+1\n"),
        ("```python\nprint(1)\n```\n", "page.md, line 2:\n--- the page\n+++ printed"),
        ("```python\nx = 1\n```\n\n```output\n1\n```\n", "@@\n-1\n"),
        ("```console\n$ echo 1\n$ echo 2\n3\n```\n", "-3\n+2\n"),
        ("```console\n$ echo 1\n```\n", "@@\n+1\n"),
    ],
)
def test_a_failing_page_fails(tmp_path: Path, text: str, message: str) -> None:
    done = run(page_with(tmp_path, text))
    assert done.returncode == 1
    assert message in done.stderr


def test_dots_stand_for_anything(tmp_path: Path) -> None:
    text = (
        "```python\nprint('took', 12, 's')\n```\n```output\ntook ... s\n```\n"
        "```console\n$ printf '1\\n2\\n3\\n'\n1\n...\n```\n"
    )
    done = run(page_with(tmp_path, text))
    assert done.returncode == 0, done.stderr


def test_outputs_are_written_into_the_page(tmp_path: Path) -> None:
    page = page_with(
        tmp_path,
        "1. a\n\n    ```python\n    print(1)\n    ```\n\n"
        "```console\n$ true\n$ echo a \\\n>   b\nold\n$ echo kept\nk...t\n```\n"
        "```python\nprint(2)\n```\n\n```output\nold\n```\nend\n",
    )
    assert run(page, "--write").returncode == 0
    assert page.read_text() == (
        "1. a\n\n    ```python\n    print(1)\n    ```\n\n    ```output\n    1\n    ```\n\n"
        "```console\n$ true\n$ echo a \\\n>   b\na b\n$ echo kept\nk...t\n```\n"
        "```python\nprint(2)\n```\n\n```output\n2\n```\nend\n"
    )
    assert run(page).returncode == 0


def test_commands_write_to_a_terminal(tmp_path: Path) -> None:
    text = (
        "```console\n$ python -c 'import os; print(os.isatty(1), os.isatty(0))'\nTrue False\n```\n"
    )
    done = run(page_with(tmp_path, text))
    assert done.returncode == 0, done.stderr


def test_blocks_whose_modules_are_missing_are_skipped(tmp_path: Path) -> None:
    text = (
        "<!-- needs json, no_such_module -->\n```python\nraise OSError\n```\n"
        "<!-- needs json -->\n\n```python\nprint(1)\n```\n\n```output\n1\n```\n"
    )
    done = run(page_with(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert "line 3 (python): skipped, no_such_module not installed\n" in done.stdout
    assert done.stdout.endswith("\n1\n")


def test_a_page_without_its_data_is_not_run(tmp_path: Path) -> None:
    done = run(page_with(tmp_path, "<!-- data no/such -->\n```python\nraise OSError\n```\n"))
    assert done.returncode == NO_DATA
    assert done.stdout.startswith("page.md needs ")

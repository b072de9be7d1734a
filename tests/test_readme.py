"""Every code block of the README and of the docs runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_markdown import blocks

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "tests" / "run_markdown.py"
GUIDES = sorted((ROOT / "docs").glob("**/*.md"))
# The README must have blocks; a guide may be prose alone.
PAGES = [ROOT / "README.md", *(page for page in GUIDES if any(blocks(page)))]


def run(page: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, RUNNER, page], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path) -> None:
    done = run(page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_blocks_run_in_order_in_one_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\nwords = 'one two'\n```\n"
        "```text\nnot run\n```\n"
        "```console\n$ echo three \\\n    four > file\nshown, not run\n"
        "$ python -c 'print(5)'\n```\n"
        "1. indented\n\n"
        "    ```python\n    print(words, Path('file').read_text())\n    ```\n",
        encoding="utf-8",
    )
    done = run(page)
    assert done.returncode == 0, done.stderr
    assert "\n5\n" in done.stdout
    assert done.stdout.endswith("one two three four\n\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n```python\nx = 1\nraise OSError(x)\n```\n", 'page.md", line 5'),
        ("```console\n$ false\n$ true\n```\n", "page.md, line 2: bash ended with 1"),
        ("```sh\ntrue\n```\n", "no python or console block"),
    ],
)
def test_a_failing_page_fails(tmp_path: Path, text: str, message: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    done = run(page)
    assert done.returncode != 0
    assert message in done.stderr

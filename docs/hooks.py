"""MkDocs hook: the command-line page is written from the commands themselves."""

import subprocess
import sys
from typing import Any

_MARK = "<!-- commands -->"
# `--app` is named: left to guess, Typer would document `main` as one command without verbs.
_WRITE = ["-m", "typer", "--app", "app", "podium.cli", "utils", "docs", "--name", "podium"]


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark by every command's help, as Typer writes it."""
    if _MARK not in markdown:
        return markdown
    done = subprocess.run(  # noqa: S603 (a constant)
        [sys.executable, *_WRITE], stdout=subprocess.PIPE, text=True, check=True
    )
    # The page has its own title; every heading keeps its level below it.
    return markdown.replace(_MARK, done.stdout.replace("# `podium`\n", "", 1))

"""Run a Markdown page's code blocks in order, as a reader who follows the page would.

    python tests/run_markdown.py README.md

Blocks fenced as ``python`` share one namespace; in those fenced as ``console`` the lines that
start with ``$ `` are run by bash and the others are output, shown to readers and not compared.
Both start in one temporary directory. Only the standard library is used, so that the wheel
alone in an empty environment can run the README.
"""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# A block may be indented (inside a list or a tab); its closing fence is indented alike.
_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>python|console)\b[^\n]*\n(?P<source>.*?)^(?P=indent)``` *$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    source: str
    line: int  # of the block's first line of source


def blocks(page: Path) -> Iterator[Block]:
    """Find the page's blocks, first to last."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("source")) + 1
        yield Block(match["language"], textwrap.dedent(match["source"]), line)


def commands(source: str) -> str:
    r"""Keep the commands of a console block, as a script.

    >>> print(commands("$ echo one \\\n>   two\none two\n$ true\n"))
    echo one \
      two
    true
    """
    script: list[str] = []
    for line in source.splitlines():
        if line.startswith("$ "):
            script.append(line.removeprefix("$ "))
        elif script and script[-1].endswith("\\"):
            script[-1] += "\n" + line.removeprefix("> ")
    return "\n".join(script)


def run(page: Path) -> None:
    """Run every block of the page in the current directory."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    # The commands find the interpreter that runs the page, and the `podium` beside it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = list(blocks(page))
    if not found:
        sys.exit(f"{page}: no python or console block to run")
    for block in found:
        print(f"--- {page.name}, line {block.line} ({block.language})", flush=True)
        if block.language == "python":
            # Blank lines above make tracebacks point into the page.
            above = "\n" * (block.line - 1)
            exec(compile(above + block.source, str(page), "exec"), namespace)
            sys.stdout.flush()
        else:
            script = commands(block.source)
            print(textwrap.indent(script, "$ "), flush=True)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL,
            )
            if done.returncode:
                sys.exit(f"{page}, line {block.line}: bash ended with {done.returncode}")


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    # A reader's session finds modules in the working directory, not in tests/.
    sys.path[0] = ""
    for each in chosen:
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            run(each)
            os.chdir("/")

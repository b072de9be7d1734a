"""Run a Markdown page's code blocks in order, as a reader who follows the page would.

    python tests/run_markdown.py README.md
    python tests/run_markdown.py --write README.md

Blocks fenced as ``python`` share one namespace; in those fenced as ``console`` the lines that
start with ``$ `` are run by bash, on a terminal of 80 columns. Both start in one temporary
directory. What they print must be what the page shows: the block fenced as ``output`` after a
``python`` block, and the lines after a command in a ``console`` block; ``...`` there stands for
anything. ``--write`` writes what was printed into the page where it differs.

``<!-- needs lightgbm -->`` above a block skips it where that module is missing, and
``<!-- data trec -->`` in a page links that folder of the real data into the temporary directory;
without the data the page is not run, and the script ends with status 77.

Only the standard library is used, so that the wheel alone in an empty environment can run the
README.
"""

import contextlib
import difflib
import doctest
import importlib.util
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SHARED = Path(__file__).parents[2] / "shared" / "data"
NO_DATA = 77

# A block may be indented (inside a list or a tab); its closing fence is indented alike.
_BLOCK = re.compile(
    r"^(?:(?P<above> *)<!-- needs (?P<needs>[\w, ]+) -->\n\n?)?"
    r"(?P<indent> *)```(?P<language>python|console)\b[^\n]*\n(?P<source>.*?)^(?P=indent)```[ ]*\n"
    r"(?P<shown>\n?(?P=indent)```output\n(?P<output>.*?)^(?P=indent)```[ ]*\n)?",
    re.MULTILINE | re.DOTALL,
)
_DATA = re.compile(r"^<!-- data ([\w/.-]+) -->$", re.MULTILINE)
_BETWEEN = "\x1e"  # printed between the commands of a block
_CHECKER = doctest.OutputChecker()


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    source: str
    line: int  # of the block's first line of source
    shown: str | None  # what the page says that a python block prints
    needs: tuple[str, ...]  # modules
    match: re.Match[str]


class Command(NamedTuple):
    """One command of a console block, and the output that the page shows."""

    prompt: str  # its lines in the page
    script: str
    shown: str


def blocks(page: Path) -> Iterator[Block]:
    """Find the page's blocks, first to last."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("source")) + 1
        shown = match["output"] and textwrap.dedent(match["output"])
        needs = tuple((match["needs"] or "").replace(",", " ").split())
        yield Block(match["language"], textwrap.dedent(match["source"]), line, shown, needs, match)


def commands(source: str) -> list[Command]:
    r"""Take a console block apart.

    >>> for command in commands("$ echo one \\\n>   two\none two\n$ true\n"):
    ...     print([command.script, command.shown])
    ['echo one \\\n  two', 'one two\n']
    ['true', '']
    """
    found: list[Command] = []
    for line in source.splitlines():
        if line.startswith("$ "):
            found.append(Command(line + "\n", line.removeprefix("$ "), ""))
        elif found:
            prompt, script, shown = found[-1]
            if script.endswith("\\") and not shown:
                script += "\n" + line.removeprefix("> ")
                found[-1] = Command(prompt + line + "\n", script, shown)
            else:
                found[-1] = Command(prompt, script, shown + line + "\n")
    return found


def same(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, but for white space and what ``...`` stands for."""
    return _CHECKER.check_output(
        shown, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ) or (shown.strip() == printed.strip() == "")


class Page:
    """A page, its blocks as they are run, and the differences that were found."""

    def __init__(self, path: Path) -> None:
        """Nothing is run yet."""
        self.path = path
        self.differences: list[str] = []
        self.edits: list[tuple[int, int, str]] = []

    def run(self) -> None:
        """Run every block of the page in the current directory."""
        namespace: dict[str, object] = {"__name__": "__main__"}
        found = list(blocks(self.path))
        if not found:
            sys.exit(f"{self.path}: no python or console block to run")
        for block in found:
            title = f"{self.path.name}, line {block.line} ({block.language})"
            missing = [name for name in block.needs if importlib.util.find_spec(name) is None]
            if missing:
                print(f"--- {title}: skipped, {', '.join(missing)} not installed", flush=True)
                continue
            print(f"--- {title}", flush=True)
            if block.language == "python":
                self._python(block, namespace)
            else:
                self._console(block)

    def write(self) -> None:
        """Put what was printed into the page."""
        text = self.path.read_text(encoding="utf-8")
        for start, end, new in reversed(self.edits):
            text = text[:start] + new + text[end:]
        self.path.write_text(text, encoding="utf-8")

    def _python(self, block: Block, namespace: dict[str, object]) -> None:
        # Blank lines above make tracebacks point into the page.
        above = "\n" * (block.line - 1)
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(above + block.source, str(self.path), "exec"), namespace)
        printed = _tidy(stream.getvalue())
        print(printed, end="", flush=True)
        if self._differs(block.line, block.shown or "", printed):
            indent = block.match["indent"]
            new = textwrap.indent(f"\n```output\n{printed}```\n", indent) if printed else ""
            end = block.match.end()
            start = block.match.start("shown") if block.match["shown"] else end
            self.edits.append((start, end, new))

    def _console(self, block: Block) -> None:
        found = commands(block.source)
        script = "\nprintf '\\x1e'\n".join(command.script for command in found)
        print(textwrap.indent("\n".join(command.script for command in found), "$ "), flush=True)
        status, output = _on_a_terminal(script)
        print(output.replace(_BETWEEN, ""), end="", flush=True)
        if status:
            sys.exit(f"{self.path}, line {block.line}: bash ended with {status}")
        new, changed = "", False
        for command, printed in zip(found, map(_tidy, output.split(_BETWEEN)), strict=True):
            differs = self._differs(block.line, command.shown, printed)
            changed |= differs
            new += command.prompt + (printed if differs else command.shown)
        if changed:
            new = textwrap.indent(new, block.match["indent"])
            self.edits.append((block.match.start("source"), block.match.end("source"), new))

    def _differs(self, line: int, shown: str, printed: str) -> bool:
        if same(shown, printed):
            return False
        lines = difflib.unified_diff(
            shown.splitlines(), printed.splitlines(), "the page", "printed", lineterm=""
        )
        self.differences.append(f"{self.path}, line {line}:\n" + "\n".join(lines))
        return True


def _tidy(printed: str) -> str:
    plain = re.sub("\x1b\\[[0-9;]*m", "", printed).replace("\r\n", "\n")
    lines = [line.rstrip() for line in plain.strip("\n").split("\n")]
    return "\n".join(lines) + "\n" if any(lines) else ""


def _on_a_terminal(script: str) -> tuple[int, str]:
    """Run a script with a terminal as its output, which commands write tables for."""
    ours, theirs = pty.openpty()
    # The commands find the interpreter that runs the page, and the `podium` beside it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    plain = {"PATH": path, "TERM": "dumb", "COLUMNS": "80", "NO_COLOR": "1"}
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, **plain},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    output = b""
    # Reading fails once the last process that had the terminal is gone.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65536):
            output += piece
    os.close(ours)
    return process.wait(), output.decode()


def _link_data(page: Path) -> None:
    """Link the real data that a page reads into the current directory."""
    for name in _DATA.findall(page.read_text(encoding="utf-8")):
        if not (SHARED / name).exists():
            print(f"{page.name} needs {SHARED / name}")
            sys.exit(NO_DATA)
        Path(Path(name).name).symlink_to(SHARED / name)


def main(arguments: list[str]) -> None:
    """Run pages, and compare or write what they show."""
    write = "--write" in arguments
    chosen = [Path(name).resolve() for name in arguments if name != "--write"]
    differences: list[str] = []
    for path in chosen:
        page = Page(path)
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)
            _link_data(path)
            page.run()
            os.chdir("/")
        if write:
            page.write()
        else:
            differences += page.differences
    if differences:
        again = "\nIf this is right: python tests/run_markdown.py --write PAGE"
        sys.exit("\n".join(differences) + again)


if __name__ == "__main__":
    # A reader's session finds modules in the working directory, not in tests/.
    sys.path[0] = ""
    main(sys.argv[1:])

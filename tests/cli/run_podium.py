"""Running the ``podium`` command.

Most tests run its ``main`` in their own process: a process of its own takes seconds to start. The
console script itself is run where the process matters, and by every page of the docs.
"""

import io
import os
import pty
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from podium.cli import main

PODIUM = Path(sys.executable).parent / "podium"
_SURROUNDINGS = {"COLUMNS": "100"}

Ended = subprocess.CompletedProcess[bytes]


def podium_process(*arguments: object, stdin: bytes = b"", **environment: str) -> Ended:
    """Run the console script, and return how it ended and what it printed."""
    return subprocess.run(
        [PODIUM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=os.environ | _SURROUNDINGS | environment,
        timeout=300,
    )


def read_terminal(terminal: int) -> bytes:
    """Return all that is written to a terminal until its other end is closed, and close it."""
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # how Linux reports the end of a terminal
            break
        if not piece:
            break
        seen += piece
    os.close(terminal)
    return seen


def podium_on_terminal(*arguments: object, columns: int = 80, status: int = 0) -> str:
    """Run the console script on a terminal, expect a status, and return what it showed."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [PODIUM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=end,
        stderr=end,
        env=os.environ | {"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"},
    )
    os.close(end)
    seen = read_terminal(terminal)
    assert process.wait(timeout=300) == status, seen
    # Progress comes and goes by escape sequences.
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode()).replace("\r\n", "\n")


def podium(*arguments: object, stdin: bytes = b"") -> Ended:
    """Run the command here, and return how it ended and what it printed."""
    words = [str(PODIUM), *map(str, arguments)]
    code: int | str | None = 0
    with (
        io.TextIOWrapper(io.BytesIO(stdin)) as given,
        io.TextIOWrapper(io.BytesIO(), write_through=True) as out,
        io.TextIOWrapper(io.BytesIO(), write_through=True) as error,
        patch.object(sys, "argv", words),
        patch.object(sys, "stdin", given),
        patch.dict(os.environ, _SURROUNDINGS),
        redirect_stdout(out),
        redirect_stderr(error),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        output, errors = (stream.buffer.getvalue() for stream in (out, error))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, int(code or 0), output, errors)


def succeed(*arguments: object, stdin: bytes = b"") -> str:
    """Run the command, expect that all went well and nothing was said about it."""
    done = podium(*arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode()
    return done.stdout.decode()


def fail(*arguments: object, stdin: bytes = b"") -> str:
    """Run the command, expect an error in one line, and return the line."""
    done = podium(*arguments, stdin=stdin)
    message = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), message
    assert message.startswith("Error: ")
    assert message.endswith("\n")
    assert message.count("\n") == 1
    assert message[:-1].isprintable()
    return message[len("Error: ") : -1]

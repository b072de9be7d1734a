"""Running the ``podium`` command.

Most tests run its ``main`` in their own process: a process of its own takes seconds to start. The
console script itself is run where the process matters, and by every page of the docs.
"""

import io
import os
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
        timeout=120,
    )


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
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def fail(*arguments: object, stdin: bytes = b"") -> str:
    """Run the command, expect an error in one line, and return the line."""
    done = podium(*arguments, stdin=stdin)
    message = done.stderr.decode()
    assert (done.returncode, done.stdout) == (1, b""), message
    assert message.startswith("Error: ")
    assert message.endswith("\n")
    assert message.count("\n") == 1
    assert message[:-1].isprintable()
    return message[len("Error: ") : -1]

"""Running the ``podium`` command as users do: the console script in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

PODIUM = Path(sys.executable).parent / "podium"


def podium(
    *arguments: object, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command, and return how it ended and what it printed."""
    return subprocess.run(
        [PODIUM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=os.environ | {"COLUMNS": "100"} | environment,
        timeout=120,
    )


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

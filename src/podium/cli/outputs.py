"""Files that commands write."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from podium.errors import ArgumentError


def require_other_file(output: str | None, *inputs: str | None) -> None:
    """Refuse an output that is one of the files that the command reads.

    Judgments that a model was written over cannot be recovered. Commands ask for it first, before a
    training that may take hours.
    """
    if output is None:
        return
    for path in inputs:
        # Nothing is lost where one of them does not exist, such as standard input (-).
        with suppress(OSError):
            if path is not None and Path(output).is_file() and Path(path).samefile(output):
                raise ArgumentError(
                    f"{output} is one of the files to read", hint="Name another file to write."
                )

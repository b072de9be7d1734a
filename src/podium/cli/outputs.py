"""Files that commands write."""

from __future__ import annotations

from contextlib import suppress
from os.path import realpath
from pathlib import Path

from podium.errors import ArgumentError


def require_other_file(output: str | None, *inputs: str | None) -> None:
    """Refuse an output that is one of the files that the command reads.

    Judgments that a model was written over cannot be recovered. Commands ask for it first, before a
    training that may take hours.
    """
    if output is None or output == "-":
        return
    for path in inputs:
        with suppress(OSError):  # whoever reads or writes it explains what is wrong with a path
            if path is not None and _is_same_file(Path(output), Path(path)):
                raise ArgumentError(
                    f"{output} is one of the files to read", hint="Name another file to write."
                )


def _is_same_file(output: Path, other: Path) -> bool:
    if output.exists() and other.exists():
        return output.is_file() and output.samefile(other)
    # The command may be about to create what it reads, such as a session of judgments.
    return realpath(output) == realpath(other)

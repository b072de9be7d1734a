"""Files that commands write."""

from __future__ import annotations

import os
from contextlib import suppress
from os.path import realpath, samestat
from pathlib import Path

from podium.data.formats.letor import GROUP_SUFFIX
from podium.errors import ArgumentError

_STDIN = 0
_READ_IN_FOLDERS = ("*.json", "*.jsonl", "part-*.parquet", "*.session", "*.safetensors")
"""Files of shard sets, ranking logs, sessions of judgments, and text rankers."""


def require_other_file(output: str | None, *inputs: str | None) -> None:
    """Refuse an output that is one of the files that the command reads.

    Judgments that a model was written over cannot be recovered. Commands ask for it first, before a
    training that may take hours.

    Args:
        output: The file to write; None and - are not one.
        inputs: The files and folders to read, - for standard input. What lies beside or in them
            and is read with them counts, too.
    """
    if output is None or output == "-":
        return
    for path in inputs:
        with suppress(OSError):  # reading or writing it explains what is wrong with a path
            if path is not None and _is_read(path, Path(output)):
                raise ArgumentError(
                    f"{output} is one of the files to read", hint="Name another file to write."
                )


def _is_read(path: str, output: Path) -> bool:
    if path == "-":
        return output.is_file() and samestat(os.fstat(_STDIN), output.stat())
    if Path(path).is_dir():
        return any(
            _is_same_file(output, file)
            for pattern in _READ_IN_FOLDERS
            for file in Path(path).glob(pattern)
        )
    sidecar = f"{path}{GROUP_SUFFIX}"
    return _is_same_file(output, Path(path)) or _is_same_file(output, Path(sidecar))


def _is_same_file(output: Path, other: Path) -> bool:
    if output.exists() and other.exists():
        return output.is_file() and output.samefile(other)
    # The command may be about to create what it reads, such as a session of judgments.
    return realpath(output) == realpath(other)

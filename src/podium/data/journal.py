"""Files that only grow, such as sessions of judgments: what was added is never lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Literal, Self

from podium.data.atomic import try_lock
from podium.data.files import writing
from podium.errors import DataError


class Journal:
    r"""A file of lines, which one process has at a time. Use it in a ``with`` block, or close it.

    Args:
        path: The file.
        mode: As that of ``open``: a new file, one that exists, or either.
        in_use: What to say if another process has it.

    Example:
        >>> import tempfile
        >>> with Journal(tempfile.mkdtemp() + "/log", "ab+", "somebody writes it") as journal:
        ...     journal.add(b"first\n")
        ...     journal.read()
        b'first\n'
    """

    def __init__(
        self, path: str | os.PathLike[str], mode: Literal["xb", "r+b", "ab+"], in_use: str
    ) -> None:
        self.path = Path(path)
        try:
            # Without a buffer, which would try to write its rest once more when it is closed.
            self._stream: BinaryIO = self.path.open(mode, buffering=0)
        except OSError as error:
            raise DataError(
                f"cannot be opened ({error.strerror})", path=path, hint="Choose another name."
            ) from error
        try:
            with writing(path):
                free = try_lock(self._stream)
            if not free:
                raise DataError(in_use, path=path, hint="Wait until they are done.")
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """Return what is there; what is added comes after it."""
        self._stream.seek(0)
        return self._stream.read()

    def cut(self, size: int) -> None:
        """Drop what comes after the first bytes, such as a line that a crash left unfinished."""
        self._stream.truncate(self._stream.seek(size))

    def require_open(self) -> None:
        """Raise a DataError if it was closed, such as by an error."""
        if self._stream.closed:
            raise DataError("is closed", path=self.path, hint="Open it again.")

    def add(self, lines: bytes) -> None:
        """Add lines at the end; they are on the disk when this returns."""
        self.require_open()
        waiting = memoryview(lines)
        try:
            while waiting:
                waiting = waiting[self._stream.write(waiting) :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            # What is in memory is ahead of the file now, and the file may end in half a line.
            # No more is accepted; opening the file again resumes from its content.
            self.close()
            raise DataError(
                f"cannot be written ({error.strerror})",
                path=self.path,
                hint="Free disk space, then open it again: the last entry is lost.",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

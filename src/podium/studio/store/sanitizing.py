"""HTML that people import is sanitised once, before it is stored, within limits.

A few kilobytes of unclosed tags can keep an HTML parser busy for minutes and fill gigabytes, and a
thread cannot be stopped. So a child process does it: one that takes too long or too much memory is
ended, and the document is refused.
"""

from __future__ import annotations

import atexit
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock

from podium.errors import DataError
from podium.studio.store import sanitizer_child
from podium.studio.store.sanitizer_child import LENGTH

MAX_HTML = 1 << 20
"""The most HTML of one document, in bytes of UTF-8."""
MAX_CLEANED = 2 << 20
"""The most that may be left of it: closing what was left open can make a document longer."""
SECONDS = 5.0
"""How long one document may take."""

_READ = 1 << 16


class Sanitizer:
    """A child process that sanitises, started when it is first needed and again after it died.

    Args:
        seconds: How long one document may take.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def clean(self, markup: str) -> str:
        """HTML without whatever could run or load anything; a DataError beyond the limits."""
        if not markup:
            return ""
        sent = markup.encode("utf-8", "replace")
        if len(sent) > MAX_HTML:
            raise DataError(
                f"its HTML is longer than {MAX_HTML >> 10} KiB",
                hint="Leave out what people do not read, or give its text instead.",
            )
        with self._lock:
            try:
                return self._exchange(sent).decode()
            except BaseException:
                self._end()
                raise

    def close(self) -> None:
        """End the child process."""
        with self._lock:
            self._end()

    def _exchange(self, sent: bytes) -> bytes:
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        end = time.monotonic() + self._seconds
        left, got = memoryview(LENGTH.pack(len(sent)) + sent), bytearray()
        expected = LENGTH.size
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdin, selectors.EVENT_WRITE)
            selector.register(child.stdout, selectors.EVENT_READ)
            while len(got) < expected:
                ready = selector.select(max(end - time.monotonic(), 0))
                if not ready:
                    raise _too_much(f"takes longer than {self._seconds:g} seconds")
                for key, _ in ready:
                    if key.fileobj is child.stdin:
                        try:
                            left = left[os.write(key.fd, left[:_READ]) :]
                        except BrokenPipeError:
                            raise _too_much("takes too much memory") from None
                        if not left:
                            selector.unregister(child.stdin)
                        continue
                    piece = os.read(key.fd, _READ)
                    if not piece:
                        raise _too_much("takes too much memory")
                    got += piece
                    if len(got) >= LENGTH.size:
                        expected = LENGTH.size + LENGTH.unpack_from(got)[0]
                        if expected > MAX_CLEANED:
                            raise _too_much(f"comes to more than {MAX_CLEANED >> 10} KiB")
        return bytes(got[LENGTH.size :])

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._end()
            # Isolated: neither the folder it starts in nor variables decide what it imports.
            self._child = subprocess.Popen(  # noqa: S603 - our own script, no argument of others
                [sys.executable, "-I", str(Path(sanitizer_child.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
            )
            assert self._child.stdin is not None
            os.set_blocking(self._child.stdin.fileno(), False)
        return self._child

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    pipe.close()
            self._child = None


_SANITIZER = Sanitizer()
atexit.register(_SANITIZER.close)


def sanitized(markup: str) -> str:
    """HTML without whatever could run or load anything.

    Raises:
        DataError: If it is too long, or sanitising it takes too much time or memory.

    Example:
        >>> sanitized('<p onclick="x()">Hi<script>alert(1)</script></p>')
        '<p>Hi</p>'
    """
    return _SANITIZER.clean(markup)


def _too_much(what: str) -> DataError:
    return DataError(
        f"sanitising its HTML {what}", hint="Is it valid HTML? Give the document's text instead."
    )

"""Opening inputs and outputs: plain, gzip or zstd files, standard streams, open file objects.

Compression is recognized by a file's first bytes when reading, never trusted from its name, and
chosen by the name's ending (``.gz``, ``.zst``) when writing. PyArrow's codecs do the work: they
verify checksums and raise an error when a stream is truncated.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa

from podium.data.atomic import atomic_write, names_folder
from podium.errors import DataError
from podium.kernels import Bytes

Source = str | os.PathLike[str] | IO[bytes]
"""A path, ``"-"`` for standard input or output, or an open binary stream."""

CHUNK_BYTES = 2 << 20
PADDING = 8
"""Line feeds after each chunk: kernels read eight bytes at a time without bounds checks."""
MAX_LINE_BYTES = 64 << 20

UTF8_MARK = b"\xef\xbb\xbf"
"""A byte order mark, skipped at the start of a text."""

_FEED = 10
_SUFFIX_CODECS = {".gz": "gzip", ".zst": "zstd"}
_MAGIC_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHER_MAGIC = {
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PK\x03\x04": "zip",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"PAR1": "Parquet",
}


class Reporter(Protocol):
    """Progress callback of a long read or write: bytes of input done, and their total."""

    def __call__(self, done: int, total: int | None) -> None:
        """Report that ``done`` of ``total`` bytes (None when unknown) have been read."""


def source_name(source: Source) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if os.fspath(source) == "-" else os.fspath(source)
    return str(getattr(source, "name", "stream"))


def plain_suffix(path: Source) -> str:
    """Return a path's suffix without its compression: ``.txt`` for ``train.txt.gz``."""
    if not isinstance(path, str | os.PathLike):
        return ""
    return (Path(path).with_suffix("") if is_compressed(path) else Path(path)).suffix


def is_compressed(path: Source) -> bool:
    """Whether a path has a compression suffix."""
    return isinstance(path, str | os.PathLike) and Path(path).suffix in _SUFFIX_CODECS


def chunk_loaders(
    source: Source, *, progress: Reporter | None = None
) -> Iterator[Callable[[], Bytes]]:
    """Yield functions that load a source's bytes, decompressed, in chunks of whole lines.

    Each chunk ends with ``PADDING`` extra line feeds. A plain file's chunks are read when their
    function is called, so that threads can read in parallel. A line longer than
    ``MAX_LINE_BYTES`` is an error: the file is not text, or is meant to exhaust memory.
    """
    name = source_name(source)
    with _reading(name), _open_raw(source) as (raw, total):
        codec = _codec(raw.peek(8), source)
        if codec is None and total is not None:
            loaders = _plain_file_chunks(raw, total, name)
        else:
            # PyArrow's codecs verify checksums and detect truncated streams.
            stream = raw if codec is None else pa.CompressedInputStream(pa.PythonFile(raw), codec)
            loaders = _stream_chunks(stream, name)
        for loader in loaders:
            if progress is not None:
                progress(raw.position, total)
            yield loader


def numbered_lines(
    source: Source, *, progress: Reporter | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a source with its number, from 1."""
    number = 0
    for load in chunk_loaders(source, progress=progress):
        for line in load()[:-PADDING].tobytes().splitlines(keepends=False):
            number += 1
            yield number, line


def _plain_file_chunks(raw: _Counted, total: int, name: str) -> Iterator[Callable[[], Bytes]]:
    begin = 3 if raw.peek(3) == UTF8_MARK else 0
    while begin < total:
        end = min(begin + CHUNK_BYTES, total)
        while end < total:  # extend to the end of the line
            ahead = raw.read_at(4096, end)
            feed = ahead.find(b"\n")
            end += feed + 1 if feed >= 0 else len(ahead)
            if feed >= 0 or not ahead:
                break
            if end - begin - CHUNK_BYTES > MAX_LINE_BYTES:
                raise _long_line(name)
        raw.position = end
        yield partial(_load_span, name, begin, end)
        begin = end


def _load_span(path: str, begin: int, end: int) -> Bytes:
    chunk = np.empty(end - begin + PADDING, np.uint8)
    chunk[end - begin :] = _FEED
    filled = 0
    with _reading(path), Path(path).open("rb", buffering=0) as file:
        file.seek(begin)
        while filled < end - begin:
            count = file.readinto(chunk[filled : end - begin].data)
            if not count:
                raise DataError(
                    "was truncated while it was being read",
                    path=path,
                    hint="Read it once it is complete.",
                )
            filled += count
    return chunk


def _stream_chunks(stream: Any, name: str) -> Iterator[Callable[[], Bytes]]:
    tail = b""
    first = True
    while piece := stream.read(CHUNK_BYTES):
        if first:
            piece = piece.removeprefix(UTF8_MARK)
            first = False
        end = piece.rfind(b"\n") + 1
        if not end:
            tail += piece
            if len(tail) > MAX_LINE_BYTES:
                raise _long_line(name)
            continue
        yield partial(_padded, tail, piece, end)
        tail = piece[end:]
    if tail:
        yield partial(_padded, tail, b"", 0)


def _padded(tail: bytes, piece: bytes, end: int) -> Bytes:
    chunk = np.empty(len(tail) + end + PADDING, np.uint8)
    chunk[: len(tail)] = np.frombuffer(tail, np.uint8)
    chunk[len(tail) : len(tail) + end] = np.frombuffer(piece, np.uint8, end)
    chunk[len(tail) + end :] = _FEED
    return chunk


def read_bounded(
    path: str | os.PathLike[str], most: int, *, hint: str = "Check the path."
) -> bytes:
    """Read a whole file of at most so many bytes; a DataError with the hint if that fails."""
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # 0 of a pipe
            content = file.read(min(size or most, most) + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        problem = "no such file" if missing else f"cannot be read ({error.strerror})"
        raise DataError(problem, path=path, hint=hint) from error
    if len(content) > most:
        limit = f"{most >> 30} GiB" if most >= 1 << 30 else f"{most >> 20} MiB"
        raise DataError(f"is larger than {limit}", path=path, hint=hint)
    return content


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Convert read errors of the system or a codec to a DataError that names the source."""
    try:
        yield
    except (OSError, EOFError) as error:
        system_message = isinstance(error, OSError) and error.strerror
        raise DataError(
            f"cannot be read completely ({system_message or error})",
            path=name,
            hint="Check the path, its permissions and the disk."
            if system_message
            else "The file is damaged or truncated: download or compress it again.",
        ) from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert write errors of the system to a DataError that names the path."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error})",
            path=path,
            hint="Check the path, its permissions and the space left.",
        ) from error


def _long_line(name: str) -> DataError:
    return DataError(
        f"a line is longer than {MAX_LINE_BYTES >> 20} MiB",
        path=name,
        hint="Is this a text file with one document per line?",
    )


class _Counted(io.RawIOBase):
    """A stream that supports ``peek`` and counts the bytes read from it."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._peeked = b""
        self.position = 0

    def read_at(self, size: int, position: int) -> bytes:
        self._inner.seek(position)
        return self._inner.read(size)

    def peek(self, size: int) -> bytes:
        while len(self._peeked) < size:
            more = self._take(size - len(self._peeked))
            if not more:
                break
            self._peeked += more
        return self._peeked[:size]

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._peeked
        if data:
            self._peeked = b""
            if size >= 0 and len(data) > size:
                data, self._peeked = data[:size], data[size:]
        else:
            data = self._take(size)
        self.position += len(data)
        return data

    def _take(self, size: int) -> bytes:
        data: bytes | None = self._inner.read(size)
        if data is None:  # a non-blocking stream without data: not its end
            raise BlockingIOError(None, "no data available on a non-blocking stream")
        return data


@contextmanager
def _open_raw(source: Source) -> Iterator[tuple[_Counted, int | None]]:
    """Open a source; its size is None where it is not seekable."""
    if not isinstance(source, str | os.PathLike):
        yield _Counted(source), None
    elif os.fspath(source) == "-":
        yield _Counted(sys.stdin.buffer), None
    else:
        path = Path(source)
        if path.is_dir():
            raise DataError("is a folder, not a file", path=path, hint="Name a file in it.")
        if names_folder(source):
            raise DataError(
                "names a folder, a file is needed",
                path=os.fspath(source),
                hint="Leave out the slash at its end.",
            )
        if not path.exists():
            raise DataError("no such file", path=path, hint="Check the path.")
        with path.open("rb", buffering=0) as file:
            size = path.stat().st_size if path.is_file() else None  # None: a pipe or device
            yield _Counted(file), size


def _codec(head: bytes, source: Source) -> str | None:
    name = source_name(source)
    for magic, codec in _MAGIC_CODECS.items():
        if head.startswith(magic):
            return codec
    for magic, kind in _OTHER_MAGIC.items():
        if head.startswith(magic):
            raise DataError(
                f"is {kind}, not plain, gzip or zstd text in UTF-8",
                path=name,
                hint="Convert it first, or name its format.",
            )
    # An open stream's name proves nothing: gzip.open("a.gz") has it and yields plain bytes.
    if head and is_compressed(source):
        raise DataError(
            f"has a {_SUFFIX_CODECS[Path(name).suffix]} suffix but other contents",
            path=name,
            hint="Rename it if it is plain text; otherwise download it again.",
        )
    return None


@contextmanager
def open_write(target: Source, *, compress: bool = True) -> Iterator[Callable[[bytes], object]]:
    """Open a target and yield its write function, compressing by suffix if ``compress``.

    A file appears under its name only when everything has been written: see
    `podium.data.atomic.atomic_write`.
    """
    if not isinstance(target, str | os.PathLike):
        yield target.write
        return
    if os.fspath(target) == "-":
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    codec = _SUFFIX_CODECS.get(Path(target).suffix) if compress else None
    with writing(target), atomic_write(target) as file:
        if codec is None:
            yield file.write
        else:
            with pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), codec) as stream:
                yield stream.write

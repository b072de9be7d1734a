"""Files on PyArrow's file systems: folders, and URLs of S3, Google Cloud Storage, HDFS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from podium.data.atomic import atomic_write
from podium.errors import DataError


def as_url(location: str | os.PathLike[str]) -> str:
    """Return a URL unchanged and a path made absolute: workers have other working directories."""
    text = os.fspath(location)
    return text if "://" in text else str(Path(text).resolve())


def display_url(url: str, file: str = "") -> str:
    """Format a URL, or a file in it, for messages: without its key and settings.

    Example:
        >>> display_url("s3://key:secret@bucket/train?region=eu", "part-0.parquet")
        's3://bucket/train/part-0.parquet'
        >>> display_url("s3://key:a/slash@bucket/train")
        's3://bucket/train'
    """
    scheme, separator, rest = url.partition("://")
    if separator:
        # Not with a URL parser: an unescaped key may contain characters that end a host.
        url = f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
    return f"{url.rstrip('/')}/{file}" if file else url


@lru_cache(maxsize=64)
def file_system(url: str) -> tuple[Any, str]:
    """The PyArrow file system of a URL or path, and the path within it."""
    from pyarrow import fs

    try:
        files, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        # PyArrow quotes parts of the URL, and a key may be among them.
        reason = f" ({str(error).partition(chr(10))[0]})" if "@" not in url else ""
        raise DataError(
            f"cannot be opened{reason}",
            path=display_url(url),
            hint="Give a folder, or a URL of a store; a key in it must be percent-encoded.",
        ) from None
    return files, path.rstrip("/")


@contextmanager
def io_errors(url: str, file: str = "", *, how: str = "read") -> Iterator[None]:
    """Turn I/O errors into a DataError that names the URL, without its key."""
    try:
        yield
    except DataError:
        raise
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"cannot be {how} ({reason})",
            path=display_url(url, file),
            hint="Is it complete, and reachable from here?",
        ) from error


def exists(url: str, file: str = "") -> bool:
    """Whether a file exists at a URL, or under a name in it."""
    files, path = _within(url, file)
    with io_errors(url, file):
        info = files.get_file_info(path)
    return bool(info.type.name != "NotFound")


def read_bytes(url: str, file: str = "") -> bytes:
    """Read a whole file."""
    files, path = _within(url, file)
    with io_errors(url, file), files.open_input_file(path) as stream:
        return bytes(stream.read())


def write_bytes(content: Any, url: str, file: str = "") -> None:
    """Write a file atomically, even if several processes write it at once."""
    files, path = _within(url, file)
    with io_errors(url, file, how="written"):
        files.create_dir(path.rpartition("/")[0], recursive=True)
        # A store shows an object when it is complete; a disk shows a file as it grows.
        local = files.type_name == "local"
        with atomic_write(path) if local else files.open_output_stream(path) as stream:
            stream.write(content)


def _within(url: str, file: str) -> tuple[Any, str]:
    files, path = file_system(url)
    return files, f"{path}/{file}" if file else path

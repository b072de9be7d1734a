"""Opening untrusted Parquet files, with errors that say what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from podium.data.files import Source, source_name
from podium.errors import DataError

_DAMAGE = (pa.ArrowException, OSError, UnicodeError)
"""What PyArrow raises on a damaged file; UnicodeError on a column's name."""

_BUFFER = 1 << 16
"""Bytes of a column that are read at once."""


@contextmanager
def open_parquet(source: Source, *, as_codes: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for a ``with`` block, in which read errors are DataErrors.

    Args:
        source: A path, ``"-"``, or an open binary stream.
        as_codes: Columns to read dictionary-encoded.
    """
    name = source_name(source)
    try:
        # Parquet is read from the end, and standard input is not seekable.
        piped = isinstance(source, str | os.PathLike) and os.fspath(source) == "-"
        input_file = pa.BufferReader(sys.stdin.buffer.read()) if piped else source
        # So PyArrow reads pages as they are needed, not a row group, which may be the whole file.
        with pq.ParquetFile(
            input_file,
            read_dictionary=list(as_codes) or None,
            buffer_size=_BUFFER,
            pre_buffer=False,
        ) as file:
            yield file
    except FileNotFoundError as error:
        raise DataError("no such file", path=name, hint="Check the path.") from error
    except _DAMAGE as error:
        reason = str(error).partition("\n")[0][:200]
        raise DataError(
            f"cannot be read as Parquet ({reason})",
            path=name,
            hint="It is damaged, truncated or of another format: download or write it again.",
        ) from error

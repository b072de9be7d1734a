"""The file format of fitted rankers: a zip of JSON, arrays and engine models, without pickle.

Equal rankers give equal bytes: entries are sorted, uncompressed and have no date.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.files import open_write
from podium.errors import ArgumentError, DataError

VERSION = 2
"""The version of the format; it changes when a ranker's parameters are renamed."""

FOLDER_FILE = "podium.json"
"""The file by which the folder of a saved ranker is known."""

_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_MAX_BYTES = 16 << 30
_UNREADABLE = (
    OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, RuntimeError, OverflowError,
    MemoryError, TokenError,
)  # fmt: skip
"""What reading a zip or the header of an array raises at bytes that are none."""


@dataclass(frozen=True)
class Archive:
    """The content of a saved ranker or of a checkpoint.

    Attributes:
        kind: The class of the ranker.
        metadata: Its parameters and other plain JSON values.
        arrays: Its arrays by name.
        blobs: Models in an engine's own format, by name.
    """

    kind: str
    metadata: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


def write_archive(archive: Archive, path: str | os.PathLike[str]) -> None:
    """Write an archive to a path atomically."""
    with open_write(path, compress=False) as write:
        write(archive_bytes(archive))


def archive_bytes(archive: Archive) -> bytes:
    """Encode an archive as the bytes of its file."""
    content = {"version": VERSION, "kind": archive.kind, "metadata": archive.metadata}
    text = json.dumps(content, indent=1, sort_keys=True, default=python_value)
    entries = {"ranker.json": text.encode()}
    for name, array in archive.arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
        entries[f"{name}.npy"] = buffer.getvalue()
    for name, blob in archive.blobs.items():
        entries[f"{name}.bin"] = blob
    return archive_entries(entries)


def archive_entries(entries: Mapping[str, bytes]) -> bytes:
    """Encode files as one; the same ones give the same bytes."""
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(entries):
            file.writestr(zipfile.ZipInfo(name, _ZIP_DATE), entries[name])
    return output.getvalue()


def pack_folder(folder: Path, most_bytes: int = _MAX_BYTES) -> bytes:
    """Return the files of a folder as one; equal folders give equal bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if sum(path.stat().st_size for path in files) > most_bytes:
        raise DataError(
            f"has more than {most_bytes:,} bytes", path=folder, hint="Use a smaller model."
        )
    return archive_entries(
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    )


def is_packed_folder(source: io.BytesIO) -> bool:
    """Return whether bytes are the folder of a ranker that was packed."""
    try:
        with zipfile.ZipFile(source) as file:
            return FOLDER_FILE in file.namelist()
    except zipfile.BadZipFile:
        return False


def unpack_folder(source: io.BytesIO, folder: Path) -> None:
    """Write the files of a packed folder; a DataError for anything else."""
    try:
        with zipfile.ZipFile(source) as file:
            _check_entries(file)
            file.extractall(folder)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot be unpacked ({error})", hint="Give the folder that the ranker was saved in."
        ) from error


def _check_entries(file: zipfile.ZipFile) -> None:
    """Raise a ValueError if what is in a file takes more than the file does."""
    entries = file.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("its entries are compressed, which Podium never does")
    assert file.fp is not None
    if sum(entry.file_size for entry in entries) > min(file.fp.seek(0, os.SEEK_END), _MAX_BYTES):
        raise ValueError("its entries are too large, or overlap")


def python_value(value: object) -> Any:
    """Convert a NumPy number, boolean or array to a Python value for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ArgumentError(
        f"{value!r} cannot be saved",
        hint="Use numbers, strings, lists and dictionaries as parameters.",
    )


def read_archive(source: str | os.PathLike[str] | io.BytesIO) -> Archive:
    """Read an archive from a file or from its bytes; raise a DataError for anything else."""
    path = None if isinstance(source, io.BytesIO) else source
    try:
        with zipfile.ZipFile(source) as file:
            _check_entries(file)
            content = json.loads(file.read("ranker.json"))
            version = content["version"]
            if version != VERSION:
                raise DataError(
                    f"is a ranker file of format version {version!r}; this Podium reads version "
                    f"{VERSION}",
                    path=path,
                    hint="Train the ranker again with this Podium and save it.",
                )
            arrays, blobs = {}, {}
            for name in file.namelist():
                if name.endswith(".npy"):
                    buffer = io.BytesIO(file.read(name))
                    array = np.lib.format.read_array(buffer, allow_pickle=False)
                    arrays[name.removesuffix(".npy")] = array
                elif name.endswith(".bin"):
                    blobs[name.removesuffix(".bin")] = file.read(name)
        return Archive(str(content["kind"]), dict(content["metadata"]), arrays, blobs)
    except DataError:  # a ValueError too, which says what to do already
        raise
    except FileNotFoundError as error:
        raise DataError("no such file", path=path, hint="Check the path.") from error
    except _UNREADABLE as error:
        raise DataError(
            f"is not a saved ranker ({error})", path=path, hint="Save it again with ranker.save."
        ) from error

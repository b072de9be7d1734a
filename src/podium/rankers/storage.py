"""Fitted rankers in one file, without pickle: JSON, arrays and an engine's own text in a zip.

The same ranker gives the same bytes: entries are sorted, stored uncompressed and undated.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.data.files import open_write
from podium.errors import ArgumentError, DataError

VERSION = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MOST_BYTES = 16 << 30


@dataclass(frozen=True)
class Archive:
    """What a ranker keeps.

    Attributes:
        kind: The class of the ranker.
        facts: Its parameters and what else is plain JSON.
        arrays: Its numbers.
        blobs: Bytes that an engine reads and writes itself.
    """

    kind: str
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)


def write_archive(archive: Archive, path: str | os.PathLike[str]) -> None:
    """Write an archive to a path; it appears there only when it is complete."""
    with open_write(path, compress=False) as write:
        write(archive_bytes(archive))


def archive_bytes(archive: Archive) -> bytes:
    """The bytes of an archive's file."""
    content = {"version": VERSION, "kind": archive.kind, "facts": archive.facts}
    text = json.dumps(content, indent=1, sort_keys=True, default=_python_value)
    entries = {"ranker.json": text.encode()}
    for name, array in archive.arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
        entries[f"{name}.npy"] = buffer.getvalue()
    for name, blob in archive.blobs.items():
        entries[f"{name}.bin"] = blob
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as file:
        for name in sorted(entries):
            file.writestr(zipfile.ZipInfo(name, _EPOCH), entries[name])
    return whole.getvalue()


def _python_value(value: object) -> Any:
    """NumPy's numbers, booleans and arrays as Python's, which JSON knows."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ArgumentError(
        f"{value!r} cannot be saved", hint="Parameters are numbers, texts, lists and dictionaries."
    )


def read_archive(source: str | os.PathLike[str] | io.BytesIO) -> Archive:
    """Read an archive from its file, or from its bytes; anything else is a DataError."""
    path = None if isinstance(source, io.BytesIO) else source
    try:
        with zipfile.ZipFile(source) as file:
            entries = file.infolist()
            if sum(entry.file_size for entry in entries) > _MOST_BYTES:
                raise DataError("is larger than any ranker", path=path, hint="Do not load it.")
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ValueError("its parts are compressed, which Podium's never are")
            content = json.loads(file.read("ranker.json"))
            arrays, blobs = {}, {}
            for name in file.namelist():
                if name.endswith(".npy"):
                    buffer = io.BytesIO(file.read(name))
                    array = np.lib.format.read_array(buffer, allow_pickle=False)
                    arrays[name.removesuffix(".npy")] = array
                elif name.endswith(".bin"):
                    blobs[name.removesuffix(".bin")] = file.read(name)
        version = content["version"]
        archive = Archive(str(content["kind"]), dict(content["facts"]), arrays, blobs)
    except FileNotFoundError as error:
        raise DataError("no such file", path=path, hint="Check the path.") from error
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, RecursionError) as error:
        raise DataError(
            f"is no saved ranker ({error})", path=path, hint="Save it again with ranker.save."
        ) from error
    if version != VERSION:
        raise DataError(
            f"was saved by another version of Podium ({version}, this one reads {VERSION})",
            path=path,
            hint="Train it again, or use that version.",
        )
    return archive

"""A loaded ranker of texts: unpacked from one file, checked, and stopped when time is up."""

from __future__ import annotations

import hashlib
import io
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from podium.errors import DataError
from podium.kernels import Doubles
from podium.rankers.storage import archive_entries

_SETTINGS = "podium.json"
_AT_ONCE = 64
"""Documents that are scored before the time is looked at again."""


def pack_folder(folder: Path, most_bytes: int) -> bytes:
    """Return the files of a saved ranker of texts as one; equal folders give equal bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if sum(path.stat().st_size for path in files) > most_bytes:
        raise DataError("is larger than 1 GiB", path=folder, hint="Serve a smaller model.")
    return archive_entries(
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    )


def is_text_model(content: bytes) -> bool:
    """Return whether bytes are a packed ranker of texts."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            return _SETTINGS in file.namelist()
    except zipfile.BadZipFile:
        return False


def _unpack(content: bytes, folder: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            for entry in file.infolist():
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise ValueError("its files are compressed")
                file.extract(entry, folder)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"cannot be unpacked ({error})", hint="Serve the folder that the ranker was saved in."
        ) from error


class ServedTextModel:
    """A ranker of texts in memory.

    Args:
        name: Its name.
        version: Its version.
        content: What ``pack_folder`` returned.
    """

    def __init__(self, name: str, version: int, content: bytes) -> None:
        # Imported here: torch and transformers are an extra.
        from podium.rankers import TextRanker

        self.name = name
        self.version = version
        self.digest = hashlib.sha256(content).hexdigest()
        with tempfile.TemporaryDirectory(prefix="podium-serving-") as folder:
            _unpack(content, folder)
            self._ranker = TextRanker.load(folder)
        if not np.isfinite(self.score("query", ["document", ""], threading.Event())).all():
            raise DataError("does not give finite scores", hint="Train it again.")

    def score(self, query: str, documents: Sequence[str], stop: threading.Event) -> Doubles:
        """Score documents; what is left when ``stop`` is set has no score (NaN)."""
        scores = np.full(len(documents), np.nan)
        for first in range(0, len(documents), _AT_ONCE):
            if stop.is_set():
                break
            part = documents[first : first + _AT_ONCE]
            scores[first : first + len(part)] = self._ranker.predict(
                [(query, each) for each in part]
            )
        return scores

    def metadata(self, versions: list[int]) -> dict[str, Any]:
        """Return what the Open Inference Protocol says of a model."""
        return {
            "name": self.name,
            "versions": [str(version) for version in versions],
            "platform": "podium_torch",
            "inputs": [
                {"name": "query", "datatype": "BYTES", "shape": [1]},
                {"name": "documents", "datatype": "BYTES", "shape": [-1]},
            ],
            "outputs": [{"name": "scores", "datatype": "FP64", "shape": [-1]}],
            "parameters": {
                "version": str(self.version),
                "sha256": self.digest,
                "kind": type(self._ranker).__name__,
            },
        }

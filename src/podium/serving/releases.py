"""The release that all processes of a service serve: which models, and the bytes of each.

A release is published once its models have been loaded and checked. Processes that start later
read it, not the models' files: a file that is replaced by a broken one breaks no process.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from podium.data.atomic import atomic_write, try_lock
from podium.data.files import read_bounded
from podium.rankers.storage import pack_folder
from podium.serving.settings import ModelSpec

MOST_BYTES = 1 << 30
"""The largest model file."""


class ReleasedModel(msgspec.Struct, frozen=True):
    """A version of a model in a release, and the SHA-256 of its bytes."""

    name: str
    version: int
    digest: str
    shadow: bool = False


class Release(msgspec.Struct, frozen=True):
    """The models that are served; each release has a larger generation than the one before."""

    generation: int
    models: tuple[ReleasedModel, ...]


class Releases:
    """The releases of a service, in a folder that its processes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "release.json"

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let one process at a time make a release."""
        with (self._folder / "lock").open("ab") as file:
            while not try_lock(file):
                time.sleep(0.01)
            yield

    def current(self) -> Release:
        """Return the newest release; generation 0, without models, if there is none yet."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Release)
        except FileNotFoundError:
            return Release(0, ())

    def content(self, digest: str) -> bytes:
        """Return the bytes of a model of the newest release."""
        return self._blob(digest).read_bytes()

    def publish(self, models: tuple[ReleasedModel, ...], contents: Mapping[str, bytes]) -> Release:
        """Make a release; ``contents`` has the bytes of models that no release had, by digest."""
        before = self.current()
        for digest, content in contents.items():
            if not self._blob(digest).exists():
                with atomic_write(self._blob(digest)) as file:
                    file.write(content)
        release = Release(before.generation + 1, models)
        with atomic_write(self._file) as file:
            file.write(msgspec.json.encode(release))
        # Those of the last release stay: a process may be reading them.
        kept = {model.digest for model in (*before.models, *models)}
        for blob in self._folder.glob("*.model"):
            if blob.stem not in kept:
                blob.unlink()
        return release

    def _blob(self, digest: str) -> Path:
        return self._folder / f"{digest}.model"


def read_content(spec: ModelSpec) -> tuple[str, bytes]:
    """Read a model's file, or the folder of a text ranker; return its digest and its bytes."""
    if Path(spec.path).is_dir():
        content = pack_folder(Path(spec.path), MOST_BYTES)
    else:
        content = read_bounded(spec.path, MOST_BYTES)
    return hashlib.sha256(content).hexdigest(), content

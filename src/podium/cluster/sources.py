"""Shard sets on any of PyArrow's file systems: local disks, S3, Google Cloud Storage, HDFS.

A source is its URL and its manifest, so it travels to workers in a few kilobytes; each process
opens the file system itself, with the credentials of the machine or the URL.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from podium.cluster.filesystems import (
    as_url,
    display_url,
    exists,
    file_system,
    io_errors,
    read_bytes,
)
from podium.data import Dataset, ShardSet
from podium.data.shards import MANIFEST, Shard, parse_manifest
from podium.errors import DataError

ShardSetLocation: TypeAlias = "str | os.PathLike[str] | ShardSet | ShardSource"
"""A shard set by its folder, by its URL, or opened."""


@dataclass(frozen=True)
class ShardSource:
    """A shard set by its URL, with the manifest that every file is checked against.

    Attributes:
        url: The URL of the set, as ``s3://bucket/train``, or the path of a folder.
        manifest: The set's manifest.

    Example:
        >>> import tempfile
        >>> from podium.data import write_shards
        >>> data = Dataset.from_arrays([[1], [2]], labels=[0, 1], qid=["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     source = open_source(write_shards(data, f"{folder}/train"))
        ...     [block.query_ids.to_pylist() for block in source.blocks(0)]
        [['a', 'b']]
    """

    url: str
    manifest: ShardSet

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The files of the set."""
        return self.manifest.shards

    def __repr__(self) -> str:
        return f"ShardSource({display_url(self.url)!r}, {self.manifest!r})"

    def display_url(self, index: int) -> str:
        """Format a shard's URL for messages."""
        return display_url(self.url, self.shards[index].file)

    @contextmanager
    def open(self, index: int) -> Iterator[Any]:
        """Open a shard's file, whose size must be the manifest's."""
        shard = self.shards[index]
        self.manifest.refuse_elsewhere(shard)
        files, folder = file_system(self.url)
        path = f"{folder}/{shard.file}"
        with io_errors(self.url, shard.file):
            size = files.get_file_info(path).size
        shard.check_size(size, self.display_url(index))
        # Later reads may fail too: a connection can be lost midway.
        with io_errors(self.url, shard.file), files.open_input_file(path) as file:
            yield file

    def blocks(self, index: int) -> Iterator[Dataset]:
        """Stream a shard as blocks of whole queries."""
        with self.open(index) as file:
            yield from self.manifest.shard_blocks(index, file)

    def verify(self, index: int) -> None:
        """Compare a shard's SHA-256 with the manifest's; raises DataError where they differ."""
        with self.open(index) as file:
            digest = hashlib.file_digest(_Readable(file), "sha256").hexdigest()
        if digest != self.shards[index].sha256:
            raise DataError(
                "is damaged (its checksum is not the manifest's)",
                path=self.display_url(index),
                hint="Copy the file again, or convert it again.",
            )


def open_source(location: ShardSetLocation) -> ShardSource:
    """Open a shard set by its folder or URL; only the manifest is read.

    Args:
        location: A folder, a URL that PyArrow knows (``file://``, ``s3://``, ``gs://``,
            ``hdfs://``; an S3-compatible store by ``?endpoint_override=…``), or an open set.

    Example:
        >>> import tempfile
        >>> from podium.data import write_shards
        >>> data = Dataset.from_arrays([[1], [2]], labels=[0, 1], qid=["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_shards(data, f"{folder}/train")
        ...     open_source(f"file://{folder}/train").manifest
        ShardSet(2 queries, 2 rows, 1 features, 1 shards)
    """
    if isinstance(location, ShardSource):
        return location
    if isinstance(location, ShardSet):
        return ShardSource(str(location.folder.resolve()), location)
    url = as_url(location)
    if "://" not in url:
        return ShardSource(url, ShardSet.open(url))
    if not exists(url, MANIFEST):
        raise DataError(
            "is not a shard set (no manifest)", path=display_url(url), hint="Is the URL right?"
        )
    _, folder = file_system(url)
    return ShardSource(url, parse_manifest(read_bytes(url, MANIFEST), Path(folder)))


class _Readable:
    """Adapts one of PyArrow's files to ``hashlib.file_digest``."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return int(self._file.readinto(buffer))

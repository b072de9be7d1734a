"""A data set on disk in shards of whole queries, for data that do not fit in memory.

A shard set is a folder of Parquet files (``part-00000.parquet``, …; the schema is that of
``podium.data.formats.parquet``) and ``manifest.json``: counts, feature names, label range and
each file's rows, queries, bytes and SHA-256. The manifest is written last and appears at once
under its name, so a folder without one is not a shard set, however many parts it contains.

A shard may lack the last features of the manifest if the text it came from had not used them
yet; they are 0 there, as in that text.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.data.dataset import Dataset
from podium.data.definitions_hash import checked_hash
from podium.data.files import Reporter, Source, writing
from podium.data.formats.parquet import table_rows
from podium.data.formats.parquet_file import open_parquet
from podium.data.query_rows import join_rows
from podium.data.stream import widen
from podium.errors import DataError

MANIFEST = "manifest.json"
UNFINISHED = "unfinished"
VERSION = 1


@dataclass(frozen=True)
class Shard:
    """One file of a shard set."""

    file: str
    rows: int
    queries: int
    bytes: int
    sha256: str

    def check_size(self, size: int | None, where: object) -> None:
        """Raise a DataError if the file is missing (None) or its size is not the manifest's."""
        if size is None:
            raise _damaged(where, "the file is missing")
        if size != self.bytes:
            raise _damaged(where, f"{size} bytes, {self.bytes} in the manifest")


@dataclass(frozen=True)
class ShardSet:
    """A data set in shards; ``blocks`` streams it, ``load`` reads it into memory.

    Attributes:
        folder: The folder of its files.
        rows: Rows in all shards.
        queries: Queries in all shards.
        feature_names: The features of every row.
        lowest_label: The lowest label.
        highest_label: The highest label.
        shards: The files.
        definitions_hash: The hash of the definitions that the features follow, or None.

    Example:
        >>> import tempfile
        >>> from podium.data import write_shards
        >>> data = Dataset.from_arrays([[1], [2], [3]], labels=[0, 1, 2], qid=[7, 8, 9])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = write_shards(data, f"{folder}/train")
        ...     print(shards, shards.load().equals(data))
        ShardSet(3 queries, 3 rows, 1 features, 1 shards) True
    """

    folder: Path
    rows: int
    queries: int
    feature_names: tuple[str, ...]
    lowest_label: float
    highest_label: float
    shards: tuple[Shard, ...]
    definitions_hash: str | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ShardSet:
        """Open a shard set and check that its files exist and have the right size."""
        path = Path(folder)
        manifest = path / MANIFEST
        if _file_size(manifest) is None:
            unfinished = _file_size(path / UNFINISHED) is not None
            raise DataError(
                "is an unfinished shard set" if unfinished else "is not a shard set (no manifest)",
                path=path,
                hint="Run the conversion again." if unfinished else "Create one: podium convert.",
            )
        shard_set = parse_manifest(manifest.read_bytes(), path)
        for shard in shard_set.shards:
            shard_set._check_size(shard)
        return shard_set

    def __len__(self) -> int:
        return self.queries

    def __repr__(self) -> str:
        return (
            f"ShardSet({self.queries} queries, {self.rows} rows, "
            f"{len(self.feature_names)} features, {len(self.shards)} shards)"
        )

    def blocks(
        self, shards: Sequence[int] | None = None, *, progress: Reporter | None = None
    ) -> Iterator[Dataset]:
        """Stream data sets of whole queries, from all shards or some (by position)."""
        chosen = range(len(self.shards)) if shards is None else shards
        total = sum(self.shards[index].bytes for index in chosen)
        done = 0
        for index in chosen:
            shard = self.shards[index]
            path = self._check_size(shard)
            for block, part in self._groups(path, shard, str(path)):
                yield block
                if progress is not None:
                    progress(done + int(shard.bytes * part), total)
            done += shard.bytes

    def load(
        self,
        *,
        features_file: str | os.PathLike[str] | None = None,
        progress: Reporter | None = None,
    ) -> Dataset:
        """Load the whole set as one data set.

        Args:
            features_file: Where to keep the features as a memory-mapped ``.npy`` file, for sets
                whose features do not fit in memory; by default they are in memory.
            progress: Called with bytes read and total bytes.
        """
        shape = (self.rows, len(self.feature_names))
        if features_file is None:
            features = np.empty(shape, np.float32)
        else:
            with writing(features_file):
                features = np.lib.format.open_memmap(
                    features_file, mode="w+", dtype=np.float32, shape=shape
                )
        rest = []
        row = 0
        for block in self.blocks(progress=progress):
            features[row : row + block.rows] = block.features
            row += block.rows
            rest.append(block.without_features())
        fields = join_rows(rest) | {"features": features}
        return Dataset(
            **fields, feature_names=self.feature_names, definitions_hash=self.definitions_hash
        )

    def verify(self, *, progress: Reporter | None = None) -> None:
        """Check every file's SHA-256 against the manifest; raise a DataError on a mismatch."""
        total = sum(shard.bytes for shard in self.shards)
        done = 0
        for shard in self.shards:
            path = self._check_size(shard)
            if sha256(path) != shard.sha256:
                raise _damaged(path, "checksum differs from the manifest")
            done += shard.bytes
            if progress is not None:
                progress(done, total)

    def _check_size(self, shard: Shard) -> Path:
        self.refuse_elsewhere(shard)
        path = self.folder / shard.file
        shard.check_size(_file_size(path), path)
        return path

    def refuse_elsewhere(self, shard: Shard) -> None:
        """Reject paths outside the folder: a manifest is untrusted input."""
        if Path(shard.file).name != shard.file or shard.file in ("", ".", ".."):
            raise DataError(
                f"refers to a file outside its folder: {shard.file!r}",
                path=self.folder / MANIFEST,
                hint="Do not use this shard set: its manifest has been changed.",
            )

    def shard_blocks(self, index: int, source: Source) -> Iterator[Dataset]:
        """Stream a shard from any source as blocks of whole queries."""
        for block, _ in self._groups(source, self.shards[index], self.shards[index].file):
            yield block

    def _groups(self, source: Source, shard: Shard, name: str) -> Iterator[tuple[Dataset, float]]:
        """Yield the row groups of a shard, each with the fraction of the shard read so far."""
        with open_parquet(source) as file:
            if file.metadata.num_rows != shard.rows:
                raise _damaged(name, f"not the {shard.rows} rows of the manifest")
            for group in range(file.num_row_groups):
                block = table_rows(file.read_row_group(group), Dataset, name)
                yield self._with_all_features(block, name), (group + 1) / file.num_row_groups

    def _with_all_features(self, block: Dataset, name: str) -> Dataset:
        names = block.feature_names
        if names == self.feature_names:
            return block
        if names != self.feature_names[: len(names)]:
            raise _damaged(name, "features differ from the manifest")
        return widen(block, self.feature_names)


def parse_manifest(content: bytes, folder: Path) -> ShardSet:
    """Parse a manifest; does not check that its files exist."""
    manifest = folder / MANIFEST
    try:
        fields = json.loads(content)
        version = fields.pop("version")
        shard_set = _from_manifest(folder, fields) if version == VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
        raise DataError(
            f"is not a valid manifest ({error})", path=manifest, hint="Run the conversion again."
        ) from error
    if shard_set is None:
        raise DataError(
            f"has format version {version}, this version of Podium reads {VERSION}",
            path=manifest,
            hint="Convert the data again, or use another version of Podium.",
        )
    return shard_set


def _from_manifest(folder: Path, fields: dict[str, Any]) -> ShardSet:
    """Create a shard set from a manifest's fields, all checked: they are untrusted input."""
    entries, names = fields.pop("shards"), fields.pop("feature_names")
    shards = tuple(Shard(**entry) for entry in entries)
    shard_set = ShardSet(folder, feature_names=tuple(names), shards=shards, **fields)
    counts = [shard_set.rows, shard_set.queries]
    counts += [count for shard in shards for count in (shard.rows, shard.queries, shard.bytes)]
    strings = [*names, *(string for shard in shards for string in (shard.file, shard.sha256))]
    labels = (shard_set.lowest_label, shard_set.highest_label)
    if not all(type(count) is int and count > 0 for count in counts):
        raise ValueError("a count is not a positive integer")
    if not isinstance(names, list) or not all(isinstance(string, str) for string in strings):
        raise ValueError("a name is not a string")
    if not all(type(label) in (int, float) and np.isfinite(label) for label in labels):
        raise ValueError("a label is not a number")
    checked_hash(shard_set.definitions_hash)
    if len(set(names)) != len(names) or len({shard.file for shard in shards}) != len(shards):
        raise ValueError("duplicate name")
    if not shards or (shard_set.rows, shard_set.queries) != (
        sum(shard.rows for shard in shards),
        sum(shard.queries for shard in shards),
    ):
        raise ValueError("the shards do not add up to the totals")
    return shard_set


def _file_size(path: Path) -> int | None:
    with suppress(OSError, ValueError):  # the name may not be a valid file name
        return path.stat().st_size if path.is_file() else None
    return None


def sha256(path: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: object, problem: str) -> DataError:
    return DataError(
        f"is damaged ({problem})", path=path, hint="Copy the file again, or convert the data again."
    )

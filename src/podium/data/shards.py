"""A data set on disk in shards of whole queries, for data that do not fit in memory.

A shard set is a folder of Parquet files (``part-00000.parquet``, …; the schema is that of
``podium.data.formats.parquet``) and ``manifest.json``: counts, feature names, label range and
each file's rows, queries, bytes and SHA-256. The manifest is written last and appears at once
under its name, so a folder without one is not a shard set, however many parts lie in it.

A shard may lack the last features of the manifest where the text it came from had not named them
yet; they are 0 there, as in that text.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from podium.data.dataset import Dataset
from podium.data.files import Reporter, writing
from podium.data.formats.parquet import (
    BLOCK_BYTES,
    PARQUET_ERRORS,
    parquet_writer,
    query_pieces,
    table_rows,
    table_schema,
    write_row_groups,
)
from podium.data.query_rows import join_rows
from podium.data.stream import SeenQueries, gathered, refuse_twice, widen
from podium.errors import DataError

SHARD_BYTES = 256 << 20
_MANIFEST = "manifest.json"
_UNFINISHED = "unfinished"
_VERSION = 1


@dataclass(frozen=True)
class Shard:
    """One file of a shard set."""

    file: str
    rows: int
    queries: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class ShardSet:
    """A data set in shards; ``blocks`` streams it, ``load`` brings it to memory.

    Attributes:
        folder: Where it lies.
        rows: Rows in all shards.
        queries: Queries in all shards.
        feature_names: The features of every row.
        lowest_label: The lowest label.
        highest_label: The highest label.
        shards: The files.

    Example:
        >>> import tempfile
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

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> ShardSet:
        """Open a shard set; that its files are there and of the right size is checked at once."""
        path = Path(folder)
        manifest = path / _MANIFEST
        if _file_size(manifest) is None:
            unfinished = _file_size(path / _UNFINISHED) is not None
            raise DataError(
                "is an unfinished shard set" if unfinished else "is no shard set (no manifest)",
                path=path,
                hint="Run the conversion again." if unfinished else "Make one: podium convert.",
            )
        try:
            fields = json.loads(manifest.read_bytes())
            version = fields.pop("version")
            found = _from_manifest(path, fields) if version == _VERSION else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            raise DataError(
                f"is no manifest ({error})", path=manifest, hint="Run the conversion again."
            ) from error
        if found is None:
            raise DataError(
                f"is of version {version}, this Podium reads {_VERSION}",
                path=manifest,
                hint="Convert the data again, or use another version of Podium.",
            )
        for shard in found.shards:
            found._check_size(shard)
        return found

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
        total = sum(self.shards[place].bytes for place in chosen)
        done = 0
        for place in chosen:
            shard = self.shards[place]
            path = self._check_size(shard)
            try:
                with pq.ParquetFile(path) as file:
                    if file.metadata.num_rows != shard.rows:
                        raise _damaged(path, f"not the {shard.rows} rows that the manifest says")
                    for group in range(file.num_row_groups):
                        table = file.read_row_group(group)
                        yield self._complete(table_rows(table, Dataset, str(path)), path)
                        if progress is not None:
                            progress(done + shard.bytes * (group + 1) // file.num_row_groups, total)
            except PARQUET_ERRORS as error:
                raise _damaged(path, str(error).partition("\n")[0][:200]) from error
            done += shard.bytes

    def load(
        self,
        *,
        features_file: str | os.PathLike[str] | None = None,
        progress: Reporter | None = None,
    ) -> Dataset:
        """Bring the whole set together.

        Args:
            features_file: Where to keep the features as a memory-mapped ``.npy`` file, for sets
                whose features do not fit in memory; by default they are in memory.
            progress: Called with bytes read and bytes in all.
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
        return Dataset(**fields, feature_names=self.feature_names)

    def verify(self, *, progress: Reporter | None = None) -> None:
        """Compare every file's SHA-256 with the manifest's; raises DataError where they differ."""
        total = sum(shard.bytes for shard in self.shards)
        done = 0
        for shard in self.shards:
            path = self._check_size(shard)
            if _sha256(path) != shard.sha256:
                raise _damaged(path, "its checksum is not the manifest's")
            done += shard.bytes
            if progress is not None:
                progress(done, total)

    def _check_size(self, shard: Shard) -> Path:
        # A manifest is input from outside: it may name nothing but files beside it.
        if Path(shard.file).name != shard.file or shard.file in ("", ".", ".."):
            raise DataError(
                f"names a file {shard.file!r} elsewhere",
                path=self.folder / _MANIFEST,
                hint="Do not use this shard set: its manifest has been changed.",
            )
        path = self.folder / shard.file
        size = _file_size(path)
        if size is None:
            raise _damaged(path, "the file is missing")
        if size != shard.bytes:
            raise _damaged(path, f"{size} bytes, the manifest says {shard.bytes}")
        return path

    def _complete(self, block: Dataset, path: Path) -> Dataset:
        names = block.feature_names
        if names == self.feature_names:
            return block
        if names != self.feature_names[: len(names)]:
            raise _damaged(path, "its features are not the manifest's")
        return widen(block, self.feature_names)


def _from_manifest(folder: Path, fields: dict[str, Any]) -> ShardSet:
    """Make a shard set of a manifest's fields, which are input from outside: all are checked."""
    entries, names = fields.pop("shards"), fields.pop("feature_names")
    shards = tuple(Shard(**entry) for entry in entries)
    found = ShardSet(folder, feature_names=tuple(names), shards=shards, **fields)
    counts = [found.rows, found.queries]
    counts += [count for shard in shards for count in (shard.rows, shard.queries, shard.bytes)]
    texts = [*names, *(text for shard in shards for text in (shard.file, shard.sha256))]
    labels = (found.lowest_label, found.highest_label)
    if not all(type(count) is int and count > 0 for count in counts):
        raise ValueError("a count is no whole number above 0")
    if not isinstance(names, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is no string")
    if not all(type(label) in (int, float) and np.isfinite(label) for label in labels):
        raise ValueError("a label is no number")
    if len(set(names)) != len(names) or len({shard.file for shard in shards}) != len(shards):
        raise ValueError("a name comes twice")
    if not shards or (found.rows, found.queries) != (
        sum(shard.rows for shard in shards),
        sum(shard.queries for shard in shards),
    ):
        raise ValueError("the shards do not add up to the whole")
    return found


def write_shards(
    datasets: Dataset | Iterable[Dataset],
    folder: str | os.PathLike[str],
    *,
    shard_bytes: int = SHARD_BYTES,
) -> ShardSet:
    """Write a data set, or blocks of whole queries, as shards.

    An unfinished set in the folder (from a run that was killed) is removed and begun anew; a
    finished one, or other files, are an error.

    Args:
        datasets: The data; blocks are written as they come and not kept.
        folder: A folder that is empty or does not exist.
        shard_bytes: Begin a new shard after this many bytes of features.

    Example:
        >>> import tempfile
        >>> data = Dataset.from_arrays([[2.0], [3.0]], [1, 0], qid=["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_shards(data, folder)
        ShardSet(2 queries, 2 rows, 1 features, 1 shards)
    """
    path = Path(folder)
    with writing(path):
        _claim(path)
        return _write_all(datasets, path, shard_bytes)


def _write_all(datasets: Dataset | Iterable[Dataset], path: Path, shard_bytes: int) -> ShardSet:
    seen = SeenQueries()
    shards: list[Shard] = []
    names: tuple[str, ...] = ()
    lowest, highest = np.inf, -np.inf
    blocks = iter([datasets]) if isinstance(datasets, Dataset) else iter(datasets)
    with _OpenShards(path, shard_bytes) as files:
        for block in gathered(blocks, min(BLOCK_BYTES, shard_bytes)):
            refuse_twice(seen.add(block.query_ids), str(path))
            if block.feature_names[: len(names)] != names:
                raise DataError(
                    "two blocks have different features", path=path, hint="Write alike blocks."
                )
            names = block.feature_names
            lowest = min(lowest, float(block.labels.min()))
            highest = max(highest, float(block.labels.max()))
            files.write(block)
        shards = files.close()
    if not shards:
        raise DataError("there is no data to write", path=path, hint="Give at least one query.")
    rows, queries = sum(shard.rows for shard in shards), sum(shard.queries for shard in shards)
    found = ShardSet(path, rows, queries, names, lowest, highest, tuple(shards))
    _write_manifest(found)
    return found


class _OpenShards:
    """Writes blocks to the shard that is open, and opens the next when it is full."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self._folder = folder
        self._shard_bytes = shard_bytes
        self._done: list[Shard] = []
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
        self._rows = self._queries = self._bytes = 0

    def __enter__(self) -> _OpenShards:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, block: Dataset) -> None:
        for piece in query_pieces(block, self._shard_bytes):
            if self._bytes + piece.features.nbytes > self._shard_bytes:
                self._finish()
            if self._schema is not None and "document_id" in self._schema.names:
                piece = piece.with_document_ids()
            schema = table_schema(piece)
            if schema != self._schema:  # a feature or the document ids have come up
                self._finish()
            if self._writer is None:
                self._writer = parquet_writer(f"{self._path()}.partial", schema)
                self._schema = schema
            write_row_groups(self._writer, piece, schema)
            self._rows += piece.rows
            self._queries += len(piece)
            self._bytes += piece.features.nbytes

    def close(self) -> list[Shard]:
        self._finish()
        return self._done

    def _path(self) -> Path:
        return self._folder / f"part-{len(self._done):05d}.parquet"

    def _finish(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        path = self._path()
        partial = path.with_name(path.name + ".partial")
        digest = _sha256(partial)
        _flush(partial)
        partial.replace(path)
        size = path.stat().st_size
        self._done.append(Shard(path.name, self._rows, self._queries, size, digest))
        self._writer = self._schema = None
        self._rows = self._queries = self._bytes = 0


def _claim(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    marker = path / _UNFINISHED
    if marker.exists():
        # The manifest goes first: what is left without it does not read as complete.
        (path / _MANIFEST).unlink(missing_ok=True)
        for part in (*path.glob("part-*.parquet"), *path.glob("*.partial")):
            part.unlink()
    elif any(path.iterdir()):
        raise DataError(
            "is not empty", path=path, hint="Choose a new folder, or remove this one first."
        )
    marker.write_text("This shard set is not complete: run the conversion again.\n")


def _write_manifest(shards: ShardSet) -> None:
    fields: dict[str, Any] = {"version": _VERSION} | asdict(shards)
    del fields["folder"]
    path = shards.folder / _MANIFEST
    partial = path.with_name(_MANIFEST + ".partial")
    partial.write_text(json.dumps(fields, indent=1) + "\n")
    _flush(partial)
    partial.replace(path)
    _flush(shards.folder)
    (shards.folder / _UNFINISHED).unlink()


def _flush(path: Path) -> None:
    """Make the disk hold what was written, so that a manifest never outlives its shards."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_size(path: Path) -> int | None:
    with suppress(OSError, ValueError):  # the name may be one that no file can have
        return path.stat().st_size if path.is_file() else None
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(path: Path, problem: str) -> DataError:
    return DataError(
        f"is damaged ({problem})", path=path, hint="Copy the file again, or convert anew."
    )

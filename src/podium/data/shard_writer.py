"""Writing data sets in shards; ``podium.data.shards`` defines and reads shard sets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from podium.data.atomic import atomic_write, try_lock
from podium.data.dataset import Dataset
from podium.data.definitions_hash import common_hash
from podium.data.files import writing
from podium.data.formats.parquet import (
    BLOCK_BYTES,
    parquet_writer,
    query_pieces,
    table_schema,
    write_row_groups,
)
from podium.data.shards import MANIFEST, UNFINISHED, VERSION, Shard, ShardSet, sha256
from podium.data.stream import SeenQueries, check_not_repeated, merge_blocks
from podium.errors import DataError

SHARD_BYTES = 256 << 20


def write_shards(
    datasets: Dataset | Iterable[Dataset],
    folder: str | os.PathLike[str],
    *,
    shard_bytes: int = SHARD_BYTES,
) -> ShardSet:
    """Write a data set, or blocks of whole queries, as shards.

    An unfinished set in the folder (from a run that was killed) is removed; a finished one, or
    other files, are an error.

    Args:
        datasets: The data; blocks are written as they arrive and not kept in memory.
        folder: A folder that is empty or does not exist.
        shard_bytes: Start a new shard after this many bytes of features.

    Example:
        >>> import tempfile
        >>> data = Dataset.from_arrays([[2.0], [3.0]], [1, 0], qid=["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_shards(data, folder)
        ShardSet(2 queries, 2 rows, 1 features, 1 shards)
    """
    path = Path(folder)
    with writing(path), _locked(path):
        return _write_all(datasets, path, shard_bytes)


def _write_all(datasets: Dataset | Iterable[Dataset], path: Path, shard_bytes: int) -> ShardSet:
    seen = SeenQueries()
    shards: list[Shard] = []
    names: tuple[str, ...] = ()
    lowest, highest = np.inf, -np.inf
    hashes: list[str | None] = []
    blocks = iter([datasets]) if isinstance(datasets, Dataset) else iter(datasets)
    with _OpenShards(path, shard_bytes) as files:
        for block in merge_blocks(blocks, min(BLOCK_BYTES, shard_bytes)):
            check_not_repeated(seen.add(block.query_ids), str(path))
            if block.feature_names[: len(names)] != names:
                raise DataError(
                    "two blocks have different features",
                    path=path,
                    hint="Write blocks with the same columns.",
                )
            names = block.feature_names
            hashes = list({*hashes, block.definitions_hash})
            common_hash(hashes, "the blocks")
            lowest = min(lowest, float(block.labels.min()))
            highest = max(highest, float(block.labels.max()))
            files.write(block)
        shards = files.close()
    if not shards:
        raise DataError("there is no data to write", path=path, hint="Give at least one query.")
    rows, queries = sum(shard.rows for shard in shards), sum(shard.queries for shard in shards)
    shared = common_hash(hashes, "the blocks")
    shard_set = ShardSet(path, rows, queries, names, lowest, highest, tuple(shards), shared)
    _write_manifest(shard_set)
    return shard_set


class _OpenShards:
    """Writes blocks to the open shard, and opens the next one when it is full."""

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
            if schema != self._schema:  # new features or document ids
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
        digest = sha256(partial)
        # Sync before the rename, so that no manifest refers to a missing shard after a crash.
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
        size = path.stat().st_size
        self._done.append(Shard(path.name, self._rows, self._queries, size, digest))
        self._writer = self._schema = None
        self._rows = self._queries = self._bytes = 0


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a folder until the block ends, and remove what a killed writer left in it."""
    path.mkdir(parents=True, exist_ok=True)
    marker = path / UNFINISHED
    if not marker.exists() and any(path.iterdir()):
        raise DataError(
            "is not empty", path=path, hint="Choose a new folder, or remove this one first."
        )
    with marker.open("a") as stream:
        # The previous owner of the lock may have finished and removed the file that we opened.
        if not try_lock(stream) or not _is_same_file(stream, marker):
            raise DataError(
                "is being written by another process", path=path, hint="Wait until it is done."
            )
        # Remove the manifest first: without it the rest does not count as complete.
        (path / MANIFEST).unlink(missing_ok=True)
        for part in (*path.glob("part-*.parquet"), *path.glob("*.partial")):
            part.unlink()
        stream.truncate(0)
        stream.write("This shard set is not complete: run the conversion again.\n")
        stream.flush()
        yield


def _is_same_file(stream: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _write_manifest(shards: ShardSet) -> None:
    fields: dict[str, Any] = {"version": VERSION} | asdict(shards)
    del fields["folder"]
    if shards.definitions_hash is None:
        del fields["definitions_hash"]
    with atomic_write(shards.folder / MANIFEST) as file:
        file.write(json.dumps(fields, indent=1).encode() + b"\n")
    (shards.folder / UNFINISHED).unlink()

"""Streams of data set blocks in which no query is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from podium.data.dataset import Dataset
from podium.data.definitions_hash import common_hash
from podium.data.grouping import Grouping, Strings
from podium.data.ids import query_keys
from podium.data.query_rows import join_rows
from podium.errors import DataError
from podium.kernels import Ints


class SeenQueries:
    """Detects repeated query ids, in eight bytes per query.

    Hashes of ids are kept in sorted arrays; arrays of similar size are merged, so adding n ids
    costs O(n log n) in total. The first ids wait for the second: most files are one block, and need
    no hashes, whose loop would have to be compiled or loaded first.
    """

    def __init__(self) -> None:
        self._first: Strings | None = None
        self._runs: list[Ints] = []

    def add(self, ids: Strings) -> str | None:
        """Add ids and return the first that was seen before or is repeated, if any."""
        if self._first is None and not self._runs and 0 < len(ids) == len(pc.unique(ids)):
            self._first = ids
            return None
        if self._first is not None:
            self._runs.append(np.sort(query_keys(self._first)))
            self._first = None
        keys = query_keys(ids)
        ordered = np.sort(keys)  # sorted lookups are cache-friendly
        repeated = [_common(ordered, run) for run in self._runs]
        repeated.append(ordered[1:][ordered[1:] == ordered[:-1]])
        if any(map(len, repeated)):
            return str(ids[int(np.argmax(np.isin(keys, np.concatenate(repeated))))])
        if len(keys):
            self._runs.append(ordered)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate((before, last)), kind="stable"))
        return None


def _common(keys: Ints, run: Ints) -> Ints:
    """Return the keys that are in both of two sorted arrays."""
    positions = np.searchsorted(run, keys)
    positions[positions == len(run)] = 0
    common: Ints = keys[run[positions] == keys]
    return common


def whole_queries(blocks: Iterable[Dataset], name: str) -> Iterator[Dataset]:
    """Rejoin queries that were cut at block boundaries; a repeated query is an error.

    Later blocks may have more features (an absent LETOR feature is 0); the pieces of a query are
    padded to the wider one's width.
    """
    seen = SeenQueries()
    pending: Dataset | None = None
    for block in blocks:
        if pending is not None:
            block = _append(pending, block)
        if len(block) > 1:
            ready = block.select(np.arange(len(block) - 1))
            check_not_repeated(seen.add(ready.query_ids), name)
            yield ready
        pending = block.select([len(block) - 1])
    if pending is not None:
        check_not_repeated(seen.add(pending.query_ids), name)
        yield pending


def merge_blocks(blocks: Iterable[Dataset], max_bytes: int) -> Iterator[Dataset]:
    """Concatenate consecutive blocks with the same features up to a size in bytes.

    Text is parsed in small blocks that fit a processor's cache; files and rankers need larger ones.
    """
    pending: list[Dataset] = []
    size = 0
    for block in filter(len, blocks):  # a part of a split may be empty
        size += block.features.nbytes
        if pending and (size > max_bytes or pending[0].feature_names != block.feature_names):
            yield _concat(pending)
            pending, size = [], block.features.nbytes
        pending.append(block)
    if pending:
        yield _concat(pending)


def _concat(blocks: list[Dataset]) -> Dataset:
    if len(blocks) == 1:
        return blocks[0]
    shared = common_hash([block.definitions_hash for block in blocks], "the blocks")
    names = blocks[0].feature_names
    return Dataset(**join_rows(blocks), feature_names=names, definitions_hash=shared)


def check_not_repeated(query: str | None, name: str) -> None:
    """Raise a DataError if ``query``, a repeated query id, is not None."""
    if query is not None:
        raise DataError(
            f"the rows of query {query!r} are not contiguous",
            path=name,
            hint="Sort the file by query, or read all of it into memory (--whole).",
        )


def check_contiguous(grouping: Grouping, name: str) -> Grouping:
    """Raise a DataError if the rows of a query are not contiguous within a block."""
    if grouping.order is not None:
        moved = int(np.argmax(grouping.order != np.arange(len(grouping.order))))
        query = int(np.searchsorted(grouping.offsets, moved, side="right")) - 1
        check_not_repeated(grouping.query_ids[query].as_py(), name)
    return grouping


def widen(data: Dataset, names: tuple[str, ...]) -> Dataset:
    """Append columns of zeros for the trailing names that a data set lacks."""
    missing = len(names) - len(data.feature_names)
    if missing <= 0:
        return data
    if names[:-missing] != data.feature_names:
        raise DataError(
            "the blocks have different features", hint="Give them the same, in the same order."
        )
    features = np.pad(data.features, ((0, 0), (0, missing)))
    return replace(data, features=features, feature_names=names)


def _append(pending: Dataset, block: Dataset) -> Dataset:
    """Prepend a query to a block, joined with the block's first query if it is the same."""
    names = max(pending.feature_names, block.feature_names, key=len)
    pending, block = widen(pending, names), widen(block, names)
    fields = join_rows([pending, block])
    if pending.query_ids[0] == block.query_ids[0]:
        fields["query_ids"] = block.query_ids
        fields["offsets"] = np.delete(fields["offsets"], 1)
    shared = common_hash([pending.definitions_hash, block.definitions_hash], "the blocks")
    return Dataset(**fields, feature_names=names, definitions_hash=shared)

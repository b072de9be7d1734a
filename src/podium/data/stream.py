"""Streams of data sets in which no query is split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from podium.data.dataset import Dataset
from podium.data.grouping import Grouping, Strings
from podium.data.ids import query_keys
from podium.data.query_rows import join_rows
from podium.errors import DataError
from podium.kernels import Ints


class SeenQueries:
    """Finds a query id that came before, in eight bytes a query.

    Ids are remembered by their hash in sorted arrays, of which two of about one size are merged
    into one, so adding n ids costs O(n log n) in all.
    """

    def __init__(self) -> None:
        self._runs: list[Ints] = []

    def add(self, ids: Strings) -> str | None:
        """Remember ids, and return the first that came before or comes again, if there is one."""
        keys = query_keys(ids)
        ordered = np.sort(keys)  # looked up in order, neighbours are in cache
        twice = [_common(ordered, run) for run in self._runs]
        twice.append(ordered[1:][ordered[1:] == ordered[:-1]])
        if any(map(len, twice)):
            return str(ids[int(np.argmax(np.isin(keys, np.concatenate(twice))))])
        if len(keys):
            self._runs.append(ordered)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate((before, last)), kind="stable"))
        return None


def _common(keys: Ints, run: Ints) -> Ints:
    """The keys, of two sorted arrays, that are in both."""
    places = np.searchsorted(run, keys)
    places[places == len(run)] = 0
    found: Ints = keys[run[places] == keys]
    return found


def whole_queries(blocks: Iterable[Dataset], name: str) -> Iterator[Dataset]:
    """Join the query that is cut by the border of two blocks, and refuse one that comes twice.

    Blocks may grow wider as the stream goes on (an absent LETOR feature is 0); the pieces of a
    query are brought to the wider one's width.
    """
    seen = SeenQueries()
    held: Dataset | None = None
    for block in blocks:
        if held is not None:
            block = _append(held, block)
        if len(block) > 1:
            ready = block.select(np.arange(len(block) - 1))
            refuse_twice(seen.add(ready.query_ids), name)
            yield ready
        held = block.select([len(block) - 1])
    if held is not None:
        refuse_twice(seen.add(held.query_ids), name)
        yield held


def gathered(blocks: Iterable[Dataset], least_bytes: int) -> Iterator[Dataset]:
    """Join neighbouring blocks with the same features until they have so many bytes of features.

    Text comes in small blocks that suit a processor's cache; files and rankers want larger ones.
    """
    waiting: list[Dataset] = []
    size = 0
    for block in filter(len, blocks):  # a part of a split may have no query
        if waiting and (size >= least_bytes or waiting[0].feature_names != block.feature_names):
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(block)
        size += block.features.nbytes
    if waiting:
        yield _joined(waiting)


def _joined(blocks: list[Dataset]) -> Dataset:
    if len(blocks) == 1:
        return blocks[0]
    return Dataset(**join_rows(blocks), feature_names=blocks[0].feature_names)


def refuse_twice(query: str | None, name: str) -> None:
    """Raise the error of a query id that came before, if there is one."""
    if query is not None:
        raise DataError(
            f"the rows of query {query!r} lie apart",
            path=name,
            hint="Sort the file by query, or read it whole in memory (--whole).",
        )


def refuse_apart(grouping: Grouping, name: str) -> Grouping:
    """Raise the error of a query whose rows lie apart within a block, if there is one."""
    if grouping.order is not None:
        moved = int(np.argmax(grouping.order != np.arange(len(grouping.order))))
        query = int(np.searchsorted(grouping.offsets, moved, side="right")) - 1
        refuse_twice(grouping.query_ids[query].as_py(), name)
    return grouping


def widen(data: Dataset, names: tuple[str, ...]) -> Dataset:
    """Add columns of zeros for the names that a data set, which has the first ones, lacks."""
    missing = len(names) - len(data.feature_names)
    if missing <= 0:
        return data
    features = np.pad(data.features, ((0, 0), (0, missing)))
    return replace(data, features=features, feature_names=names)


def _append(held: Dataset, block: Dataset) -> Dataset:
    """Put one query before a block, joined with the block's first query if they are one."""
    names = max(held.feature_names, block.feature_names, key=len)
    held, block = widen(held, names), widen(block, names)
    fields = join_rows([held, block])
    if held.query_ids[0] == block.query_ids[0]:
        fields["query_ids"] = block.query_ids
        fields["offsets"] = np.delete(fields["offsets"], 1)
    return Dataset(**fields, feature_names=names)

"""Ids in compiled loops: their bytes, their hashes, and looking documents up by id."""

from __future__ import annotations

import numpy as np

from podium.data.grouping import Strings
from podium.kernels import Bytes, Ints, kernel
from podium.threads import over_queries


def match_rows(wanted: Strings, offsets: Ints, given: Strings, given_offsets: Ints) -> Ints:
    """For each wanted row, the first given row of the same query with the same id, or -1.

    Example:
        >>> import pyarrow as pa
        >>> ids = lambda *names: pa.array(names, pa.large_string())
        >>> match_rows(
        ...     ids("a", "b", "a"), np.array([0, 2, 3]), ids("b", "c"), np.array([0, 1, 2])
        ... ).tolist()
        [-1, 0, -1]
    """
    matches = np.full(len(wanted), -1, np.int64)
    starts, text = string_buffers(wanted)
    given_starts, given_text = string_buffers(given)
    over_queries(
        lambda first, last: _match(
            starts, text, offsets, given_starts, given_text, given_offsets, matches, first, last
        ),
        offsets,
    )
    return matches


def string_buffers(strings: Strings) -> tuple[Ints, Bytes]:
    """Where each string begins, and the bytes of all, as NumPy arrays without a copy."""
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(1, np.uint8)
    _, starts, text = strings.buffers()
    begins = np.frombuffer(starts, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    # Kernels are compiled for writable arrays too unless told apart, so none may be empty.
    return begins, np.frombuffer(text, np.uint8) if text.size else np.zeros(1, np.uint8)


def query_keys(ids: Strings) -> Ints:
    """A number for each id that depends on nothing but the id (64-bit FNV-1a).

    Example:
        >>> import pyarrow as pa
        >>> query_keys(pa.array(["a", "b"], pa.large_string())).tolist()
        [-5808556873153909620, -5808553574619024987]
    """
    keys = np.empty(len(ids), np.int64)
    _hash_all(*string_buffers(ids), keys)
    return keys


@kernel
def _hash_all(starts: Ints, text: Bytes, keys: Ints) -> None:
    for row in range(len(keys)):
        keys[row] = np.int64(hash_bytes(text, starts[row], starts[row + 1]))


@kernel
def hash_bytes(text: Bytes, begin: int, end: int) -> np.uint64:
    """64-bit FNV-1a."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(begin, end):
        value = (value ^ np.uint64(text[place])) * np.uint64(0x100000001B3)
    return value


@kernel
def _match(
    starts: Ints,
    text: Bytes,
    offsets: Ints,
    given_starts: Ints,
    given_text: Bytes,
    given_offsets: Ints,
    matches: Ints,
    first: int,
    last: int,
) -> None:
    largest = 1
    for query in range(first, last):
        largest = max(largest, given_offsets[query + 1] - given_offsets[query])
    size = 2
    while size < 2 * largest:
        size *= 2
    table = np.empty(size, np.int64)
    for query in range(first, last):
        begin, end = given_offsets[query], given_offsets[query + 1]
        slots = 2
        while slots < 2 * (end - begin):
            slots *= 2
        mask = np.uint64(slots - 1)
        table[:slots] = -1
        for row in range(begin, end):
            slot = hash_bytes(given_text, given_starts[row], given_starts[row + 1]) & mask
            while table[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            table[slot] = row
        for row in range(offsets[query], offsets[query + 1]):
            at, stop = starts[row], starts[row + 1]
            slot = hash_bytes(text, at, stop) & mask
            while table[slot] >= 0:
                other = given_starts[table[slot]]
                same = given_starts[table[slot] + 1] - other == stop - at
                place = 0
                while same and place < stop - at:
                    same = text[at + place] == given_text[other + place]
                    place += 1
                if same:
                    matches[row] = table[slot]
                    break
                slot = (slot + np.uint64(1)) & mask

"""String ids in compiled loops: their bytes, hashes, and document lookup by id."""

from __future__ import annotations

import numpy as np

from podium.data.grouping import Strings
from podium.kernels import Bytes, Ints, inner, lazy_kernel
from podium.threads import over_queries


def match_rows(
    ids: Strings, offsets: Ints, reference_ids: Strings, reference_offsets: Ints
) -> Ints:
    """For each row, find the first reference row of the same query with the same id, or -1.

    Example:
        >>> import pyarrow as pa
        >>> ids = lambda *names: pa.array(names, pa.large_string())
        >>> match_rows(
        ...     ids("a", "b", "a"), np.array([0, 2, 3]), ids("b", "c"), np.array([0, 1, 2])
        ... ).tolist()
        [-1, 0, -1]
    """
    matches = np.full(len(ids), -1, np.int64)
    starts, text = string_buffers(ids)
    reference_starts, reference_text = string_buffers(reference_ids)
    over_queries(
        lambda first, last: _match(
            starts,
            text,
            offsets,
            reference_starts,
            reference_text,
            reference_offsets,
            matches,
            first,
            last,
        ),
        offsets,
    )
    return matches


def string_buffers(strings: Strings) -> tuple[Ints, Bytes]:
    """Return the start of each string and the bytes of all strings, as NumPy views."""
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(1, np.uint8)
    _, starts, text = strings.buffers()
    begins = np.frombuffer(starts, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    # Never an empty buffer: its read-only flag differs, and kernels would be compiled again.
    return begins, np.frombuffer(text, np.uint8) if text.size else np.zeros(1, np.uint8)


def query_keys(ids: Strings) -> Ints:
    """Hash each id to a 64-bit integer that depends on the id alone (FNV-1a).

    Example:
        >>> import pyarrow as pa
        >>> query_keys(pa.array(["a", "b"], pa.large_string())).tolist()
        [-5808556873153909620, -5808553574619024987]
    """
    keys = np.empty(len(ids), np.int64)
    _hash_all(*string_buffers(ids), keys)
    return keys


@lazy_kernel
def _hash_all(starts: Ints, text: Bytes, keys: Ints) -> None:
    for row in range(len(keys)):
        keys[row] = np.int64(hash_bytes(text, starts[row], starts[row + 1]))


@inner
def hash_bytes(text: Bytes, begin: int, end: int) -> np.uint64:
    """64-bit FNV-1a."""
    value = np.uint64(0xCBF29CE484222325)
    for index in range(begin, end):
        value = (value ^ np.uint64(text[index])) * np.uint64(0x100000001B3)
    return value


@lazy_kernel
def _match(
    starts: Ints,
    text: Bytes,
    offsets: Ints,
    reference_starts: Ints,
    reference_text: Bytes,
    reference_offsets: Ints,
    matches: Ints,
    first: int,
    last: int,
) -> None:
    largest = 1
    for query in range(first, last):
        largest = max(largest, reference_offsets[query + 1] - reference_offsets[query])
    size = 2
    while size < 2 * largest:
        size *= 2
    table = np.empty(size, np.int64)
    for query in range(first, last):
        begin, end = reference_offsets[query], reference_offsets[query + 1]
        slots = 2
        while slots < 2 * (end - begin):
            slots *= 2
        mask = np.uint64(slots - 1)
        table[:slots] = -1
        for row in range(begin, end):
            slot = (
                hash_bytes(reference_text, reference_starts[row], reference_starts[row + 1]) & mask
            )
            while table[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            table[slot] = row
        for row in range(offsets[query], offsets[query + 1]):
            at, stop = starts[row], starts[row + 1]
            slot = hash_bytes(text, at, stop) & mask
            while table[slot] >= 0:
                other = reference_starts[table[slot]]
                same = reference_starts[table[slot] + 1] - other == stop - at
                index = 0
                while same and index < stop - at:
                    same = text[at + index] == reference_text[other + index]
                    index += 1
                if same:
                    matches[row] = table[slot]
                    break
                slot = (slot + np.uint64(1)) & mask

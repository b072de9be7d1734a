"""Grades, full orders and top-k orders, all represented as label arrays.

A larger label is better and equal labels mean that no preference is known. A top-k order gives
its best document label k, the next k - 1, down to 1, and 0 to every document below; a full order
of n documents gives n down to 1. Whatever understands graded labels understands these.

Where labels are equal and an order is needed, ties are broken at random by a seed. The result
depends only on the seed, the query's key and the document's position in the query, so a data set
gets the same labels in one piece, in shards, or with its queries in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from podium.data.grouping import checked_offsets
from podium.data.seeds import checked_seed, hashed_numbers
from podium.errors import ArgumentError, DataError
from podium.kernels import Floats, Ints, kernel
from podium.threads import over_queries

LabelKind = Literal["grades", "full order", "top-k order", "blank"]


def to_top_k(
    labels: Floats, offsets: Ints, k: int, *, random_state: int = 0, keys: Ints | None = None
) -> Floats:
    """Keep the order of each query's k best documents and make the rest equal.

    Equal labels are put in a random order consistent with the grades (Niu et al. 2012, 4.2.1).

    Args:
        labels: A label for each row; larger is better.
        offsets: Where each query's rows begin, and the number of rows last.
        k: How many documents of a query to keep in order.
        random_state: Decides the order of documents with equal labels.
        keys: An integer per query that tie-breaking depends on, by default its position;
            ``Dataset.top_k`` passes the hash of its id.

    Example:
        >>> to_top_k(np.float32([0, 2, 1, 0]), np.array([0, 4]), k=2).tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    if k < 1:
        raise ArgumentError(f"k is {k}", hint="Keep at least one document.")
    return _ordered(labels, offsets, k, random_state, keys)


def to_full_order(
    labels: Floats, offsets: Ints, *, random_state: int = 0, keys: Ints | None = None
) -> Floats:
    """Order every document of a query: labels n for the best down to 1, ties broken by the seed.

    Example:
        >>> to_full_order(np.float32([0, 4, 1]), np.array([0, 3])).tolist()
        [1.0, 3.0, 2.0]
    """
    return _ordered(labels, offsets, 0, random_state, keys)


def from_ranks(ranks: Ints, *, k: int) -> Floats:
    """Turn ranks (1 for the best) into top-k labels ``k + 1 - rank``, 0 below rank k.

    Example:
        >>> from_ranks(np.array([3, 1, 2]), k=2).tolist()
        [0.0, 2.0, 1.0]
    """
    if len(ranks) and int(np.min(ranks)) < 1:
        raise DataError("a rank is below 1", hint="The best document has rank 1.")
    return np.maximum(k + 1 - np.asarray(ranks), 0).astype(np.float32)


def label_kind(labels: Floats, offsets: Ints) -> LabelKind:
    """Classify labels; they are an order only if every query's labels form one.

    Example:
        >>> label_kind(np.float32([3, 0, 2, 1, 0]), np.array([0, 5]))
        'top-k order'
    """
    return label_shape(labels, offsets).kind


@dataclass(frozen=True)
class LabelShape:
    """What decides the kind of labels; the shapes of parts combine with ``|``.

    Attributes:
        blank: Whether all labels are 0.
        full: Whether every query's labels are n..1.
        top: Whether every query's labels are k..1 above zeros, for some k.
        highest: The highest label.
    """

    blank: bool = True
    full: bool = True
    top: bool = True
    highest: float = -np.inf

    def __or__(self, other: LabelShape) -> LabelShape:
        return LabelShape(
            self.blank and other.blank,
            self.full and other.full,
            self.top and other.top,
            max(self.highest, other.highest),
        )

    @property
    def kind(self) -> LabelKind:
        """The kind of labels of this shape."""
        if self.blank:
            return "blank"
        if self.full:
            return "full order"
        return "top-k order" if self.top and self.highest > 1 else "grades"


def label_shape(labels: Floats, offsets: Ints) -> LabelShape:
    """Compute the shape of labels."""
    offsets = checked_offsets(offsets, len(labels))
    if not len(labels):
        return LabelShape()
    parts = over_queries(lambda first, last: _orders(labels, offsets, first, last), offsets)
    full, top = (all(flags) for flags in zip(*parts, strict=True))
    return LabelShape(not np.any(labels), full, top, float(labels.max()))


def _ordered(labels: Floats, offsets: Ints, k: int, random_state: int, keys: Ints | None) -> Floats:
    labels = np.ascontiguousarray(labels, np.float32)
    if np.isnan(labels).any():
        raise DataError("a label is NaN", hint="Give unjudged documents label 0, or drop them.")
    offsets = checked_offsets(offsets, len(labels))
    if keys is None:
        keys = np.arange(len(offsets) - 1, dtype=np.int64)
    if len(keys) != len(offsets) - 1:
        raise DataError(
            f"{len(keys)} keys for {len(offsets) - 1} queries", hint="Give one per query."
        )
    result = np.zeros(len(labels), np.float32)
    start = checked_seed(random_state)

    def task(first: int, last: int) -> None:
        tie_breakers = _tie_breakers(offsets, keys, start, first, last)
        _order_queries(labels, offsets, tie_breakers, k, result, first, last)

    over_queries(task, offsets)
    return result


def _tie_breakers(
    offsets: Ints, keys: Ints, random_state: int, first: int, last: int
) -> NDArray[np.uint64]:
    """A random number for each row of some queries, by which ties are broken."""
    return np.concatenate(
        [
            hashed_numbers(int(offsets[query + 1] - offsets[query]), random_state, int(keys[query]))
            for query in range(first, last)
        ]
        or [np.empty(0, np.uint64)]
    )


@kernel
def _order_queries(
    labels: Floats,
    offsets: Ints,
    tie_breakers: NDArray[np.uint64],
    k: int,
    result: Floats,
    first: int,
    last: int,
) -> None:
    for query in range(first, last):
        begin, end = offsets[query], offsets[query + 1]
        size = end - begin
        order = np.argsort(
            tie_breakers[begin - offsets[first] : end - offsets[first]], kind="mergesort"
        )
        best = order[np.argsort(-labels[begin:end][order], kind="mergesort")]
        top = size if k == 0 else k
        for position in range(min(top, size)):
            result[begin + best[position]] = top - position


@kernel
def _orders(labels: Floats, offsets: Ints, first: int, last: int) -> tuple[bool, bool]:
    """Whether the labels of every query are n..1, and whether they are k..1 above zeros."""
    full = top = True
    for query in range(first, last):
        ranked = -np.sort(-labels[offsets[query] : offsets[query + 1]])
        size = len(ranked)
        if size == 0:
            continue
        highest = ranked[0]
        top = top and highest == np.floor(highest)
        for position in range(size):
            full = full and ranked[position] == size - position
            top = top and ranked[position] == max(highest - position, np.float32(0))
    return full, top

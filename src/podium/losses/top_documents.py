"""The top-k documents of many queries, as all top-k losses define them."""

from __future__ import annotations

import numpy as np

from podium.kernels import Doubles, Ints, kernel
from podium.losses.compiled import top
from podium.losses.orders import top_rows


def top_documents(labels: Doubles, offsets: Ints, k: int | None) -> tuple[Ints, Ints]:
    """Return the rows of each query's top k, best first, and the offsets of the queries.

    Documents tied with the k-th are included, those with the query's lowest label are not.

    Example:
        >>> labels, offsets = np.array([0.0, 2.0, 1.0, 1.0, 1.0]), np.array([0, 3, 5])
        >>> rows, starts = top_documents(labels, offsets, k=1)
        >>> rows.tolist(), starts.tolist()
        ([1], [0, 1, 1])
    """
    chosen, starts = np.empty(len(labels), np.int64), np.empty_like(offsets)
    _choose(labels, offsets, top(k), chosen, starts)
    return chosen[: starts[-1]], starts


@kernel
def _choose(labels: Doubles, offsets: Ints, k: int, chosen: Ints, starts: Ints) -> None:
    total = 0
    for query in range(len(offsets) - 1):
        begin, end = offsets[query], offsets[query + 1]
        starts[query] = total
        if end > begin:
            count = top_rows(labels[begin:end], k, chosen[total:])
            for index in range(total, total + count):
                chosen[index] += begin
            total += count
    starts[-1] = total

"""The labeling strategy of Niu et al. 2012, Algorithm 1: a min-heap of the k best so far."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from podium.judging.algorithms.selection import Item, Pair, Selection
from podium.judging.entries import Outcome


def heap(items: Sequence[Item], k: int) -> Selection[Item]:
    """Keep the k best items so far in a heap with the least relevant one at its root.

    It asks one pair at a time. The paper leaves open how the heap is updated: here, as in
    Python's ``heapq``, the gap sinks to the bottom and the item rises from there, which takes
    fewer judgments than the textbook's way.

    Args:
        items: In the order in which they are taken; the paper takes them at random.
        k: How many to put in order.

    Example:
        >>> selection = heap(["a", "b", "c"], 1)
        >>> next(selection)
        [Pair(left='b', right='a')]
        >>> selection.send([Outcome.LEFT])  # b is better than a
        [Pair(left='c', right='b')]
    """
    kept = list(items[:k])  # line 3
    for index in reversed(range(len(kept) // 2)):  # line 4
        yield from _sift(kept, index)
    for item in items[k:]:  # line 5
        (outcome,) = yield [Pair(item, kept[0])]  # line 6
        if outcome == Outcome.LEFT:  # line 7
            kept[0] = item  # line 8
            yield from _sift(kept, 0)  # line 9
    top = []
    while kept:  # line 12
        top.append(kept[0])
        last = kept.pop()
        if kept:
            kept[0] = last
            yield from _sift(kept, 0)
    return top[::-1]


def _sift(kept: list[Item], start: int) -> Generator[list[Pair[Item]], list[Outcome], None]:
    """Make a heap below a position again, where the item there may be out of order."""
    item, index = kept[start], start
    child = 2 * index + 1
    while child < len(kept):
        if child + 1 < len(kept):
            (outcome,) = yield [Pair(kept[child], kept[child + 1])]
            if outcome == Outcome.LEFT:
                child += 1  # the less relevant child moves up
        kept[index] = kept[child]
        index, child = child, 2 * child + 1
    while index > start:
        parent = (index - 1) // 2
        (outcome,) = yield [Pair(item, kept[parent])]
        if outcome != Outcome.RIGHT:
            break
        kept[index], index = kept[parent], parent
    kept[index] = item

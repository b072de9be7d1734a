"""Insertion into the sorted list of the k best so far."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from podium.judging.algorithms.selection import Item, Pair, Selection
from podium.judging.entries import Outcome


def insertion(items: Sequence[Item], k: int) -> Selection[Item]:
    """Put each item into the sorted list of the best so far, by binary search.

    Once the list is full an item first meets the last of it, and is out if it does not win.

    Example:
        >>> from podium.judging.algorithms.selection import run_selection
        >>> def agree(left, right):
        ...     return Outcome.LEFT if left < right else Outcome.RIGHT
        >>> run_selection(insertion, 6, 2, agree)
        Selected(top=[0, 1], judgments=5, rounds=5)
    """
    top: list[Item] = []
    for item in items:
        end = len(top)
        if end == k:
            (outcome,) = yield [Pair(item, top[-1])]
            if outcome != Outcome.LEFT:
                continue
            end -= 1
        top.insert((yield from _bisect(item, top, 0, end)), item)
        del top[k:]
    return top


def galloping(items: Sequence[Item], k: int) -> Selection[Item]:
    """Put each item into the sorted list of the best so far, by steps of 1, 2, 4, … from its end.

    Items that come in nearly their right order take little more than one judgment each; items in
    random order take more than with binary search.

    Example:
        >>> selection = galloping(["a", "b", "c"], 2)
        >>> next(selection)
        [Pair(left='b', right='a')]
        >>> selection.send([Outcome.RIGHT])  # as expected: c is compared with the last
        [Pair(left='c', right='b')]
    """
    top: list[Item] = []
    for item in items:
        begin, end, step = 0, len(top), 1
        while end > 0:
            index = max(len(top) - step, 0)
            (outcome,) = yield [Pair(item, top[index])]
            if outcome != Outcome.LEFT:
                begin = index + 1
                break
            end, step = index, 2 * step
        if end < k:
            top.insert((yield from _bisect(item, top, begin, end)), item)
            del top[k:]
    return top


def _bisect(
    item: Item, top: list[Item], begin: int, end: int
) -> Generator[list[Pair[Item]], list[Outcome], int]:
    """The position of an item between two positions of a sorted list; it goes behind its equals."""
    while begin < end:
        middle = (begin + end) // 2
        (outcome,) = yield [Pair(item, top[middle])]
        if outcome == Outcome.LEFT:
            end = middle
        else:
            begin = middle + 1
    return begin

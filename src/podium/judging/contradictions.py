"""Strict verdicts that go round in a loop, and which of them to ask again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic

from podium.judging.algorithms.selection import Item, Pair
from podium.judging.transitive_closure import KnownOutcomes


@dataclass(frozen=True)
class Contradiction(Generic[Item]):
    """Items of which each is above all others and below them, by some chain of verdicts.

    Attributes:
        items: All items that are caught in loops with one another.
        loop: The shortest loop: each was judged better than the next, and the last than the first.
        ask_again: The pair of the loop whose verdict, if taken back, frees the most items; a
            session gives it with the sides on which people saw it.
    """

    items: tuple[Item, ...]
    loop: tuple[Item, ...]
    ask_again: Pair[Item]


def contradictions(known: KnownOutcomes) -> list[Contradiction[int]]:
    """Every group of items that strict verdicts catch in loops.

    Example:
        >>> from podium.judging import Outcome
        >>> known = KnownOutcomes(4)
        >>> for better, worse in [(0, 1), (1, 2), (2, 0), (0, 3)]:
        ...     known.add(better, worse, Outcome.LEFT)
        >>> contradictions(known)[0].loop
        (0, 1, 2)
    """
    left = {item for item, below in enumerate(known.below) if below >> item & 1}
    results = []
    while left:
        first = min(left)
        group = {
            item for item in left if known.is_above(first, item) and known.is_above(item, first)
        }
        left -= group
        # Sorted, so that the loop depends on the verdicts and not on the order they came in.
        above = {item: sorted(group & set(known.beaten_by[item])) for item in group}
        loop = _shortest_loop(above)
        pairs = map(Pair, loop, loop[1:] + loop[:1])
        ask_again = min(pairs, key=lambda pair: _caught_without(above, pair))
        results.append(Contradiction(tuple(sorted(group)), loop, ask_again))
    return results


def _shortest_loop(above: dict[int, list[int]]) -> tuple[int, ...]:
    """The shortest loop, best first from its smallest item, of a strongly connected graph."""
    best: list[int] = []
    for start in sorted(above):
        path = _shortest_path(above, start, longest=len(best) - 1 if best else len(above))
        if path is not None:
            best = path
    turn = best.index(min(best))
    return tuple(best[turn:] + best[:turn])


def _shortest_path(above: dict[int, list[int]], start: int, longest: int) -> list[int] | None:
    """The items of the shortest way up from an item back to itself, best first."""
    came_from: dict[int, int] = {}
    waiting = deque([(start, 1)])
    while waiting:
        item, length = waiting.popleft()
        if length > longest:
            return None
        for better in above[item]:
            if better == start:
                path = [item]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path
            if better not in came_from:
                came_from[better] = item
                waiting.append((better, length + 1))
    return None


def _caught_without(above: dict[int, list[int]], dropped: Pair[int]) -> int:
    """How many items are still caught in loops once a verdict is taken away."""
    kept = {
        item: [who for who in better if (who, item) != (dropped.left, dropped.right)]
        for item, better in above.items()
    }
    reachable = {item: _reachable(kept, item) for item in kept}
    return sum(item in reachable[item] for item in kept)


def _reachable(above: dict[int, list[int]], start: int) -> set[int]:
    seen: set[int] = set()
    waiting: list[int] = [start]
    while waiting:
        news = set(above[waiting.pop()]) - seen
        seen |= news
        waiting += news
    return seen

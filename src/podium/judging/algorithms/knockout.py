"""Knock-out: the weakest meet, losers wait under their winner, and the best is taken out.

Each item that nobody has beaten is the root of a tree of items that it beat, directly or not.
Two roots meet and the loser goes under the winner, until one root is left: the best item. Taking
it out makes roots of those under it, and the rest is replayed among them. A match costs a later
one only if its winner comes out on top, because then the loser is a root again. So those meet
first that are least likely to: the weakest. What weak means is what makes the algorithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from podium.judging.algorithms.prior_beliefs import Beliefs
from podium.judging.algorithms.selection import Item, Pair, Selection
from podium.judging.entries import Outcome

Match: TypeAlias = tuple[int, int, bool]
"""Who won, who lost, and whether it was a tie that was broken."""


class Strength(Protocol):
    """How strong the roots are taken to be; items are called by their position in the list."""

    def meetings(self, roots: list[int], played: list[Match]) -> list[tuple[int, int]]:
        """The next matches: the two weakest roots, and those that need not wait for them.

        In each match the item that comes first in the list is named first.

        Args:
            roots: The items that nobody has beaten.
            played: The matches since the last call, to learn from.
        """


def knock_out(items: Sequence[Item], k: int, strength: Strength) -> Selection[Item]:
    """Select the best k by matches between the weakest roots.

    A tie is won by the item that comes first in the list.
    """
    under: list[list[int]] = [[] for _ in items]
    roots = list(range(len(items)))
    top: list[Item] = []
    played: list[Match] = []
    while roots and len(top) < k:
        while len(roots) > 1:
            pairs = strength.meetings(roots, played)
            outcomes = yield [Pair(items[left], items[right]) for left, right in pairs]
            played = []
            for (left, right), outcome in zip(pairs, outcomes, strict=True):
                won, lost = (right, left) if outcome == Outcome.RIGHT else (left, right)
                under[won].append(lost)
                played.append((won, lost, outcome == Outcome.TIE))
            losers = {lost for _, lost, _ in played}
            roots = [root for root in roots if root not in losers]
        best = roots.pop()
        top.append(items[best])
        roots = under[best]
    return top


class TreeSizes:
    """The more items are under a root, the stronger it is: all that is known without a prior."""

    def __init__(self, items: int) -> None:
        self._sizes = [1] * items

    def meetings(self, roots: list[int], played: list[Match]) -> list[tuple[int, int]]:
        """The smallest trees, as long as no winner among them would be smaller than the next."""
        sizes = self._sizes
        for won, lost, _ in played:
            sizes[won] += sizes[lost]
        ranked = sorted(roots, key=sizes.__getitem__)
        first_winner = sizes[ranked[0]] + sizes[ranked[1]]
        return [
            (min(one, other), max(one, other))
            for one, other in zip(ranked[::2], ranked[1::2], strict=False)
            if sizes[other] <= first_winner
        ]


def tournament(items: Sequence[Item], k: int) -> Selection[Item]:
    """Knock-out with replay in which the smallest trees meet first.

    Its mean number of judgments is within two of the best possible worst case, whatever order the
    items come in, and half of the pairs can be judged at once.

    Example:
        >>> selection = tournament("abcdef", 2)
        >>> next(selection)
        [Pair(left='a', right='b'), Pair(left='c', right='d'), Pair(left='e', right='f')]
    """
    return knock_out(items, k, TreeSizes(len(items)))


def adaptive(items: Sequence[Item], k: int) -> Selection[Item]:
    """Knock-out in which those meet first that are believed weakest.

    Items come best first by an existing ranking, or at random; how good the ranking is shows in
    the verdicts. If it is right, each item meets its neighbor on the way from the bottom to the
    top and n - 1 judgments confirm it. If it says nothing, strength is what an item has beaten,
    which makes this `tournament`. In between, trust moves with every verdict.

    Example:
        >>> from podium.judging.algorithms.selection import run_selection
        >>> def agree(left, right):
        ...     return Outcome.LEFT if left < right else Outcome.RIGHT
        >>> run_selection(adaptive, 50, 10, agree).judgments
        49
    """
    return knock_out(items, k, Beliefs(len(items), k))

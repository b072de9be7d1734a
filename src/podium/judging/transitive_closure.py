"""What verdicts imply: strict preferences are transitive, ties are not.

In crowds only strict preferences are transitive (Hui and Berberich), so a tie answers for its own
pair and for no other. Where strict verdicts contradict one another they imply nothing about the
items of the loop, and a pair's own verdict always comes first; so what is known depends on the
verdicts alone and not on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.judging.entries import Outcome


class KnownOutcomes:
    """The outcomes of pairs of items 0, 1, …, judged or implied.

    ``below[item]`` has a bit for every item that is known to be worse. A thousand items fit in
    125 bytes each, so to tell whether a pair is implied is to look at one bit.

    Example:
        >>> known = KnownOutcomes(3)
        >>> known.add(0, 1, Outcome.LEFT)
        >>> known.add(2, 1, Outcome.RIGHT)
        >>> known.outcome(2, 0)
        <Outcome.RIGHT: -1>
    """

    def __init__(self, items: int) -> None:
        self.judged: dict[tuple[int, int], Outcome] = {}
        self.below = [0] * items
        self.beaten_by: list[list[int]] = [[] for _ in range(items)]

    def copy(self) -> KnownOutcomes:
        """Return a copy that can be extended without changing this."""
        other = KnownOutcomes(0)
        other.judged = dict(self.judged)
        other.below = list(self.below)
        other.beaten_by = [list(winners) for winners in self.beaten_by]
        return other

    def add_all(self, outcomes: Iterable[tuple[tuple[int, int], Outcome]]) -> None:
        """Take the outcomes of many pairs at once, before any other: quicker than one by one."""
        beats: list[list[int]] = [[] for _ in self.below]
        for (left, right), outcome in outcomes:
            self.judged[left, right] = outcome
            self.judged[right, left] = outcome.flipped
            if outcome is Outcome.LEFT:
                beats[left].append(right)
                self.beaten_by[right].append(left)
            elif outcome is Outcome.RIGHT:
                beats[right].append(left)
                self.beaten_by[left].append(right)
        # From the bottom up each item needs a single look at those it beats.
        to_come = [len(losers) for losers in beats]
        ready = [item for item, count in enumerate(to_come) if not count]
        while ready:
            item = ready.pop()
            for loser in beats[item]:
                self.below[item] |= self.below[loser] | 1 << loser
            for winner in self.beaten_by[item]:
                to_come[winner] -= 1
                if not to_come[winner]:
                    ready.append(winner)
        for item, count in enumerate(to_come):
            if count:  # it is caught in a loop, or above one
                for loser in beats[item]:
                    self._spread(item, self.below[loser] | 1 << loser)

    def add(self, left: int, right: int, outcome: Outcome) -> None:
        """Take the outcome of a pair that has none yet."""
        self.judged[left, right] = outcome
        self.judged[right, left] = outcome.flipped
        if outcome is Outcome.LEFT:
            self._rank(left, right)
        elif outcome is Outcome.RIGHT:
            self._rank(right, left)

    def outcome(self, left: int, right: int) -> Outcome | None:
        """The outcome of a pair if it was judged or is implied; else None."""
        outcome = self.judged.get((left, right))
        if outcome is not None:
            return outcome
        better = self.below[left] >> right & 1
        if better == self.below[right] >> left & 1:  # neither, or both by a cycle
            return None
        return Outcome.LEFT if better else Outcome.RIGHT

    def is_above(self, item: int, other: int) -> bool:
        """Whether some chain of strict outcomes leads down from an item to another."""
        return bool(self.below[item] >> other & 1)

    def _rank(self, better: int, worse: int) -> None:
        self.beaten_by[worse].append(better)
        self._spread(better, self.below[worse] | 1 << worse)

    def _spread(self, item: int, news: int) -> None:
        """Let an item and all above it know of items below."""
        waiting = [item]
        while waiting:
            item = waiting.pop()
            # An item above another knows all that the lower one knows, so the walk upwards ends
            # where nothing is new.
            if news & ~self.below[item]:
                self.below[item] |= news
                waiting += self.beaten_by[item]

"""Summary of the active entries of a log: votes, outcomes, marks and grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.judging.assignment import Overlap
from podium.judging.entries import Entry, Grade, Mark, Outcome, Verdict, majority
from podium.judging.transitive_closure import KnownOutcomes


class LogSummary:
    """A summary of the log, with items as indices in the session's list.

    Args:
        index_of: The index of each item in the session.
        overlap: Which pairs count only when several people have judged them.

    Attributes:
        known: The outcomes of pairs, judged or implied.
        votes: For each pair, lower index first, each person's verdict.
        bad: The items that were marked as bad.
        grades: To each item, the grade that each person gave.
    """

    def __init__(self, index_of: Mapping[str, int], overlap: Overlap | None) -> None:
        self.known = KnownOutcomes(len(index_of))
        self.votes: dict[tuple[int, int], dict[str, Outcome]] = {}
        self.bad: set[int] = set()
        self.grades: dict[int, dict[str, int]] = {}
        self._index_of = index_of
        self._overlap = overlap
        self._names = list(index_of)

    def take_all(self, entries: Iterable[Entry]) -> None:
        """Take all entries that stand, in order, before any other."""
        for entry in entries:
            if isinstance(entry, Verdict):
                self._vote(entry)
            else:
                self.take(entry)
        decided = [
            (pair, outcome)
            for pair, votes in self.votes.items()
            if (outcome := self._decided(pair, votes)) is not None
        ]
        self.known.add_all(decided)

    def take(self, entry: Entry) -> bool:
        """Take one more entry; returns whether it leaves all that was known as it was.

        Where it does not, everyone who relied on it starts again, and this record
        has to be made again from the log.
        """
        if isinstance(entry, Mark):
            self.bad.add(self._index_of[entry.item])
            return False
        if isinstance(entry, Grade):
            self.grades.setdefault(self._index_of[entry.item], {})[entry.assessor] = entry.grade
            return True
        if not isinstance(entry, Verdict):
            return True
        pair = self._vote(entry)
        outcome = self._decided(pair, self.votes[pair])
        if outcome is None:
            return True
        if pair in self.known.judged:
            return outcome is self.known.judged[pair]
        before = self.known.outcome(*pair)
        self.known.add(*pair, outcome)
        return before is None or before is outcome

    def answer(self, known: KnownOutcomes, left: int, right: int) -> Outcome | None:
        """A pair's outcome, if marks or other judgments imply it: bad items lose to all others."""
        if self.bad and (left in self.bad or right in self.bad):
            if left not in self.bad:
                return Outcome.LEFT
            return Outcome.TIE if right in self.bad else Outcome.RIGHT
        return known.outcome(left, right)

    def _vote(self, verdict: Verdict) -> tuple[int, int]:
        """Count a verdict, which replaces an earlier one of the same person on the same pair."""
        left, right = self._index_of[verdict.left], self._index_of[verdict.right]
        pair, outcome = (left, right), verdict.outcome
        if left > right:
            pair, outcome = (right, left), outcome.flipped
        votes = self.votes.get(pair)
        if votes is None:
            self.votes[pair] = {verdict.assessor: outcome}
        else:
            votes[verdict.assessor] = outcome
        return pair

    def _decided(self, pair: tuple[int, int], votes: dict[str, Outcome]) -> Outcome | None:
        if self._overlap is not None:
            left, right = pair
            if len(votes) < self._overlap.needed(self._names[left], self._names[right]):
                return None
        return next(iter(votes.values())) if len(votes) == 1 else majority(votes.values())

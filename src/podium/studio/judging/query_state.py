"""A query's state, worked out from its log: what can be asked now, of whom, and what came of it.

A board knows no database. It takes the log's entries in order, whatever they are, and passes on
to `podium.judging` those that count; checks (repeated and gold pairs) and skips stay with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.judging import Undo
from podium.studio.judging.answers import AnswerEntry
from podium.studio.judging.modes import NO_ITEM, JudgingMode, JudgingTask, QueryLogEntry
from podium.studio.store.enums import Kind, Purpose


@dataclass(frozen=True, slots=True)
class Document:
    """What a screen must know of a document before it asks for its text."""

    reference: int
    item: str
    title: str
    url: str
    length: int
    markup: int
    """The length of its HTML; 0 if it is plain text."""


@dataclass
class _AssessorState:
    """What a board remembers of someone."""

    answers: list[QueryLogEntry] = field(default_factory=list)
    """What they said and did not take back, oldest first."""
    skipped: set[tuple[int, int]] = field(default_factory=set)


class QueryState:
    """The state of a query.

    Args:
        mode: The way it is judged.
        documents: What is judged, by place.
        rankings: The places in each ranking, where those are compared.
        log: What was said so far.

    Attributes:
        mode: The way it is judged.
        documents: What is judged, by place.
        seen: How many entries of the log it has taken.
        judgments: How many answers stand: neither skipped, nor taken back, nor too late to count.
    """

    def __init__(
        self,
        mode: JudgingMode,
        documents: Sequence[Document] = (),
        rankings: Sequence[Sequence[int]] = (),
        log: Iterable[QueryLogEntry] = (),
    ) -> None:
        self.mode = mode
        self.seen = 0
        self.judgments = 0
        self.documents = documents
        self._rankings = rankings
        self._indices: dict[int, int] = {}
        self._assessors: dict[int, _AssessorState] = {}
        self._offered: tuple[int, dict[tuple[int, int], int]] | None = None
        for entry in log:
            self.apply(entry)

    def apply(self, entry: QueryLogEntry) -> None:
        """Take the next entry of the log."""
        if entry.place != self.seen:
            raise AssertionError(f"entry {entry.place} came after {self.seen} others")
        self.seen += 1
        assessor = self._assessor(entry.user)
        if entry.kind is Kind.UNDO:
            self._apply_undo(entry)
            return
        self.judgments += entry.is_judgment and not self.answered(entry.user, entry.token)
        assessor.answers.append(entry)
        if entry.kind is Kind.SKIP:
            assessor.skipped.add(_pair(entry))
        elif entry.counts and entry.purpose is Purpose.MAIN:
            self._indices[entry.place] = self.mode.add(self.mode.entry(entry))

    def documents_shown(self, task: JudgingTask) -> list[list[tuple[int, Document]]]:
        """What a screen shows on each side: documents with their places."""
        sides = [side for side in (task.left, task.right) if side != NO_ITEM]
        places = [self._rankings[side] if self._rankings else (side,) for side in sides]
        return [[(place, self.documents[place]) for place in side] for side in places]

    def open(self, user: int | None) -> list[JudgingTask]:
        """What can be asked now, of a person or of anyone, to move the query on."""
        tasks = self.mode.tasks(None if user is None else str(user))
        skipped = self._assessors[user].skipped if user in self._assessors else ()
        return [task for task in tasks if task.pair not in skipped] if skipped else tasks

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.mode.tasks(None)

    def missing(self) -> dict[tuple[int, int], int]:
        """To each pair that can be asked now how many people must still judge it."""
        return {task.pair: self.mode.missing(task) for task in self.mode.tasks(None)}

    def opened_more(self, missing: dict[tuple[int, int], int], since: int) -> bool:
        """Whether more can be asked than when the log had so many entries.

        It knows only if it was told what was missing then; otherwise more may be open.

        Args:
            missing: What is missing now.
            since: The number of entries.
        """
        previous, self._offered = self._offered, (self.seen, missing)
        if previous is None or previous[0] != since:
            return True
        return any(count > previous[1].get(pair, 0) for pair, count in missing.items())

    def has_answered(self, user: int, pair: tuple[int, int], parts: Sequence[AnswerEntry]) -> bool:
        """Whether someone has answered this already, in another tab say.

        They have if they judged the same pair. Whoever marked a document as bad has judged its
        pairs too, but may still mark the other one.
        """
        entry = [
            each
            for each in self._assessor(user).answers
            if each.counts and each.purpose is Purpose.MAIN and each.kind is not Kind.SKIP
        ]
        if any(each.kind is not Kind.BAD and _pair(each) == pair for each in entry):
            return True
        bad = {each.left for each in entry if each.kind is Kind.BAD}
        return bool(bad) and all(
            part.left in bad if part.kind is Kind.BAD else not bad.isdisjoint(pair)
            for part in parts
        )

    def last_at(self, user: int) -> float:
        """When someone gave the last answer that they have not taken back; 0 if there is none."""
        return max((entry.at for entry in self._assessor(user).answers), default=0.0)

    def last_answer(self, user: int) -> list[QueryLogEntry]:
        """What someone said last and did not take back: all entries of that answer."""
        answers = self._assessor(user).answers
        if not answers:
            return []
        return [entry for entry in answers if entry.token == answers[-1].token]

    def answered(self, user: int, token: Any) -> list[QueryLogEntry]:
        """The entries of one answer of someone's, if they stand."""
        return [entry for entry in self._assessor(user).answers if entry.token == token]

    def repeatable(self, user: int, *, after: int) -> list[JudgingTask]:
        """Pairs that someone judged a while ago and once only, with their sides exchanged."""
        entry = self._assessor(user).answers
        again = {_pair(each) for each in entry if each.purpose is Purpose.REPEAT}
        return [
            JudgingTask(each.right, each.left, Purpose.REPEAT)
            for each in entry[: max(len(entry) - after, 0)]
            if each.kind is Kind.VERDICT
            and each.purpose is Purpose.MAIN
            and each.left is not None
            and each.right is not None
            and _pair(each) not in again
        ]

    def asked_pairs(self, user: int, purpose: Purpose) -> set[tuple[int, int]]:
        """The pairs that someone was asked for a purpose."""
        return {_pair(entry) for entry in self._assessor(user).answers if entry.purpose is purpose}

    def _assessor(self, user: int) -> _AssessorState:
        return self._assessors.setdefault(user, _AssessorState())

    def _apply_undo(self, undo: QueryLogEntry) -> None:
        place = undo.undoes
        assert place is not None
        assessor = self._assessor(undo.user)
        undone = next((entry for entry in assessor.answers if entry.place == place), None)
        if undone is None:
            return  # it was taken back before
        assessor.answers.remove(undone)
        self.judgments -= undone.is_judgment and not self.answered(undo.user, undone.token)
        if undone.kind is Kind.SKIP:
            assessor.skipped.discard(_pair(undone))
        elif place in self._indices:
            who = str(undo.user)
            self.mode.add(Undo(self._indices[place], who, undo.at, undo.seconds))


def _pair(entry: QueryLogEntry) -> tuple[int, int]:
    left = NO_ITEM if entry.left is None else entry.left
    right = NO_ITEM if entry.right is None else entry.right
    return (min(left, right), max(left, right))

"""A query's state, computed from its log: which tasks are open, to whom, and the result so far.

`QueryState` does not use the database. It applies log entries in order and passes those that count
on to `podium.judging`; checks (repeated and gold pairs) and skips it tracks itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from podium.judging import Undo
from podium.studio.judging.answer_choices import AnswerEntry
from podium.studio.judging.modes import NO_ITEM, JudgingMode, JudgingTask, QueryLogEntry
from podium.studio.store.enums import Kind, Purpose


@dataclass(frozen=True, slots=True)
class Document:
    """What a judging page shows of a document before it loads the text."""

    reference: int
    item: str
    title: str
    url: str
    length: int
    markup: int
    """The length of its HTML; 0 if it is plain text."""


@dataclass
class _AssessorState:
    """One assessor's answers and skips."""

    answers: list[QueryLogEntry] = field(default_factory=list)
    """Their answers that were not undone, oldest first."""
    skipped: set[tuple[int, int]] = field(default_factory=set)


class QueryState:
    """The judging state of a query.

    Args:
        mode: The judging mode.
        documents: The documents, by position.
        rankings: The document positions of each ranking, if rankings are compared.
        log: The entries so far.

    Attributes:
        mode: The judging mode.
        documents: The documents, by position.
        seen: The number of log entries applied.
        judgments: The number of answers that count: not skips, not undone, not too late.
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
        """Apply the next entry of the log."""
        if entry.position != self.seen:
            raise AssertionError(f"log entry {entry.position} applied after {self.seen} entries")
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
            self._indices[entry.position] = self.mode.add(self.mode.entry(entry))

    def documents_shown(self, task: JudgingTask) -> list[list[tuple[int, Document]]]:
        """The documents to show on each side, with their positions."""
        sides = [side for side in (task.left, task.right) if side != NO_ITEM]
        positions = [self._rankings[side] if self._rankings else (side,) for side in sides]
        return [[(position, self.documents[position]) for position in side] for side in positions]

    def open(self, user: int | None) -> list[JudgingTask]:
        """Tasks that are open to one assessor, or to anyone if `user` is None."""
        tasks = self.mode.tasks(None if user is None else str(user))
        skipped = self._assessors[user].skipped if user in self._assessors else ()
        return [task for task in tasks if task.pair not in skipped] if skipped else tasks

    @property
    def done(self) -> bool:
        """Whether no task is left."""
        return not self.mode.tasks(None)

    def missing(self) -> dict[tuple[int, int], int]:
        """The number of judgments each open pair still needs."""
        return {task.pair: self.mode.missing(task) for task in self.mode.tasks(None)}

    def opened_more(self, missing: dict[tuple[int, int], int], since: int) -> bool:
        """Whether more tasks are open than when the log had `since` entries.

        If the number of missing judgments at that time is unknown, returns True.

        Args:
            missing: The judgments that are missing now.
            since: The number of entries.
        """
        previous, self._offered = self._offered, (self.seen, missing)
        if previous is None or previous[0] != since:
            return True
        return any(count > previous[1].get(pair, 0) for pair, count in missing.items())

    def has_answered(self, user: int, pair: tuple[int, int], parts: Sequence[AnswerEntry]) -> bool:
        """Whether someone has already answered this task, for example in another tab.

        They have if they judged the same pair. Marking a document as bad also judges its pairs,
        but the other document may still be marked.
        """
        entries = [
            each
            for each in self._assessor(user).answers
            if each.counts and each.purpose is Purpose.MAIN and each.kind is not Kind.SKIP
        ]
        if any(each.kind is not Kind.BAD and _pair(each) == pair for each in entries):
            return True
        bad = {each.left for each in entries if each.kind is Kind.BAD}
        return bool(bad) and all(
            part.left in bad if part.kind is Kind.BAD else not bad.isdisjoint(pair)
            for part in parts
        )

    def last_at(self, user: int) -> float:
        """The time of someone's last answer that was not undone; 0 if there is none."""
        return max((entry.at for entry in self._assessor(user).answers), default=0.0)

    def last_answer(self, user: int) -> list[QueryLogEntry]:
        """The entries of someone's last answer that was not undone."""
        answers = self._assessor(user).answers
        if not answers:
            return []
        return [entry for entry in answers if entry.token == answers[-1].token]

    def answered(self, user: int, token: UUID) -> list[QueryLogEntry]:
        """The entries of one of someone's answers that were not undone."""
        return [entry for entry in self._assessor(user).answers if entry.token == token]

    def repeatable(self, user: int, *, after: int) -> list[JudgingTask]:
        """Pairs that someone judged once, at least `after` answers ago, with sides swapped."""
        entries = self._assessor(user).answers
        again = {_pair(each) for each in entries if each.purpose is Purpose.REPEAT}
        return [
            JudgingTask(each.right, each.left, Purpose.REPEAT)
            for each in entries[: max(len(entries) - after, 0)]
            if each.kind is Kind.VERDICT
            and each.purpose is Purpose.MAIN
            and each.left is not None
            and each.right is not None
            and _pair(each) not in again
        ]

    def asked_pairs(self, user: int, purpose: Purpose) -> set[tuple[int, int]]:
        """The pairs that someone has judged for a given purpose."""
        return {_pair(entry) for entry in self._assessor(user).answers if entry.purpose is purpose}

    def _assessor(self, user: int) -> _AssessorState:
        return self._assessors.setdefault(user, _AssessorState())

    def _apply_undo(self, undo: QueryLogEntry) -> None:
        position = undo.undoes
        assert position is not None
        assessor = self._assessor(undo.user)
        undone = next((entry for entry in assessor.answers if entry.position == position), None)
        if undone is None:
            return  # already undone
        assessor.answers.remove(undone)
        self.judgments -= undone.is_judgment and not self.answered(undo.user, undone.token)
        if undone.kind is Kind.SKIP:
            assessor.skipped.discard(_pair(undone))
        elif position in self._indices:
            who = str(undo.user)
            self.mode.add(Undo(self._indices[position], who, undo.at, undo.seconds))


def _pair(entry: QueryLogEntry) -> tuple[int, int]:
    left = NO_ITEM if entry.left is None else entry.left
    right = NO_ITEM if entry.right is None else entry.right
    return (min(left, right), max(left, right))

"""A query's state, computed from its log: which tasks are open, to whom, and the result so far.

`QueryState` does not use the database. It applies log entries in order and passes those that count
on to `podium.judging`; checks (repeated and gold pairs) and skips it tracks itself.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from podium.judging.entries import Undo
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
    parts: Counter[UUID] = field(default_factory=Counter)
    """How many entries of each answer stand."""


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
        withdrawn: Whether the query was withdrawn: it has no open tasks then.
        withdrawn_documents: The positions of documents that were withdrawn.
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
        self.withdrawn = False
        self.withdrawn_documents: set[int] = set()
        self.documents = documents
        self._rankings = rankings
        self._indices: dict[int, int] = {}
        self._assessors: defaultdict[int, _AssessorState] = defaultdict(_AssessorState)
        self._standing: set[int] = set()
        self._undone: dict[int, QueryLogEntry] = {}
        self._withdrawals: dict[int, int | None] = {}
        self._adjudications: dict[tuple[int, int], list[QueryLogEntry]] = {}
        self._offered: tuple[int, dict[tuple[int, int], int]] | None = None
        for entry in log:
            self.apply(entry)

    def apply(self, entry: QueryLogEntry) -> None:
        """Apply the next entry of the log."""
        if entry.position != self.seen:
            raise AssertionError(f"log entry {entry.position} applied after {self.seen} entries")
        self.seen += 1
        if entry.kind is Kind.UNDO:
            self._apply_undo(entry)
        elif entry.kind is Kind.WITHDRAW:
            self._withdrawals[entry.position] = entry.left
            self._set_withdrawn(entry.left, True)
        else:
            self._take(entry)
            if entry.kind is not Kind.SKIP and entry.counts and entry.purpose is Purpose.MAIN:
                self._indices[entry.position] = self.mode.add(self.mode.entry(entry))
            self._settle(entry)

    def documents_shown(self, task: JudgingTask) -> list[list[tuple[int, Document]]]:
        """The documents to show on each side, with their positions."""
        sides = [side for side in (task.left, task.right) if side != NO_ITEM]
        positions = [self._rankings[side] if self._rankings else (side,) for side in sides]
        return [
            [
                (position, self.documents[position])
                for position in side
                if position not in self.withdrawn_documents
            ]
            for side in positions
        ]

    def open(self, user: int | None) -> list[JudgingTask]:
        """Tasks that are open to one assessor, or to anyone if `user` is None."""
        if self.withdrawn:
            return []
        if user is None:
            return self.mode.tasks(None)
        tasks = self.mode.tasks(str(user))
        skipped = self._assessors[user].skipped if user in self._assessors else ()
        return [task for task in tasks if task.pair not in skipped] if skipped else tasks

    def shows_all(self, task: JudgingTask) -> bool:
        """Whether no document of a pair was withdrawn; rankings are compared without those."""
        return bool(self._rankings) or self.withdrawn_documents.isdisjoint(task.pair)

    @property
    def done(self) -> bool:
        """Whether no task is left."""
        return not self.open(None)

    def missing(self) -> dict[tuple[int, int], int]:
        """The number of judgments each open pair still needs."""
        return {task.pair: self.mode.missing(task) for task in self.open(None)}

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

    def stands(self, position: int) -> bool:
        """Whether the entry at a position is an answer that was not undone."""
        return position in self._standing

    def undo_of(self, position: int) -> int | None:
        """The position of the entry that undid an answer; None if the answer stands."""
        return next((at for at, each in self._undone.items() if each.position == position), None)

    def withdrawal_of(self, document: int | None) -> int | None:
        """The position of the entry that withdrew a document, or the query; None if none did."""
        return next((at for at, what in self._withdrawals.items() if what == document), None)

    def has_answered(self, user: int, pair: tuple[int, int], parts: Sequence[AnswerEntry]) -> bool:
        """Whether someone has already answered this task, for example in another tab.

        They have if they judged the same pair. Marking a document as bad also judges its pairs,
        but the other document may still be marked.
        """
        entries = [
            each
            for each in self._assessors[user].answers
            if each.counts and each.purpose is Purpose.MAIN and each.kind is not Kind.SKIP
        ]
        if any(each.kind is not Kind.BAD and unit_of(each) == pair for each in entries):
            return True
        bad = {each.left for each in entries if each.kind is Kind.BAD}
        return bool(bad) and all(
            part.left in bad if part.kind is Kind.BAD else not bad.isdisjoint(pair)
            for part in parts
        )

    def last_at(self, user: int) -> float:
        """The time of someone's last answer that was not undone; 0 if there is none."""
        return max((entry.at for entry in self._assessors[user].answers), default=0.0)

    def last_answer(self, user: int) -> list[QueryLogEntry]:
        """The entries of someone's last answer that was not undone."""
        answers = self._assessors[user].answers
        if not answers:
            return []
        return [entry for entry in answers if entry.token == answers[-1].token]

    def answered(self, user: int, token: UUID) -> list[QueryLogEntry]:
        """The entries of one of someone's answers that were not undone."""
        return [entry for entry in self._assessors[user].answers if entry.token == token]

    def repeatable(self, user: int, *, after: int) -> list[JudgingTask]:
        """Pairs that someone judged once, at least `after` answers ago, with sides swapped."""
        entries = self._assessors[user].answers
        again = {unit_of(each) for each in entries if each.purpose is Purpose.REPEAT}
        tasks = [
            JudgingTask(each.right, each.left, Purpose.REPEAT)
            for each in entries[: max(len(entries) - after, 0)]
            if each.kind is Kind.VERDICT
            and each.purpose is Purpose.MAIN
            and each.left is not None
            and each.right is not None
            and unit_of(each) not in again
        ]
        return [task for task in tasks if self.shows_all(task)]

    def asked_pairs(self, user: int, purpose: Purpose) -> set[tuple[int, int]]:
        """The pairs that someone has judged for a given purpose."""
        answers = self._assessors[user].answers
        return {unit_of(entry) for entry in answers if entry.purpose is purpose}

    def _apply_undo(self, undo: QueryLogEntry) -> None:
        position = undo.undoes
        assert position is not None
        if position in self._withdrawals:
            self._set_withdrawn(self._withdrawals.pop(position), False)
            return
        if position in self._undone:
            changed = self._undone.pop(position)
            self._take(changed)
        else:
            answers = self._assessors[undo.user].answers
            undone = next((entry for entry in answers if entry.position == position), None)
            if undone is None:
                return  # already undone
            changed = self._undone[undo.position] = undone
            self._drop(undone)
        if position in self._indices:
            entry = Undo(self._indices[position], str(undo.user), undo.at, undo.seconds)
            self._indices[undo.position] = self.mode.add(entry)
        self._settle(changed)

    def _take(self, entry: QueryLogEntry) -> None:
        """Count an answer, new or brought back."""
        assessor = self._assessors[entry.user]
        self.judgments += self._is_counted(entry)
        assessor.parts[entry.token] += 1
        insort(assessor.answers, entry)  # by position
        self._standing.add(entry.position)
        if entry.kind is Kind.SKIP:
            assessor.skipped.add(unit_of(entry))

    def _drop(self, entry: QueryLogEntry) -> None:
        """Count an answer no more."""
        assessor = self._assessors[entry.user]
        assessor.answers.remove(entry)
        assessor.parts[entry.token] -= 1
        self._standing.discard(entry.position)
        self.judgments -= self._is_counted(entry)
        if entry.kind is Kind.SKIP:
            assessor.skipped.discard(unit_of(entry))

    def adjudication_of(self, pair: tuple[int, int]) -> QueryLogEntry | None:
        """The adjudicator's answer on a pair (or a document) that stands, or None."""
        entries = [
            entry
            for entry in self._adjudications.get(pair, ())
            if self.stands(entry.position) and entry.kind is not Kind.SKIP
        ]
        return entries[-1] if entries else None

    def _settle(self, changed: QueryLogEntry) -> None:
        """Let what people said of a pair count as the adjudicator decided, or as they said it.

        Each keeps a vote, so that no more is asked for, with the adjudicator's answer in it.
        """
        if not self._adjudications and changed.purpose is not Purpose.ADJUDICATE:
            return
        pair = unit_of(changed)
        if changed.purpose is Purpose.ADJUDICATE:
            decisions = self._adjudications.setdefault(pair, [])
            if changed not in decisions:
                decisions.append(changed)
        if pair not in self._adjudications:
            return
        decision = self.adjudication_of(pair)
        votes = [
            entry
            for assessor in self._assessors.values()
            for entry in assessor.answers
            if entry.position in self._indices
            and entry.kind not in (Kind.BAD, Kind.SKIP)
            and unit_of(entry) == pair
        ]
        for vote in votes:
            counted = vote
            if decision is not None:
                counted = vote._replace(
                    left=decision.left, right=decision.right, value=decision.value
                )
            corrected, index = self.mode.entry(counted), self._indices[vote.position]
            if self.mode.log[index] != corrected:
                self.mode.add(Undo(index, str(vote.user), changed.at, 0.0))
                self._indices[vote.position] = self.mode.add(corrected)

    def _is_counted(self, entry: QueryLogEntry) -> bool:
        """Whether it is a judgment by a person of which no other part stands."""
        is_by_person = entry.is_judgment and entry.purpose is not Purpose.MODEL
        return is_by_person and not self._assessors[entry.user].parts[entry.token]

    def _set_withdrawn(self, document: int | None, withdrawn: bool) -> None:
        if document is None:
            self.withdrawn = withdrawn
        elif withdrawn:
            self.withdrawn_documents.add(document)
            self.mode.withdraw(document)
        else:
            self.withdrawn_documents.discard(document)
            self.mode.restore(document)


def unit_of(entry: QueryLogEntry) -> tuple[int, int]:
    """The pair or the document that an entry is about, regardless of sides."""
    left = NO_ITEM if entry.left is None else entry.left
    right = NO_ITEM if entry.right is None else entry.right
    return (min(left, right), max(left, right))

"""A query's state, worked out from its log: what can be asked now, of whom, and what came of it.

A board knows no database. It takes the log's entries in order, whatever they are, and passes on
to `podium.judging` those that count; checks (repeated and gold pairs) and skips stay with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.judging import Undo
from podium.studio.judging.answers import Part
from podium.studio.judging.modes import NOTHING, Panel, Said, Task
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
class _Person:
    """What a board remembers of someone."""

    answers: list[Said] = field(default_factory=list)
    """What they said and did not take back, oldest first."""
    skipped: set[tuple[int, int]] = field(default_factory=set)


class Board:
    """The state of a query.

    Args:
        panel: The way it is judged.
        documents: What is judged, by place.
        rankings: The places in each ranking, where those are compared.
        log: What was said so far.

    Attributes:
        panel: The way it is judged.
        documents: What is judged, by place.
        seen: How many entries of the log it has taken.
        judgments: How many answers stand: neither skipped, nor taken back, nor too late to count.
    """

    def __init__(
        self,
        panel: Panel,
        documents: Sequence[Document] = (),
        rankings: Sequence[Sequence[int]] = (),
        log: Iterable[Said] = (),
    ) -> None:
        self.panel = panel
        self.seen = 0
        self.judgments = 0
        self.documents = documents
        self._rankings = rankings
        self._indices: dict[int, int] = {}
        self._people: dict[int, _Person] = {}
        self._offered: tuple[int, dict[tuple[int, int], int]] | None = None
        for said in log:
            self.take(said)

    def take(self, said: Said) -> None:
        """Take the next entry of the log."""
        if said.place != self.seen:
            raise AssertionError(f"entry {said.place} came after {self.seen} others")
        self.seen += 1
        person = self._person(said.user)
        if said.kind is Kind.UNDO:
            self._take_back(said)
            return
        self.judgments += said.is_judgment and not self.answered(said.user, said.token)
        person.answers.append(said)
        if said.kind is Kind.SKIP:
            person.skipped.add(_pair(said))
        elif said.counts and said.purpose is Purpose.MAIN:
            self._indices[said.place] = self.panel.add(self.panel.entry(said))

    def shown(self, task: Task) -> list[list[tuple[int, Document]]]:
        """What a screen shows on each side: documents with their places."""
        sides = [side for side in (task.left, task.right) if side != NOTHING]
        places = [self._rankings[side] if self._rankings else (side,) for side in sides]
        return [[(place, self.documents[place]) for place in side] for side in places]

    def open(self, user: int | None) -> list[Task]:
        """What can be asked now, of a person or of anyone, to move the query on."""
        tasks = self.panel.tasks(None if user is None else str(user))
        skipped = self._people[user].skipped if user in self._people else ()
        return [task for task in tasks if task.pair not in skipped] if skipped else tasks

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask."""
        return not self.panel.tasks(None)

    def missing(self) -> dict[tuple[int, int], int]:
        """To each pair that can be asked now how many people must still judge it."""
        return {task.pair: self.panel.missing(task) for task in self.panel.tasks(None)}

    def opens_more(self, missing: dict[tuple[int, int], int], since: int) -> bool:
        """Whether more can be asked than when the log had so many entries.

        It knows only if it was told what was missing then; otherwise more may be open.

        Args:
            missing: What is missing now.
            since: The number of entries.
        """
        before, self._offered = self._offered, (self.seen, missing)
        if before is None or before[0] != since:
            return True
        return any(count > before[1].get(pair, 0) for pair, count in missing.items())

    def says_again(self, user: int, pair: tuple[int, int], parts: Sequence[Part]) -> bool:
        """Whether someone has answered this already, in another tab say.

        They have if they judged the same pair. Whoever marked a document as bad has judged its
        pairs too, but may still mark the other one.
        """
        said = [
            each
            for each in self._person(user).answers
            if each.counts and each.purpose is Purpose.MAIN and each.kind is not Kind.SKIP
        ]
        if any(each.kind is not Kind.BAD and _pair(each) == pair for each in said):
            return True
        bad = {each.left for each in said if each.kind is Kind.BAD}
        return bool(bad) and all(
            part.left in bad if part.kind is Kind.BAD else not bad.isdisjoint(pair)
            for part in parts
        )

    def last_at(self, user: int) -> float:
        """When someone gave the last answer that they have not taken back; 0 if there is none."""
        return max((said.at for said in self._person(user).answers), default=0.0)

    def last_answer(self, user: int) -> list[Said]:
        """What someone said last and did not take back: all entries of that answer."""
        answers = self._person(user).answers
        if not answers:
            return []
        return [said for said in answers if said.token == answers[-1].token]

    def answered(self, user: int, token: Any) -> list[Said]:
        """The entries of one answer of someone's, if they stand."""
        return [said for said in self._person(user).answers if said.token == token]

    def repeatable(self, user: int, *, after: int) -> list[Task]:
        """Pairs that someone judged a while ago and once only, with their sides exchanged."""
        said = self._person(user).answers
        again = {_pair(each) for each in said if each.purpose is Purpose.REPEAT}
        return [
            Task(each.right, each.left, Purpose.REPEAT)
            for each in said[: max(len(said) - after, 0)]
            if each.kind is Kind.VERDICT
            and each.purpose is Purpose.MAIN
            and each.left is not None
            and each.right is not None
            and _pair(each) not in again
        ]

    def met(self, user: int, purpose: Purpose) -> set[tuple[int, int]]:
        """The pairs that someone was asked for a purpose."""
        return {_pair(said) for said in self._person(user).answers if said.purpose is purpose}

    def _person(self, user: int) -> _Person:
        return self._people.setdefault(user, _Person())

    def _take_back(self, undo: Said) -> None:
        place = undo.undoes
        assert place is not None
        person = self._person(undo.user)
        gone = next((said for said in person.answers if said.place == place), None)
        if gone is None:
            return  # it was taken back before
        person.answers.remove(gone)
        self.judgments -= gone.is_judgment and not self.answered(undo.user, gone.token)
        if gone.kind is Kind.SKIP:
            person.skipped.discard(_pair(gone))
        elif place in self._indices:
            who = str(undo.user)
            self.panel.add(Undo(self._indices[place], who, undo.at, undo.seconds))


def _pair(said: Said) -> tuple[int, int]:
    left = NOTHING if said.left is None else said.left
    right = NOTHING if said.right is None else said.right
    return (min(left, right), max(left, right))

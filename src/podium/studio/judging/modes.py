"""The three judging modes over `podium.judging`: open tasks and log entries of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol
from uuid import UUID

from podium.data.seeds import hashed_uniform
from podium.judging import Grade, Mark, Outcome, Overlap, Session, SideBySide, Verdict
from podium.judging.entries import Entry, Undo, active_entries
from podium.judging.grading import GradingSession
from podium.studio.json_types import JsonObject
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectRow

NO_ITEM = -1
"""The right side of a task that grades a single item."""


@dataclass(frozen=True, slots=True)
class JudgingTask:
    """A task: two positions to compare, or one to grade."""

    left: int
    right: int = NO_ITEM
    purpose: Purpose = Purpose.MAIN

    @property
    def pair(self) -> tuple[int, int]:
        """The pair regardless of sides."""
        return (min(self.left, self.right), max(self.left, self.right))


class QueryLogEntry(NamedTuple):
    """An entry of a query's log, as stored."""

    position: int
    user: int
    kind: Kind
    left: int | None
    right: int | None
    value: int | None
    undoes: int | None
    purpose: Purpose
    counts: bool
    token: UUID
    at: float
    seconds: float
    reason: str | None = None
    manager: int | None = None
    replies: JsonObject | None = None

    @property
    def is_judgment(self) -> bool:
        """Whether it is a judgment that counts, checks included."""
        return self.counts and self.kind not in (Kind.SKIP, Kind.UNDO, Kind.WITHDRAW)


class JudgingMode(Protocol):
    """How a query is judged: its open tasks and what its log entries mean."""

    def tasks(self, assessor: str | None) -> list[JudgingTask]:
        """Tasks that are open to one assessor, or to anyone if `assessor` is None."""

    def missing(self, task: JudgingTask) -> int:
        """How many assessors may hold this task at the same time."""

    def entry(self, entry: QueryLogEntry) -> Entry:
        """A log entry as an entry of `podium.judging`."""

    def add(self, entry: Entry) -> int:
        """Add an entry, and return its index among those that count."""

    @property
    def log(self) -> tuple[Entry, ...]:
        """All entries that count, oldest first."""

    def withdraw(self, position: int) -> None:
        """Leave a document out."""

    def restore(self, position: int) -> None:
        """Take a withdrawn document back in."""

    def expected_left(self) -> float:
        """About how many judgments are still needed."""


class PairsMode:
    """Pairs of documents, chosen by a selection algorithm until the top k is in order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._positions = {item: position for position, item in enumerate(session.items)}
        self._marks: dict[int, int] = {}

    def tasks(self, assessor: str | None) -> list[JudgingTask]:
        """The session's open pairs."""
        return [
            JudgingTask(self._positions[left], self._positions[right])
            for left, right in self.session.open_pairs(assessor)
        ]

    def missing(self, task: JudgingTask) -> int:
        """The votes that the pair still needs."""
        items = self.session.items
        return self.session.votes_missing(items[task.left], items[task.right])

    def entry(self, entry: QueryLogEntry) -> Entry:
        """A verdict, or a mark on one item."""
        items, who = self.session.items, str(entry.user)
        if entry.kind is Kind.BAD:
            return Mark(items[entry.left or 0], who, entry.at, entry.seconds)
        return Verdict(
            items[entry.left or 0],
            items[entry.right or 0],
            Outcome(entry.value or 0),
            who,
            entry.at,
            entry.seconds,
        )

    def add(self, entry: Entry) -> int:
        """Add an entry to the session."""
        return self.session.add(entry)

    @property
    def log(self) -> tuple[Entry, ...]:
        """The session's log."""
        return self.session.log

    def withdraw(self, position: int) -> None:
        """Mark a document as bad, in nobody's name: it is asked no more, and not in the top k."""
        self._marks[position] = self.session.add(Mark(self.session.items[position]))

    def restore(self, position: int) -> None:
        """Take the mark away."""
        self.session.add(Undo(self._marks.pop(position)))

    def expected_left(self) -> float:
        """The session's forecast from few simulations, enough for a progress bar."""
        return self.session.expected_left(draws=2)


class GradesMode:
    """Grades, one document at a time."""

    def __init__(self, session: GradingSession) -> None:
        self.session = session
        self._positions = {item: position for position, item in enumerate(session.items)}
        self._withdrawn: set[int] = set()

    def tasks(self, assessor: str | None) -> list[JudgingTask]:
        """The items that need more grades."""
        positions = [self._positions[item] for item in self.session.open_items(assessor)]
        return [JudgingTask(each) for each in positions if each not in self._withdrawn]

    def missing(self, task: JudgingTask) -> int:
        """The grades that the item still needs."""
        item = self.session.items[task.left]
        return self.session.people - len(self.session.grades()[item])

    def entry(self, entry: QueryLogEntry) -> Entry:
        """A grade."""
        item = self.session.items[entry.left or 0]
        return Grade(item, entry.value or 0, str(entry.user), entry.at, entry.seconds)

    def add(self, entry: Entry) -> int:
        """Add a grade."""
        return self.session.add(entry)

    @property
    def log(self) -> tuple[Entry, ...]:
        """The session's log."""
        return self.session.log

    def withdraw(self, position: int) -> None:
        """Ask for no more grades of a document."""
        self._withdrawn.add(position)

    def restore(self, position: int) -> None:
        """Ask for grades of a document again."""
        self._withdrawn.discard(position)

    def expected_left(self) -> float:
        """The grades that are missing."""
        return float(sum(self.missing(task) for task in self.tasks(None)))


class RankingsMode:
    """Whole rankings side by side, every two of them."""

    def __init__(self, names: Sequence[str], people: int, seed: int) -> None:
        self.names = tuple(names)
        self._people = people
        self._seed = seed
        self._log: list[Entry] = []

    def tasks(self, assessor: str | None) -> list[JudgingTask]:
        """Pairs of rankings that need more verdicts, on random sides."""
        voters = self._voters()
        tasks = []
        for one, other in combinations(range(len(self.names)), 2):
            who = voters.get((one, other), set())
            if len(who) < self._people and assessor not in who:
                swapped = (
                    hashed_uniform(self._seed, "side", self.names[one], self.names[other]) < 0.5
                )
                tasks.append(JudgingTask(other, one) if swapped else JudgingTask(one, other))
        return tasks

    def missing(self, task: JudgingTask) -> int:
        """The verdicts that the two rankings still need."""
        return self._people - len(self._voters().get(task.pair, ()))

    def entry(self, entry: QueryLogEntry) -> Entry:
        """A verdict of five points."""
        left, right = self.names[entry.left or 0], self.names[entry.right or 0]
        return SideBySide(left, right, entry.value or 0, str(entry.user), entry.at, entry.seconds)

    def add(self, entry: Entry) -> int:
        """Add a verdict."""
        self._log.append(entry)
        return len(self._log) - 1

    @property
    def log(self) -> tuple[Entry, ...]:
        """All verdicts."""
        return tuple(self._log)

    def withdraw(self, position: int) -> None:
        """Rankings are compared without it: see `QueryState.documents_shown`."""

    def restore(self, position: int) -> None:
        """Rankings are compared with it again."""

    def expected_left(self) -> float:
        """The verdicts that are missing."""
        return float(sum(self.missing(task) for task in self.tasks(None)))

    def _voters(self) -> dict[tuple[int, int], set[str]]:
        positions = {name: position for position, name in enumerate(self.names)}
        tasks: dict[tuple[int, int], set[str]] = {}
        for position in active_entries(self._log):
            entry = self._log[position]
            if isinstance(entry, SideBySide):
                one, other = sorted((positions[entry.left], positions[entry.right]))
                tasks.setdefault((one, other), set()).add(entry.assessor)
        return tasks


def new_mode(
    project: ProjectRow, ordered: bool, items: Sequence[str], rankings: Sequence[str]
) -> JudgingMode:
    """Create the judging mode of a query from its project's settings.

    Args:
        project: A row of the projects.
        ordered: Whether the items are in the order of a prior ranking.
        items: The query's documents.
        rankings: The names of its rankings, where those are compared.
    """
    people = project.overlap_assessors if project.overlap_share > 0 else 1
    if project.mode == Mode.GRADES:
        return GradesMode(GradingSession(items, people=people))
    if project.mode == Mode.RANKINGS:
        return RankingsMode(rankings, people, project.seed)
    overlap = None
    if project.overlap_share > 0:
        overlap = Overlap(project.overlap_share, project.overlap_assessors, project.seed)
    return PairsMode(
        Session(
            items,
            project.k,
            algorithm=project.algorithm,
            random_state=project.seed,
            ordered=ordered,
            overlap=overlap,
            budget=project.budget,
        )
    )

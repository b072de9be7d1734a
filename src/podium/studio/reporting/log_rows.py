"""Log entries in words: who answered what about which documents, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, or_, select

from podium.judging.entries import GRADES
from podium.studio.json_types import JsonObject
from podium.studio.judging.scales import grade_names
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectRow, fetch_all
from podium.studio.store.tables import Gold, LogEntry, ProjectQuery, QueryCandidate, Ranking, User

_VERDICTS = {1: "better than", 0: "as good as", -1: "worse than"}
_POINTS = {
    2: "much better than", 1: "better than", 0: "about the same as", -1: "worse than",
    -2: "much worse than",
}  # fmt: skip
LOG_PAGE = 100
"""How many answers a page shows."""
ANSWERS = (Kind.VERDICT, Kind.BAD, Kind.GRADE, Kind.SIDE_BY_SIDE, Kind.SKIP)
"""What people answer; undos and withdrawals are shown with what they undo."""


@dataclass(frozen=True)
class NamedDocument:
    """A document, or a ranking, as pages name it.

    Attributes:
        position: Where it is in its query.
        title: Its title, or its id.
        reference: Names the page of the document; None for a ranking.
    """

    position: int
    title: str
    reference: int | None


@dataclass(frozen=True)
class Undone:
    """That an answer was undone.

    Attributes:
        at: When.
        manager: The name of the manager who discarded it; None if its author undid it.
        reason: Why, in the manager's words.
    """

    at: float
    manager: str | None
    reason: str | None


@dataclass(frozen=True)
class LogRow:
    """An answer, as pages show it.

    Attributes:
        id: Its number in the log of the whole server.
        query_id: The query's number.
        query_name: Its id in the project's data.
        query: Its text.
        position: The position in the query's log.
        token: Names the answer.
        user_id: Who answered.
        user: Their name.
        kind: The kind of entry.
        relation: How left compares with right, the grade, ``bad`` or ``skipped``.
        left: The document on the left, or the only one.
        right: The document on the right.
        purpose: Why it was asked: ``main``, ``repeat`` or ``gold``; ``model`` of a model.
        counts: Whether it was in time to count.
        reason: Why it was skipped, or a comment.
        at: When.
        seconds: How long it took.
        undone: That it was undone, if it was.
        replies: The replies to the project's questions, by the questions' texts.
        expected: How left compares with right, if it is a gold pair that was judged otherwise.
    """

    id: int
    query_id: int
    query_name: str
    query: str
    position: int
    token: UUID
    user_id: int
    user: str
    kind: Kind
    relation: str
    left: NamedDocument | None
    right: NamedDocument | None
    purpose: str
    counts: bool
    reason: str | None
    at: float
    seconds: float
    undone: Undone | None
    replies: dict[str, str]
    expected: str | None

    @property
    def stands(self) -> bool:
        """Whether it was not undone."""
        return self.undone is None

    @property
    def is_judgment(self) -> bool:
        """Whether it is a judgment that can be discarded or restored."""
        return self.kind is not Kind.SKIP

    @property
    def can_be_discarded(self) -> bool:
        """Whether it is a judgment that stands."""
        return self.is_judgment and self.stands

    @property
    def can_be_restored(self) -> bool:
        """Whether it is a judgment that a manager discarded."""
        return self.is_judgment and self.undone is not None and self.undone.manager is not None


class _EntryRow(NamedTuple):
    id: int
    query_id: int
    position: int
    user_id: int
    kind: str
    left: int | None
    right: int | None
    value: int | None
    purpose: str
    counts: bool
    token: UUID
    reason: str | None
    at: float
    seconds: float
    replies: JsonObject | None
    name: str
    text: str
    user_name: str


class _UndoRow(NamedTuple):
    query_id: int
    position: int
    undoes: int
    at: float
    reason: str | None
    manager: str | None


def log_rows(
    connection: Connection,
    project: ProjectRow,
    *where: ColumnElement[bool],
    limit: int,
    before: int | None = None,
) -> list[LogRow]:
    """The answers of a project that meet conditions, newest first.

    Args:
        connection: Where to look.
        project: The project's row.
        where: Conditions on `LogEntry`.
        limit: How many at most.
        before: Only those with a lower number.
    """
    statement = (
        select(
            LogEntry.id, LogEntry.query_id, LogEntry.position, LogEntry.user_id, LogEntry.kind,
            LogEntry.left, LogEntry.right, LogEntry.value, LogEntry.purpose, LogEntry.counts,
            LogEntry.token, LogEntry.reason, LogEntry.at, LogEntry.seconds,
            LogEntry.replies, ProjectQuery.name, ProjectQuery.text, User.name,
        )
        .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
        .join(User, User.id == LogEntry.user_id)
        .where(
            ProjectQuery.project_id == project.id,
            LogEntry.kind.in_([kind.value for kind in ANSWERS]),
            # What a model says is shown to nobody who may yet be asked the same.
            or_(LogEntry.purpose != Purpose.MODEL.value, ProjectQuery.done),
            *where,
        )
        .order_by(LogEntry.id.desc())
        .limit(limit)
    )  # fmt: skip
    if before is not None:
        statement = statement.where(LogEntry.id < before)
    rows = fetch_all(connection, statement, _EntryRow)
    grades = grade_names(project.scale)
    asked = {str(question["name"]): str(question["text"]) for question in project.questions}
    documents = _documents(connection, Mode(project.mode), rows)
    undone = _undone(connection, {row.query_id for row in rows})
    gold = _gold(connection, {row.query_id for row in rows if row.purpose == Purpose.GOLD.value})
    return [
        LogRow(
            id=row.id,
            query_id=row.query_id,
            query_name=row.name,
            query=row.text,
            position=row.position,
            token=row.token,
            user_id=row.user_id,
            user=row.user_name,
            kind=Kind(row.kind),
            relation=relation(Kind(row.kind), row.value or 0, grades),
            left=documents.get((row.query_id, row.left)),
            right=documents.get((row.query_id, row.right)),
            purpose=row.purpose,
            counts=row.counts,
            reason=row.reason,
            at=row.at,
            seconds=row.seconds,
            undone=undone.get((row.query_id, row.position)),
            replies={
                asked.get(name, name): str(reply) for name, reply in (row.replies or {}).items()
            },
            expected=_expected(row, gold),
        )
        for row in rows
    ]


def _gold(connection: Connection, queries: set[int]) -> dict[tuple[int, int, int], int]:
    """The known outcomes of gold pairs, by query and documents as either may be shown first."""
    rows = connection.execute(
        select(Gold.query_id, Gold.left, Gold.right, Gold.outcome).where(Gold.query_id.in_(queries))
    )
    known = {}
    for query, left, right, outcome in rows:
        known[query, left, right], known[query, right, left] = outcome, -outcome
    return known


def _expected(row: _EntryRow, gold: dict[tuple[int, int, int], int]) -> str | None:
    if row.purpose != Purpose.GOLD.value or row.kind != Kind.VERDICT.value:
        return None
    known = gold.get((row.query_id, row.left or 0, row.right or 0))
    return None if known is None or known == row.value else relation(Kind.VERDICT, known)


def relation(kind: Kind, value: int, grades: Sequence[str] = GRADES) -> str:
    """How left compares with right, the grade, ``bad`` or ``skipped``.

    Example:
        >>> relation(Kind.VERDICT, -1), relation(Kind.GRADE, 4)
        ('worse than', 'perfect')
    """
    if kind is Kind.VERDICT:
        return _VERDICTS[value]
    if kind is Kind.SIDE_BY_SIDE:
        return _POINTS[value]
    if kind is Kind.GRADE:
        return grades[value]
    return "bad" if kind is Kind.BAD else "skipped"


def _documents(
    connection: Connection, mode: Mode, rows: Sequence[_EntryRow]
) -> dict[tuple[int, int | None], NamedDocument]:
    positions = {
        (row.query_id, position)
        for row in rows
        for position in (row.left, row.right)
        if position is not None
    }
    if mode is Mode.RANKINGS:
        names = connection.execute(
            select(Ranking.query_id, Ranking.position, Ranking.name).where(
                Ranking.query_id.in_({query for query, _ in positions})
            )
        )
        return {
            (query, position): NamedDocument(position, name, None)
            for query, position, name in names
        }
    return named_documents(connection, positions)


def named_documents(
    connection: Connection, positions: Iterable[tuple[int, int]]
) -> dict[tuple[int, int | None], NamedDocument]:
    """Documents by query and position, as pages name them."""
    keys = set(positions)
    rows = connection.execute(
        select(
            QueryCandidate.query_id, QueryCandidate.position, QueryCandidate.item,
            QueryCandidate.title, QueryCandidate.reference,
        ).where(
            QueryCandidate.query_id.in_({query for query, _ in keys}),
            QueryCandidate.position.in_({position for _, position in keys}),
        )
    )  # fmt: skip
    return {
        (row.query_id, row.position): NamedDocument(
            row.position, row.title or row.item, row.reference
        )
        for row in rows
    }


def _undone(connection: Connection, queries: set[int]) -> dict[tuple[int, int], Undone]:
    """To each answer that is undone, by whom; undos that were undone do not count."""
    statement = (
        select(
            LogEntry.query_id, LogEntry.position, LogEntry.undoes, LogEntry.at, LogEntry.reason,
            User.name,
        )
        .outerjoin(User, User.id == LogEntry.manager_id)
        .where(LogEntry.query_id.in_(queries), LogEntry.kind == Kind.UNDO.value)
    )  # fmt: skip
    undos = fetch_all(connection, statement, _UndoRow)
    taken_back = {(undo.query_id, undo.undoes) for undo in undos}
    return {
        (undo.query_id, undo.undoes): Undone(undo.at, undo.manager, undo.reason)
        for undo in undos
        if (undo.query_id, undo.position) not in taken_back
    }

"""A desk to judge at, with what tests ask of it afterwards."""

from __future__ import annotations

from sqlalchemy import select

from podium.studio.judging.service import Given
from podium.studio.projects.service import project_row
from podium.studio.store.database import reading
from podium.studio.store.tables import LogEntry, Query


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ByNumber:
    """A desk that takes a project's number for its row."""

    def __init__(self, engine, desk) -> None:
        self._engine = engine
        self._desk = desk
        self.board = desk.board

    def _row(self, project_id):
        return reading(self._engine, lambda c: project_row(c, project_id))

    def next(self, project_id, *rest):
        return self._desk.next(self._row(project_id), *rest)

    def answer(self, project_id, *rest, **more):
        return self._desk.answer(self._row(project_id), *rest, **more)

    def undo(self, project_id, *rest):
        return self._desk.undo(self._row(project_id), *rest)


def truth(task) -> str:
    """Documents are better the lower their place."""
    return "left" if task.left < task.right else "right"


def log_of(engine, query_id):
    entries = select(LogEntry.__table__).where(LogEntry.query_id == query_id)
    return reading(engine, lambda c: c.execute(entries.order_by(LogEntry.place)).all())


def top_of(engine, desk, project_id, query_id):
    def work(connection):
        project = project_row(connection, project_id)
        query = connection.execute(select(Query.__table__).where(Query.id == query_id)).one()
        return desk.board(connection, project, query).panel.session.result()

    return reading(engine, work)


def queries_of(engine, project_id):
    queries = select(Query.__table__).where(Query.project_id == project_id)
    return reading(engine, lambda c: c.execute(queries.order_by(Query.id)).all())


def judge_all(desk, project, user, given, tab="t", choose=truth):
    """Answer until there is nothing left; returns how many answers that took."""
    count = 0
    while isinstance(given, Given):
        _, given = desk.answer(project, user, given.token, choose(given.task), seconds=2.0, tab=tab)
        count += 1
    return count, given

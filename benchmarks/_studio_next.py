"""The time to the next task where someone has finished few queries, and where they have many."""

from __future__ import annotations

import statistics
import time
from typing import Any

from sqlalchemy import Engine, text

from benchmarks._studio_server import create_data
from podium.studio.judging.next_task import NextTask
from podium.studio.judging.service import Answer, JudgingMember, JudgingService
from podium.studio.judging.unit_of_work import LeasedTask, LeaseHolder, UnitOfWork
from podium.studio.projects.service import ProjectSettings, create_project, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading

FEW, MANY = 10, 100_000
_PERSON = 1


def seconds_to_the_next_task(url: str, answers: int) -> dict[int, float]:
    """The median seconds of an answer that ends a query, until the next task, by what is finished.

    Every pair needs two people, so that a query is never done for the one who asks: they have
    judged all that is open to them, and others have not. Answers alternate between the two
    projects.

    Args:
        url: An empty database.
        answers: How many answers there are in each project.
    """
    create_data(url, people=2, queries=1, items=2)
    engine = connect(Settings(database=url))
    judges = {count: _Judge(engine, _project(engine, count, answers + 20)) for count in (FEW, MANY)}
    for judge in judges.values():
        for _ in range(10):
            judge.answer()  # compiles, fills caches, looks at what is finished once
    took: dict[int, list[float]] = {count: [] for count in judges}
    for _ in range(answers):
        for count, judge in judges.items():
            took[count].append(judge.answer())
    engine.dispose()
    return {count: statistics.median(seconds) for count, seconds in took.items()}


class _Judge:
    """One person who judges in one project."""

    def __init__(self, engine: Engine, project: int) -> None:
        self._service = JudgingService(engine)
        self._project = reading(engine, lambda c: project_row(c, project))
        self._lease = self._service.transact(lambda unit: self._assessor(unit).next())

    def answer(self) -> float:
        """Answer, and return how long it took until the next task was there."""
        assert isinstance(self._lease, LeasedTask)
        token = self._lease.token

        def work(unit: UnitOfWork) -> NextTask | None:
            assessor = self._assessor(unit)
            assessor.answer(token, Answer("left", 1.0))
            return assessor.following()

        begun = time.perf_counter()
        lease = self._service.transact(work)
        took = time.perf_counter() - begun
        assert isinstance(lease, LeasedTask)
        assert lease.query.id != self._lease.query.id
        self._lease = lease
        return took

    def _assessor(self, unit: UnitOfWork) -> JudgingMember:
        return self._service.assessor(unit, self._project, LeaseHolder(_PERSON, "tab"))


def _project(engine: Engine, finished: int, more: int) -> int:
    """A project with queries that the person has finished, and some that they have not."""
    settings = ProjectSettings(name="Next", k=1, overlap_share=1.0, overlap_assessors=2)
    project = in_transaction(engine, lambda c: create_project(c, _PERSON, settings))
    values = {"project": project, "person": _PERSON}
    queries = (
        "INSERT INTO queries (project_id, name, text, description, ordered, entries, free,"
        " available, changed, judgments, done, expected_left) SELECT :project, :name || n, '', '',"
        " false, 0, 2, true, 1, 0, false, 2 FROM generate_series(1, :count) n"
    )
    _run(engine, queries, {**values, "name": "old", "count": finished})
    _run(
        engine,
        "INSERT INTO exhausted (user_id, query_id, changed) SELECT :person, id, changed"
        " FROM queries WHERE project_id = :project",
        values,
    )
    _run(engine, queries, {**values, "name": "new", "count": more})
    _run(
        engine,
        "INSERT INTO candidates (query_id, position, reference, item, title, text, html, url)"
        " SELECT id, position, position, 'd' || position, 'T', 'Text', '', '' FROM queries,"
        " generate_series(0, 1) position WHERE project_id = :project AND name LIKE 'new%'",
        values,
    )
    return project


def _run(engine: Engine, statement: str, values: dict[str, Any]) -> None:
    """Run a statement, then update PostgreSQL's statistics of tables: it checks keys one by one."""
    in_transaction(engine, lambda c: c.execute(text(statement), values))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))

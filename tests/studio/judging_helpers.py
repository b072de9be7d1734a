"""A desk to judge at, with what tests ask of it afterwards."""

from __future__ import annotations

import time

from sqlalchemy import insert, select, update

from podium.studio.jobs.queue import JobContext, enqueue
from podium.studio.judging.service import Answer, JudgingService
from podium.studio.judging.unit_of_work import LeasedTask, LeaseHolder
from podium.studio.projects.service import project_row
from podium.studio.reporting import reports
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.rows import ProjectQueryRow
from podium.studio.store.tables import (
    JudgmentCount,
    LogEntry,
    Project,
    ProjectQuery,
    QueryCandidate,
)
from podium.studio.store.tokens import new_token
from tests.studio.claimed_jobs import claimed_job


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Judges:
    """People who judge as the API's routes let them, a transaction for each thing they do.

    A project's number can be used for its row.
    """

    def __init__(self, engine, clock=time.time, rng=None) -> None:
        self._engine = engine
        self.service = JudgingService(engine, clock, rng)

    def row(self, project):
        if not isinstance(project, int):
            return project
        return reading(self._engine, lambda c: project_row(c, project))

    def next(self, project, user, tab, *, renews=False, after=()):
        return self._judge(project, LeaseHolder(user, tab, renews), lambda who: who.next(after))

    def answer(
        self, project, user, token, choice, *, tab, seconds, reason=None, replies=None, more=True,
        renews=False, after=(),
    ):  # fmt: skip
        answer = Answer(choice, seconds, reason, replies or {})

        def work(who):
            result = who.answer(token, answer)
            return result, who.following(after) if more else None

        return self._judge(project, LeaseHolder(user, tab, renews), work)

    def undo(self, project, user, token, tab, answer=None):
        return self._judge(project, LeaseHolder(user, tab), lambda who: who.undo(token, answer))

    def change(self, project, user, answer, change):
        return self._judge(project, LeaseHolder(user), lambda who: who.change(answer, change))

    def renew(self, project, who, tokens):
        return self._judge(project, who, lambda who: who.renew(tokens))

    def release(self, project, user, token, expires_at=None):
        return self._judge(project, LeaseHolder(user), lambda who: who.release(token, expires_at))

    def state(self, project, query_id):
        """A query's state as this process knows it."""
        row = self.row(project)
        query = select(ProjectQuery.__table__).where(ProjectQuery.id == query_id)

        def work(unit):
            locked = unit.connection.execute(query.with_for_update()).one()
            return unit.locked(row, ProjectQueryRow(*locked)).state

        return self.service.transact(work)

    def _judge(self, project, who, work):
        row = self.row(project)
        return self.service.transact(lambda unit: work(self.service.assessor(unit, row, who)))


def truth(task) -> str:
    """Documents are better the lower their position."""
    return "left" if task.left < task.right else "right"


def read_log(engine, query_id):
    entries = select(LogEntry.__table__).where(LogEntry.query_id == query_id)
    return reading(engine, lambda c: c.execute(entries.order_by(LogEntry.position)).all())


def top_of(service, project, query_id):
    return service.state(project, query_id).mode.session.result()


def queries_of(engine, project_id):
    queries = select(ProjectQuery.__table__).where(ProjectQuery.project_id == project_id)
    return reading(engine, lambda c: c.execute(queries.order_by(ProjectQuery.id)).all())


def judge_all(service, project, user, given, tab="t", choose=truth):
    """Answer until there is nothing left; returns how many answers that took."""
    count = 0
    while isinstance(given, LeasedTask):
        _, given = service.answer(
            project, user, given.token, choose(given.task), seconds=2.0, tab=tab
        )
        count += 1
    return count, given


def items_of(engine, project):
    rows = reading(
        engine,
        lambda c: c.execute(
            select(ProjectQuery.name, QueryCandidate.item)
            .join(QueryCandidate, QueryCandidate.query_id == ProjectQuery.id)
            .where(ProjectQuery.project_id == project)
            .order_by(ProjectQuery.id, QueryCandidate.position)
        ).all(),
    )
    return list(map(tuple, rows))


def counted(engine, query):
    columns = JudgmentCount.user_id, JudgmentCount.judgments
    statement = select(*columns).where(JudgmentCount.query_id == query)
    rows = reading(engine, lambda c: c.execute(statement).all())
    return {row.user_id: row.judgments for row in rows}


def make_report(engine, project, user):
    """The report as a worker makes it."""
    kind = reports.KIND
    job = claimed_job(engine, kind, lambda c: enqueue(c, project, user, kind, {}))
    reports.run_report(JobContext(engine, Settings(), job))
    return reading(engine, lambda c: reports.report_of(c, project))


def say(engine, query, user, *verdicts, purpose="main", counts=True):
    """Write verdicts into a query's log as if they had been asked."""

    def work(connection):
        start = connection.scalar(select(ProjectQuery.entries).where(ProjectQuery.id == query))
        for position, (left, right, value) in enumerate(verdicts, start):
            connection.execute(
                insert(LogEntry).values(
                    query_id=query, position=position, user_id=user, kind="verdict", left=left,
                    right=right, value=value, purpose=purpose, counts=counts, late=False,
                    token=new_token(), part=0, at=time.time(), seconds=3.0,
                )
            )  # fmt: skip
        entries = start + len(verdicts)
        connection.execute(
            update(ProjectQuery).where(ProjectQuery.id == query).values(entries=entries)
        )

    in_transaction(engine, work)


def pause(engine, paused=True):
    in_transaction(engine, lambda c: c.execute(update(Project).values(paused=paused)))

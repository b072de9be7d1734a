"""A project's report: figures that take too long to compute while a page waits.

The worker reads only the queries whose logs have grown, stores the figures of each, and combines
them. A report is made when someone opens the dashboard, at most every few seconds, and only if
there is anything new.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Engine, delete, exists, func, insert, or_, select

from podium.studio.jobs.queue import JobContext, State, enqueue
from podium.studio.json_types import JsonObject
from podium.studio.judging.judged import load_judged_queries
from podium.studio.projects.progress import REPORT, outdate_report, project_progress
from podium.studio.projects.service import project_row
from podium.studio.reporting.dashboard import judgment_history
from podium.studio.reporting.query_figures import query_figures, shared_agreement
from podium.studio.reporting.summary import ReportBuilder
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.dialects import INSERTS
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, ReportRow, fetch_all, fetch_one
from podium.studio.store.tables import (
    Gold,
    Job,
    JudgmentCount,
    ModelAssessor,
    ProjectQuery,
    QueryFigures,
    Report,
    User,
)

KIND = REPORT
_EVERY = 4.0
"""The fewest seconds between two reports of a project."""
_PAGE = 50
_SLOWEST = 20


class _FiguresRow(NamedTuple):
    query_id: int
    name: str
    content: JsonObject


def report_of(connection: Connection, project_id: int) -> ReportRow | None:
    """The last report of a project, or None."""
    statement = select(Report.__table__).where(Report.project_id == project_id, Report.kind == KIND)
    return fetch_one(connection, statement, ReportRow)


def problem_of(connection: Connection, project_id: int) -> str | None:
    """Why the last report could not be made; None if it could, or none was asked for.

    A job that made a report is deleted with those before it.
    """
    return connection.scalar(
        select(Job.error)
        .where(Job.project_id == project_id, Job.kind == KIND, Job.state == State.FAILED.value)
        .order_by(Job.id.desc())
        .limit(1)
    )


def is_stale(report: ReportRow | None, entries: int, now: float) -> bool:
    """Whether a newer report should be made."""
    if report is None:
        return True
    return bool(report.entries != entries and report.made_at < now - _EVERY)


def request_report(engine: Engine, project_id: int, user_id: int) -> bool:
    """Queue a report job unless there is one already; returns whether it was queued."""

    def work(connection: Connection) -> bool:
        waiting = connection.scalar(
            select(
                exists().where(
                    Job.project_id == project_id,
                    Job.kind == KIND,
                    Job.state.in_([State.WAITING.value, State.RUNNING.value]),
                )
            )
        )
        if waiting:
            return False
        enqueue(connection, project_id, user_id, KIND, {})
        return True

    return in_transaction(engine, work)


def run_report(work: JobContext) -> None:
    """Run a report job."""
    project = reading(work.engine, lambda c: project_row(c, work.job.project_id))
    progress = reading(work.engine, lambda c: project_progress(c, project.id))
    _refresh_changed_queries(work, project)
    summary = ReportBuilder()
    for row in _all_figures(work.engine, project.id):
        summary.add(row.query_id, row.name, row.content)
    content = summary.content(project.mode)
    content |= reading(work.engine, lambda c: _times(c, project.id))
    now = time.time()
    content["history"] = reading(work.engine, lambda c: judgment_history(c, project.id, now))

    def keep(connection: Connection) -> None:
        connection.execute(
            delete(Report).where(Report.project_id == project.id, Report.kind == KIND)
        )
        connection.execute(
            insert(Report).values(
                project_id=project.id,
                kind=KIND,
                content=content,
                entries=progress.entries,
                made_at=now,
            )
        )
        if project_row(connection, project.id) != project:  # changed meanwhile
            outdate_report(connection, project.id)
        work.finish(connection, {})
        # Reports come every few seconds: the jobs that made them would fill the table.
        # Those that failed before are no problem any more.
        connection.execute(
            delete(Job).where(
                Job.project_id == project.id,
                Job.kind == KIND,
                or_(Job.id == work.job.id, Job.state == State.FAILED.value),
            )
        )

    in_transaction(work.engine, keep)


def _refresh_changed_queries(work: JobContext, project: ProjectRow) -> None:
    after = 0
    while True:
        rows = reading(work.engine, lambda c, after=after: _changed_queries(c, project.id, after))  # type: ignore[misc]
        if not rows:
            return
        figures = reading(work.engine, lambda c, rows=rows: _figures_of(c, project, rows))  # type: ignore[misc]
        in_transaction(work.engine, lambda c, figures=figures: _store(c, figures))  # type: ignore[misc]
        after = rows[-1].id


def _changed_queries(connection: Connection, project_id: int, after: int) -> list[ProjectQueryRow]:
    return fetch_all(
        connection,
        select(ProjectQuery.__table__)
        .outerjoin(QueryFigures, QueryFigures.query_id == ProjectQuery.id)
        .where(
            ProjectQuery.project_id == project_id,
            ProjectQuery.id > after,
            ProjectQuery.entries > 0,
            or_(QueryFigures.entries.is_(None), QueryFigures.entries != ProjectQuery.entries),
        )
        .order_by(ProjectQuery.id)
        .limit(_PAGE),
        ProjectQueryRow,
    )


def _figures_of(
    connection: Connection, project: ProjectRow, queries: Sequence[ProjectQueryRow]
) -> list[JsonObject]:
    """The figures of some queries, as rows to store."""
    gold: dict[int, dict[tuple[int, int], int]] = {query.id: {} for query in queries}
    for query_id, left, right, outcome in connection.execute(
        select(Gold.query_id, Gold.left, Gold.right, Gold.outcome).where(
            Gold.query_id.in_(list(gold))
        )
    ):
        pair, value = ((left, right), outcome) if left < right else ((right, left), -outcome)
        gold[query_id][pair] = value
    rows = []
    for judged in load_judged_queries(connection, project, queries):
        lengths = [document.length + document.markup for document in judged.content.documents]
        figures = query_figures(judged, gold[judged.query.id], lengths)
        rows.append(
            {
                "query_id": judged.query.id,
                "entries": len(judged.log),
                "content": figures,
                "agreement": shared_agreement(figures),
                "contradictions": len(figures["loops"]),
                "skips": figures["skips"],
                "disputes": figures["disputes"],
            }
        )
    return rows


def _store(connection: Connection, rows: Sequence[JsonObject]) -> None:
    statement = INSERTS[connection.dialect.name](QueryFigures)
    changed = {name: statement.excluded[name] for name in rows[0] if name != "query_id"}
    connection.execute(
        statement.on_conflict_do_update(index_elements=["query_id"], set_=changed), rows
    )


def _all_figures(engine: Engine, project_id: int) -> Iterator[_FiguresRow]:
    after = 0
    while True:
        rows = reading(engine, lambda c, after=after: _figures_page(c, project_id, after))  # type: ignore[misc]
        if not rows:
            return
        yield from rows
        after = rows[-1].query_id


def _figures_page(connection: Connection, project_id: int, after: int) -> list[_FiguresRow]:
    return fetch_all(
        connection,
        select(QueryFigures.query_id, ProjectQuery.name, QueryFigures.content)
        .join(ProjectQuery, ProjectQuery.id == QueryFigures.query_id)
        .where(
            ProjectQuery.project_id == project_id,
            ProjectQuery.withdrawn.is_(False),
            QueryFigures.query_id > after,
        )
        .order_by(QueryFigures.query_id)
        .limit(500),
        _FiguresRow,
    )


def _times(connection: Connection, project_id: int) -> JsonObject:
    """Judgments and seconds of people, and the queries that take longest, from the tallies."""
    judged_by_people = (
        ProjectQuery.project_id == project_id,
        JudgmentCount.judgments > 0,
        JudgmentCount.user_id.not_in(
            select(ModelAssessor.user_id).where(ModelAssessor.project_id == project_id)
        ),
    )
    people = connection.execute(
        select(
            User.id,
            User.name,
            func.sum(JudgmentCount.judgments).label("judgments"),
            func.sum(JudgmentCount.seconds).label("seconds"),
            func.max(JudgmentCount.last_at).label("last_at"),
        )
        .join(JudgmentCount, JudgmentCount.user_id == User.id)
        .join(ProjectQuery, ProjectQuery.id == JudgmentCount.query_id)
        .where(*judged_by_people)
        .group_by(User.id, User.name)
        .order_by(func.sum(JudgmentCount.judgments).desc(), User.id)
    ).all()
    slowest = connection.execute(
        select(
            ProjectQuery.id,
            ProjectQuery.name,
            ProjectQuery.text,
            func.sum(JudgmentCount.judgments).label("judgments"),
            func.sum(JudgmentCount.seconds).label("seconds"),
        )
        .join(JudgmentCount, JudgmentCount.query_id == ProjectQuery.id)
        .where(*judged_by_people)
        .group_by(ProjectQuery.id, ProjectQuery.name, ProjectQuery.text)
        .order_by(
            (func.sum(JudgmentCount.seconds) / func.sum(JudgmentCount.judgments)).desc(),
            ProjectQuery.id,
        )
        .limit(_SLOWEST)
    ).all()
    return {
        "times": [
            {
                "user": row.id,
                "name": row.name,
                "judgments": int(row.judgments),
                "seconds": float(row.seconds),
                "last_at": row.last_at,
            }
            for row in people
        ],
        "slowest": [
            {
                "query": row.id,
                "query_id": row.name,
                "text": row.text[:200],
                "judgments": int(row.judgments),
                "seconds": float(row.seconds),
            }
            for row in slowest
        ],
    }

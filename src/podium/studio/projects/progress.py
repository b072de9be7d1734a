"""Progress of projects, from the queries' rows; the log is never counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Integer, and_, cast, func, select, update

from podium.studio.store.enums import Role
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import Membership, Project, ProjectQuery, QueryFigures, Report

REPORT = "report"
"""The kind of a project's report among what is stored as one."""


@dataclass(frozen=True)
class ProjectProgress:
    """The progress of a project. Withdrawn queries are left out.

    Attributes:
        queries: The number of queries.
        done: How many of them are done.
        judgments: The number of judgments that count.
        expected_left: The estimated number of judgments still needed.
        entries: The number of log entries, including undone ones and skips.
    """

    queries: int
    done: int
    judgments: int
    expected_left: float
    entries: int = 0

    @property
    def share(self) -> float:
        """The share of judgments made, from 0 to 1.

        Example:
            >>> ProjectProgress(queries=2, done=1, judgments=30, expected_left=10.0).share
            0.75
        """
        if self.queries and self.done == self.queries:
            return 1.0
        total = self.judgments + self.expected_left
        return self.judgments / total if total else 0.0


_FIGURES = (
    func.count(ProjectQuery.id),
    func.coalesce(func.sum(cast(ProjectQuery.done, Integer)), 0),
    func.coalesce(func.sum(ProjectQuery.judgments), 0),
    func.coalesce(func.sum(ProjectQuery.expected_left), 0.0),
    func.coalesce(func.sum(ProjectQuery.entries), 0),
)


def project_progress(connection: Connection, project_id: int) -> ProjectProgress:
    """The progress of a project."""
    row = connection.execute(
        select(*_FIGURES).where(
            ProjectQuery.project_id == project_id, ProjectQuery.withdrawn.is_(False)
        )
    ).one()
    return _progress_of(row)


def projects_of(
    connection: Connection, user_id: int, *, every: bool = False
) -> list[tuple[ProjectRow, str, ProjectProgress]]:
    """Someone's projects, newest first: row, role and progress.

    Args:
        connection: Where to look.
        user_id: Who.
        every: Whether to list all projects, as administrators see them; they may do there what an
            owner may.
    """
    mine = and_(Membership.project_id == Project.id, Membership.user_id == user_id)
    rows = connection.execute(
        select(Project.__table__, func.coalesce(Membership.role, Role.OWNER.value).label("role"))
        .join(Membership, mine, isouter=every)
        .order_by(Project.id.desc())
    ).all()
    figures = {
        row[0]: _progress_of(row[1:])
        for row in connection.execute(
            select(ProjectQuery.project_id, *_FIGURES)
            .where(
                ProjectQuery.project_id.in_([row.id for row in rows]),
                ProjectQuery.withdrawn.is_(False),
            )
            .group_by(ProjectQuery.project_id)
        )
    }
    return [
        (ProjectRow(*row[:-1]), row.role, figures.get(row.id, ProjectProgress(0, 0, 0, 0.0)))
        for row in rows
    ]


def _progress_of(figures: Sequence[float]) -> ProjectProgress:
    queries, done, judgments, left, entries = figures
    return ProjectProgress(int(queries), int(done), int(judgments), float(left), int(entries))


def outdate_report(connection: Connection, project_id: int) -> None:
    """Have the next report work out every query anew: it depends on settings that changed."""
    queries = select(ProjectQuery.id).where(ProjectQuery.project_id == project_id)
    connection.execute(
        update(QueryFigures).where(QueryFigures.query_id.in_(queries)).values(entries=0)
    )
    connection.execute(
        update(Report)
        .where(Report.project_id == project_id, Report.kind == REPORT)
        .values(entries=0)
    )

"""A crowd worker's share of a project, and when they are done with it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Connection, and_, exists, func, or_, select
from sqlalchemy.orm import aliased

from podium.studio.accounts.crowd import REMOVED
from podium.studio.errors import RefusedError
from podium.studio.judging.modes import NO_ITEM
from podium.studio.judging.next_task import OpenWork
from podium.studio.judging.training import FAILED, training_state
from podium.studio.store.enums import Kind, Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import (
    AssessorProgress,
    CrowdLink,
    CrowdWorker,
    Lease,
    LogEntry,
    ProjectQuery,
)

_MOST_SKIPPED = 0.25
"""The most skips per judgment of one who is done because nothing is left."""


@dataclass(frozen=True)
class CrowdWork:
    """A worker's share.

    Attributes:
        needed: How many judgments they are to make.
        judged: How many they have made.
        code: The completion code, once they are done.
        parameter: The parameter of the link, which names the platform.
        skipped: How many tasks they skipped, if nothing is left for them and these are too many
            for the code; else 0.
    """

    needed: int
    judged: int
    code: str | None
    parameter: str
    skipped: int = 0


def crowd_work(connection: Connection, project: ProjectRow, user_id: int) -> CrowdWork | None:
    """A worker's share of a project, or None for everyone else."""
    links = connection.execute(
        select(
            CrowdLink.judgments,
            CrowdLink.code,
            CrowdLink.parameter,
            (CrowdLink.expires_at > REMOVED).label("is_live"),
            CrowdWorker.completed_at.is_not(None).label("is_completed"),
        )
        .join(CrowdWorker, CrowdWorker.link_id == CrowdLink.id)
        .where(CrowdLink.project_id == project.id, CrowdWorker.user_id == user_id)
        .order_by(CrowdLink.id)
    ).all()
    live = [link for link in links if link.is_live]
    if not live:
        return None
    # One who comes again by another link has another share to judge. What they judged for a link
    # that was removed since does not count for the next one.
    needed = sum(link.judgments for link in links if link.is_live or link.is_completed)
    judged = connection.scalar(
        select(AssessorProgress.judgments).where(
            AssessorProgress.project_id == project.id, AssessorProgress.user_id == user_id
        )
    )
    count = int(judged or 0)
    # A code that was shown stays.
    is_done = count >= needed or all(link.is_completed for link in live)
    skipped = 0
    if (
        not is_done
        and training_state(connection, project.id, user_id).state != FAILED
        and _nothing_left(connection, project, user_id, judged=count)
    ):
        skips = _skips(connection, project.id, user_id)
        is_done = skips <= _MOST_SKIPPED * count
        skipped = 0 if is_done else skips
    last = live[-1]
    return CrowdWork(needed, count, last.code if is_done else None, last.parameter, skipped)


def check_may_undo(connection: Connection, project_id: int, user_id: int) -> None:
    """Refuse to take back what a worker got a completion code for."""
    judged, paid = connection.execute(
        select(
            select(AssessorProgress.judgments)
            .where(AssessorProgress.project_id == project_id, AssessorProgress.user_id == user_id)
            .scalar_subquery(),
            select(func.sum(CrowdLink.judgments))
            .join(CrowdWorker, CrowdWorker.link_id == CrowdLink.id)
            .where(
                CrowdLink.project_id == project_id,
                CrowdWorker.user_id == user_id,
                CrowdWorker.completed_at.is_not(None),
            )
            .scalar_subquery(),
        )
    ).one()
    if paid is not None and (judged or 0) <= paid:
        raise RefusedError(
            409, "You have your completion code: judgments cannot be undone any more."
        )


def _skips(connection: Connection, project_id: int, user_id: int) -> int:
    """How many tasks someone skipped that they did not take back."""
    undo = aliased(LogEntry)
    undone = exists().where(undo.query_id == LogEntry.query_id, undo.undoes == LogEntry.position)
    statement = (
        select(func.count())
        .select_from(LogEntry)
        .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
        .where(
            ProjectQuery.project_id == project_id,
            LogEntry.user_id == user_id,
            LogEntry.kind == Kind.SKIP.value,
            ~undone,
        )
    )
    return connection.scalar(statement) or 0


def _nothing_left(
    connection: Connection, project: ProjectRow, user_id: int, *, judged: int
) -> bool:
    """Whether the project is done, or there will be nothing more for someone who has judged."""
    work = OpenWork(connection, project, user_id)
    if work.is_done:
        return True
    if not judged or work.has_unseen:
        return False
    now, first_end = time.time(), work.first_lease_end
    if first_end is not None and first_end < now:
        return False  # the next search offers what nobody holds any more
    if project.mode == Mode.PAIRS:
        # Answers to pairs make others worth asking, as long as there is somebody who answers.
        waits = first_end is not None or _others_may_come(connection, project.id)
        return work.mine_is_done or not waits
    return not _may_come_back(connection, project.id, user_id, now)


def _others_may_come(connection: Connection, project_id: int) -> bool:
    statement = select(CrowdLink.id).where(
        CrowdLink.project_id == project_id,
        CrowdLink.expires_at > time.time(),
        CrowdLink.workers_left > 0,
    )
    return connection.scalar(statement.limit(1)) is not None


def _may_come_back(connection: Connection, project_id: int, user_id: int, now: float) -> bool:
    """Whether someone holds a task, they themselves or another, that they have not answered."""
    answered = exists().where(
        LogEntry.query_id == Lease.query_id,
        LogEntry.user_id == user_id,
        or_(
            and_(
                LogEntry.left == Lease.left, func.coalesce(LogEntry.right, NO_ITEM) == Lease.right
            ),
            and_(LogEntry.left == Lease.right, LogEntry.right == Lease.left),
        ),
    )
    statement = (
        select(Lease.token)
        .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
        .where(
            ProjectQuery.project_id == project_id,
            Lease.released.is_(False),
            Lease.expires_at > now,
            or_(Lease.user_id == user_id, ~answered),
        )
    )
    return connection.scalar(statement.limit(1)) is not None

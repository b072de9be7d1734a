"""A crowd worker's share of a project, and when they are done with it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Connection, select

from podium.studio.accounts.crowd import REMOVED
from podium.studio.judging.open_work import OpenWork
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import (
    AssessorProgress,
    CrowdLink,
    CrowdWorker,
    Lease,
    ProjectQuery,
)


@dataclass(frozen=True)
class CrowdWork:
    """A worker's share.

    Attributes:
        needed: How many judgments they are to make.
        judged: How many they have made.
        code: The completion code, once they are done.
    """

    needed: int
    judged: int
    code: str | None


def crowd_work(connection: Connection, project: ProjectRow, user_id: int) -> CrowdWork | None:
    """A worker's share of a project, or None for everyone else."""
    links = connection.execute(
        select(CrowdLink.judgments, CrowdLink.code)
        .join(CrowdWorker, CrowdWorker.link_id == CrowdLink.id)
        .where(
            CrowdLink.project_id == project.id,
            CrowdLink.expires_at > REMOVED,
            CrowdWorker.user_id == user_id,
        )
        .order_by(CrowdLink.id)
    ).all()
    if not links:
        return None
    # One who comes again by another link has another share to judge.
    needed = sum(link.judgments for link in links)
    judged = connection.scalar(
        select(AssessorProgress.judgments).where(
            AssessorProgress.project_id == project.id, AssessorProgress.user_id == user_id
        )
    )
    count = int(judged or 0)
    is_done = count >= needed or _nothing_left(connection, project, user_id, judged=count)
    return CrowdWork(needed, count, links[-1].code if is_done else None)


def _nothing_left(
    connection: Connection, project: ProjectRow, user_id: int, *, judged: int
) -> bool:
    """Whether the project is done, or there will be nothing more for someone who has judged."""
    work = OpenWork(connection, project, user_id)
    if work.is_done:
        return True
    if not judged or work.has_unseen or _holds_a_task(connection, project.id, user_id):
        return False
    # Answers to pairs make others worth asking, so as long as somebody judges there may be more.
    return project.mode != Mode.PAIRS or work.mine_is_done or work.first_lease_end is None


def _holds_a_task(connection: Connection, project_id: int, user_id: int) -> bool:
    statement = (
        select(Lease.token)
        .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
        .where(
            ProjectQuery.project_id == project_id,
            Lease.user_id == user_id,
            Lease.released.is_(False),
            Lease.expires_at > time.time(),
        )
    )
    return connection.scalar(statement.limit(1)) is not None

"""The job queue: work that takes longer than a request, stored in a table until a worker claims it.

A worker sends heartbeats while it runs a job. When they stop, another worker claims the job, and
the first one can no longer finish it.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from podium.errors import DataError
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.rows import JobRow, fetch_one
from podium.studio.store.tables import Job
from podium.studio.store.tokens import new_secret

_OURS = re.compile(r"[A-Za-z0-9_-]{43}(\.[a-z]+){1,2}")
DEAD_AFTER = 30.0
"""After how many seconds without a word a worker is given up."""

_MOST_ATTEMPTS = 3
MOST_UNDER_WAY = 20
"""How many jobs of one kind may wait or run in a project at the same time."""
MAX_FILES = 50
"""How many files of exports a project keeps; the oldest make space."""


class State(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = (State.DONE.value, State.FAILED.value, State.CANCELLED.value)
UNDER_WAY = (State.WAITING.value, State.RUNNING.value)


class JobLostError(Exception):
    """Another worker has taken the job over, or someone has cancelled it."""


@dataclass
class JobContext:
    """A job that a worker has in its hands.

    Attributes:
        engine: The worker's own connections.
        settings: The server's settings.
        job: The job's row.
        share: How much of it is done, from 0 to 1; the worker passes it on.
        lost: Whether it is no longer theirs: it was cancelled, or another worker has it.
        end: Until when it may take, by the clock of `time.monotonic`.
    """

    engine: Engine
    settings: Settings
    job: JobRow
    share: float = field(default=0.0)
    lost: bool = field(default=False)
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.settings.job_seconds

    def progress(self, share: float) -> None:
        """Note how much is done; JobLostError if nobody waits for the rest."""
        self.share = share
        self.go_on()

    def go_on(self) -> None:
        """Check between two steps, however small, that the job is wanted and within its time."""
        if self.lost:
            raise JobLostError
        if time.monotonic() > self.end:
            raise DataError(
                f"it took longer than {self.settings.job_seconds:g} s, and was stopped",
                hint="Split it, or have PODIUM_STUDIO_JOB_SECONDS raised.",
            )

    def check(self, connection: Connection) -> None:
        """Refuse to go on in a transaction if the job is someone else's by now, or cancelled."""
        if connection.scalar(select(Job.id).where(_mine(self.job))) is None:
            raise JobLostError

    def finish(self, connection: Connection, result: JsonObject, file: str | None = None) -> None:
        """Say in the transaction that does the work that it is done: both hold, or neither."""
        done = connection.execute(
            update(Job)
            .where(_mine(self.job))
            .values(state=State.DONE.value, progress=1.0, result=result, file=file)
        )
        if done.rowcount == 0:
            raise JobLostError

    def alive(self) -> bool:
        """Report how far the job is, and note whether it is still this worker's."""

        def report(connection: Connection) -> bool:
            renewed = connection.execute(
                update(Job)
                .where(_mine(self.job))
                .values(alive_at=time.time(), progress=min(max(self.share, 0.0), 1.0))
            )
            return renewed.rowcount > 0

        self.lost = not in_transaction(self.engine, report)
        return not self.lost

    def fail(self, problem: str) -> None:
        """Say that it cannot be done, and why."""
        in_transaction(
            self.engine,
            lambda c: c.execute(
                update(Job)
                .where(_mine(self.job))
                .values(state=State.FAILED.value, error=problem[:2000])
            ),
        )


def enqueue(
    connection: Connection, project_id: int, user_id: int, kind: str, parameters: JsonObject
) -> int:
    """Put a job into the queue, and return its number."""
    waiting = connection.scalar(
        select(func.count()).where(
            Job.project_id == project_id, Job.kind == kind, Job.state.in_(UNDER_WAY)
        )
    )
    if (waiting or 0) >= MOST_UNDER_WAY:
        raise RefusedError(
            429, "%(count)s jobs of this kind wait in this project: cancel some, or wait.",
            count=int(waiting or 0),
        )  # fmt: skip
    now = time.time()
    return int(
        connection.execute(
            insert(Job)
            .values(
                project_id=project_id,
                user_id=user_id,
                kind=kind,
                parameters=parameters,
                state=State.WAITING.value,
                progress=0.0,
                attempts=0,
                result={},
                created_at=now,
                alive_at=now,
            )
            .returning(Job.id)
        ).scalar_one()
    )


def claim(connection: Connection, worker: str, kinds: list[str]) -> JobRow | None:
    """A job that nobody is at, now this worker's, or None.

    Projects take turns: the next job is of the one whose last job was the longest ago.
    """
    now = time.time()
    earlier = aliased(Job)
    last_turn = (
        select(func.max(earlier.alive_at))
        .where(earlier.project_id == Job.project_id, earlier.kind.in_(kinds), earlier.attempts > 0)
        .scalar_subquery()
    )
    row = connection.execute(
        select(Job.id, Job.attempts)
        .where(
            Job.kind.in_(kinds),
            or_(
                Job.state == State.WAITING.value,
                and_(Job.state == State.RUNNING.value, Job.alive_at < now - DEAD_AFTER),
            ),
        )
        .order_by(func.coalesce(last_turn, 0.0), Job.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Job)
    ).one_or_none()
    if row is None:
        return None
    exhausted = row.attempts >= _MOST_ATTEMPTS
    connection.execute(
        update(Job)
        .where(Job.id == row.id)
        .values(
            state=State.FAILED.value if exhausted else State.RUNNING.value,
            error=f"It was begun {row.attempts} times and never ended." if exhausted else None,
            # A name for each attempt: a worker that took a job back is another than it was.
            worker=f"{worker}.{row.attempts}",
            attempts=row.attempts + 1,
            alive_at=now,
            progress=0.0,
        )
    )
    if exhausted:
        return None
    return fetch_one(connection, select(Job.__table__).where(Job.id == row.id), JobRow)


def cancel(connection: Connection, job: JobRow) -> None:
    """End a job that is not done; a worker that is at it notices in a few seconds and stops."""
    updated = connection.execute(
        update(Job)
        .where(Job.id == job.id, Job.state.in_(UNDER_WAY))
        .values(state=State.CANCELLED.value, error="It was cancelled.")
    )
    if updated.rowcount == 0:
        raise RefusedError(409, "It has already ended.")


def forget_old_files(connection: Connection, project_id: int) -> list[str]:
    """Forget the files of a project's oldest exports, and return their names."""
    rows = connection.execute(
        select(Job.id, Job.file)
        .where(Job.project_id == project_id, Job.file.is_not(None))
        .order_by(Job.id.desc())
        .offset(MAX_FILES - 1)
    ).all()
    connection.execute(update(Job).where(Job.id.in_([row.id for row in rows])).values(file=None))
    return [row.file for row in rows]


def files_folder(settings: Settings) -> Path:
    """The folder for files that come and go with jobs."""
    settings.exports.mkdir(parents=True, exist_ok=True, mode=0o700)
    return settings.exports


def new_file(settings: Settings, ending: str) -> Path:
    """A path for a new file, with a name that nobody can guess."""
    return files_folder(settings) / f"{new_secret()}{ending}"


def is_ours(name: str) -> bool:
    """Whether a file's name is one that `new_file` gives; others in the folder are not touched.

    Example:
        >>> is_ours(f"{new_secret()}.upload"), is_ours("thesis.txt")
        (True, False)
    """
    return bool(_OURS.fullmatch(name))


def written_at(path: Path) -> float:
    """When a file was written; now if another worker was quicker to remove it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()


def _mine(job: JobRow) -> ColumnElement[bool]:
    return and_(Job.id == job.id, Job.worker == job.worker, Job.state == State.RUNNING.value)

"""The worker of a server process: a thread that takes jobs one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import structlog
from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import SQLAlchemyError

from podium.studio.errors import describe_error
from podium.studio.jobs.process import JobExecutor, JobFunction, execute
from podium.studio.jobs.queue import (
    ENDED,
    JobContext,
    claim,
    files_folder,
    is_ours,
    written_at,
)
from podium.studio.metrics import Metrics
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.tables import Job
from podium.studio.store.tokens import new_secret

_LOOK_EVERY = 1.0
_CLEANUP_SECONDS = 3600.0
_AFTER_FAILURE = 5.0
_KEPT_DAYS = 7.0


class Worker:
    """Takes jobs until it is stopped.

    Args:
        settings: The server's settings; the worker has connections of its own.
        kinds: What it can do.
        metrics: Where jobs and failures are counted.
        execute: What does a job: by default the worker's own thread.
        kept: Kinds of jobs whose rows are kept for good.
        cleanups: What removes expired rows of other packages, every hour; it is given the time.
        cleans_up: Whether it removes what has expired; one worker of a process does.
    """

    def __init__(
        self,
        settings: Settings,
        kinds: Mapping[str, JobFunction],
        metrics: Metrics | None = None,
        *,
        execute: JobExecutor = execute,
        kept: Sequence[str] = (),
        cleanups: Sequence[Callable[[Connection, float], object]] = (),
        cleans_up: bool = True,
    ) -> None:
        self._settings = settings
        self._kinds = dict(kinds)
        self._execute = execute
        self._metrics = metrics or Metrics()
        self._engine = connect(settings.model_copy(update={"pool_size": 3}))
        self._name = new_secret()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="podium-worker", daemon=True)
        self._log = structlog.get_logger("podium.studio")
        self._kept = tuple(kept)
        self._cleanups = tuple(cleanups)
        self._cleaned_up_at = 0.0 if cleans_up else float("inf")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more jobs; the one at hand may take a moment to its end, or goes to another."""
        self._stopping = True
        self._wake.set()
        self._thread.join(5)
        self._engine.dispose()

    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive() and not self._stopping

    def wake(self) -> None:
        """There is something new: look at once."""
        self._wake.set()

    def _run(self) -> None:
        self._metrics.set_worker(running=True)
        try:
            self._work()
        finally:
            self._metrics.set_worker(running=False)

    def _work(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                while not self._stopping and self._take_one():
                    pass
                self._clean_up()
            except SQLAlchemyError as error:
                # The database is away, or its tables are of another version: it may come back.
                self._metrics.worker_failed()
                self._log.warning("worker", **describe_error(error))
            except Exception as error:
                # A full disk, a folder that is gone: whatever it is, later jobs may well succeed.
                self._metrics.worker_failed()
                self._log.error("worker", **describe_error(error))
                self._wake.wait(_AFTER_FAILURE)
            self._wake.wait(_LOOK_EVERY)

    def _take_one(self) -> bool:
        kinds = list(self._kinds)
        job = in_transaction(self._engine, lambda c: claim(c, self._name[:32], kinds))
        if job is None:
            return False
        outcome = self._execute(
            self._kinds[job.kind], JobContext(self._engine, self._settings, job)
        )
        self._metrics.job_ended(job.kind, outcome.name)
        if outcome.name == "lost":
            self._log.warning("job", job=job.id, problem="cancelled or taken over")
        elif outcome.error:
            self._log.error("job", job=job.id, **outcome.error)
        if outcome.name == "interrupted":
            # The database is away, or the process died: another worker may do better at once.
            self._metrics.worker_failed()
            return False
        return True

    def _clean_up(self) -> None:
        """Remove jobs that are long done, and files that belong to none."""
        now = time.time()
        if now < self._cleaned_up_at + _CLEANUP_SECONDS:
            return
        self._cleaned_up_at = now
        oldest = now - 86400 * _KEPT_DAYS

        def forget(connection: Connection) -> None:
            connection.execute(
                delete(Job).where(
                    Job.state.in_(ENDED), Job.created_at < oldest, Job.kind.not_in(self._kept)
                )
            )
            for cleanup in self._cleanups:
                cleanup(connection, now)

        in_transaction(self._engine, forget)
        kept_files = in_transaction(
            self._engine, lambda c: set(c.scalars(select(Job.file).where(Job.file.is_not(None))))
        )
        for path in files_folder(self._settings).iterdir():
            # The folder may be a shared one: what is not ours stays, whatever its age.
            if not is_ours(path.name) or path.name in kept_files:
                continue
            if path.is_file() and written_at(path) < oldest:
                with suppress(OSError):
                    path.unlink()

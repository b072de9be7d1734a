"""The worker of a server process: a thread that takes jobs one after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import structlog
from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import SQLAlchemyError

from podium.errors import PodiumError
from podium.studio.database import connect, in_transaction
from podium.studio.jobs import LostError, State, Work, claim, files_folder
from podium.studio.leases import forget_old_leases
from podium.studio.secrets import new_secret
from podium.studio.settings import Settings
from podium.studio.tables import Job

Kinds = Mapping[str, Callable[[Work], None]]
"""To each kind of job the function that does it."""

_LOOK_EVERY = 1.0
_TELL_EVERY = 2.0
_TIDY_EVERY = 3600.0
_KEPT_DAYS = 7.0


class Worker:
    """Takes jobs until it is stopped.

    Args:
        settings: The server's settings; the worker has connections of its own.
        kinds: What it can do.
    """

    def __init__(self, settings: Settings, kinds: Kinds) -> None:
        self._settings = settings
        self._kinds = dict(kinds)
        self._engine = connect(settings.model_copy(update={"pool_size": 3}))
        self._name = new_secret()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="podium-worker", daemon=True)
        self._log = structlog.get_logger("podium.studio")
        self._tidied = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more jobs; the one at hand may take a moment to its end, or goes to another."""
        self._stopping = True
        self._wake.set()
        self._thread.join(5)
        self._engine.dispose()

    def nudge(self) -> None:
        """There is something new: look at once."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                while not self._stopping and self._take_one():
                    pass
                self._tidy()
            except SQLAlchemyError as error:
                # The database is away, or its tables are of another version: it may come back.
                self._log.warning("worker", problem=str(error)[:500])
            self._wake.wait(_LOOK_EVERY)

    def _take_one(self) -> bool:
        kinds = list(self._kinds)
        job = in_transaction(self._engine, lambda c: claim(c, self._name[:32], kinds))
        if job is None:
            return False
        work = Work(self._engine, self._settings, job)
        ended = threading.Event()
        teller = threading.Thread(target=self._tell, args=(work, ended), daemon=True)
        teller.start()
        try:
            self._kinds[job.kind](work)
        except LostError:
            self._log.warning("job", job=job.id, problem="taken over by another worker")
        except PodiumError as error:
            work.fail(str(error))
        except SQLAlchemyError:
            raise
        except Exception as error:
            # Whatever it is, the others wait for their turn, and who asked for it is told.
            self._log.error("job", job=job.id, exc_info=error)
            work.fail("Something went wrong; the server's log tells what.")
        finally:
            ended.set()
            teller.join()
        return True

    def _tell(self, work: Work, ended: threading.Event) -> None:
        while not ended.wait(_TELL_EVERY):
            with suppress(SQLAlchemyError):
                work.alive()

    def _tidy(self) -> None:
        """Remove jobs that are long done, and files that belong to none."""
        now = time.time()
        if now < self._tidied + _TIDY_EVERY:
            return
        self._tidied = now
        oldest = now - 86400 * _KEPT_DAYS

        def forget(connection: Connection) -> None:
            ended = Job.state.in_([State.DONE.value, State.FAILED.value])
            connection.execute(delete(Job).where(ended, Job.created_at < oldest))
            forget_old_leases(connection, now)

        in_transaction(self._engine, forget)
        wanted = in_transaction(
            self._engine, lambda c: set(c.scalars(select(Job.file).where(Job.file.is_not(None))))
        )
        for path in files_folder(self._settings).iterdir():
            if path.is_file() and path.name not in wanted and _written(path) < oldest:
                with suppress(OSError):
                    path.unlink()


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another worker was quicker
        return time.time()

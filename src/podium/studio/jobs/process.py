"""Jobs run in a child process of low priority, so that people who judge do not wait for them.

A thread of the server would share Python's interpreter lock with every request: an import of some
thousand documents would delay each answer. The child is started with the first job and kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from sqlalchemy.exc import SQLAlchemyError

from podium.errors import PodiumError
from podium.studio.errors import describe_error
from podium.studio.jobs.queue import JobContext, JobLostError
from podium.studio.settings import Settings

JobFunction = Callable[[JobContext], None]
"""What does the jobs of one kind."""

HEARTBEAT_SECONDS = 2.0


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended.

    Attributes:
        name: ``done``, ``failed``, ``lost`` (cancelled or taken over) or ``interrupted`` (the
            database went away; the job is begun again).
        error: The error for the log, if one was not foreseen.
    """

    name: str
    error: Mapping[str, str] = field(default_factory=dict)


JobExecutor = Callable[[JobFunction, JobContext], JobOutcome]
"""What lets a function do a job, here or elsewhere."""


def execute(function: JobFunction, context: JobContext) -> JobOutcome:
    """Do a job in this thread; its row says why it failed, if it does."""
    ended = threading.Event()
    heartbeat = threading.Thread(target=_send_heartbeats, args=(context, ended), daemon=True)
    heartbeat.start()
    try:
        return _execute(function, context)
    finally:
        ended.set()
        heartbeat.join()


def _execute(function: JobFunction, context: JobContext) -> JobOutcome:
    try:
        try:
            function(context)
        except PodiumError as error:
            context.fail(str(error))
            return JobOutcome("failed")
        except (JobLostError, SQLAlchemyError):
            raise
        except Exception as error:
            # Whatever it is, the other jobs wait for their turn, and its row says why.
            context.fail("Something went wrong. See the server's log for details.")
            return JobOutcome("failed", describe_error(error))
    except JobLostError:
        return JobOutcome("lost")
    except SQLAlchemyError as error:
        return JobOutcome("interrupted", describe_error(error))
    return JobOutcome("done")


def _send_heartbeats(context: JobContext, ended: threading.Event) -> None:
    while not ended.wait(HEARTBEAT_SECONDS):
        with suppress(SQLAlchemyError):
            context.alive()


_PROGRAM = "podium.studio.job_child"


class JobProcess:
    """A child process that does jobs one after the other.

    Args:
        settings: The server's settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._child: subprocess.Popen[str] | None = None

    def execute(self, _function: JobFunction, context: JobContext) -> JobOutcome:
        """Let the child do a job; if it dies, the job is begun again like any other."""
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            order = {"job": context.job.id, "worker": context.job.worker}
            child.stdin.write(json.dumps(order) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except OSError:
            line = ""
        if not line:
            code = child.wait()
            return JobOutcome("interrupted", {"error": f"the process of the job ended with {code}"})
        return JobOutcome(**json.loads(line))

    def close(self) -> None:
        """End the child; a job that it is at is begun again by another worker."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._child is None:
            return
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):  # an order that the child never read
                    pipe.close()
        self._child = None

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._child is not None and self._child.poll() is None:
                return self._child
            self._end()
            # The path of this process: with tests and editable installs it is not the default.
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._child = subprocess.Popen(  # noqa: S603 - our own module, no argument of others
                [sys.executable, "-P", "-m", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Matrices are of one query: threads that share one wait for each other.
                env={"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path},
                text=True,
                encoding="utf-8",
            )
            assert self._child.stdin is not None
            self._child.stdin.write(self._settings.model_dump_json() + "\n")
            self._child.stdin.flush()
            return self._child

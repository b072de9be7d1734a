"""One job done, with heartbeats while it is, and what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sqlalchemy.exc import SQLAlchemyError

from podium.errors import PodiumError
from podium.studio.jobs.queue import JobContext, JobLostError
from podium.studio.logs import describe_error

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
    """Do a job in this thread; whoever asked for it is told when it fails."""
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
            # Whatever it is, the others wait for their turn, and who asked for it is told.
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

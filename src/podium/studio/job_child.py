"""The program of the child process that does jobs: ids of jobs come in, outcomes go out.

It ends when its server does: then its input ends. A job that it is at is finished before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict

from sqlalchemy import Engine, select
from sqlalchemy.exc import SQLAlchemyError

from podium.studio.errors import describe_error
from podium.studio.jobs.process import JobFunction, JobOutcome, execute
from podium.studio.jobs.queue import JobContext
from podium.studio.judging.bulk_discards import DISCARD, RESTORE, run_discard, run_restore
from podium.studio.models.assessors import RUN
from podium.studio.models.audits import AUDIT, run_audit
from podium.studio.models.run import run_model
from podium.studio.reporting.reports import run_report
from podium.studio.reporting.workload import KIND as WORKLOAD
from podium.studio.reporting.workload import run_workload
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.rows import JobRow, fetch_one
from podium.studio.store.tables import Job
from podium.studio.transfer.exports import run_export
from podium.studio.transfer.imports import run_import

KINDS: dict[str, JobFunction] = {
    "import": run_import,
    "export": run_export,
    "report": run_report,
    DISCARD: run_discard,
    RESTORE: run_restore,
    AUDIT: run_audit,
    RUN: run_model,
    WORKLOAD: run_workload,
}
"""To each kind of job the function that does it."""

_NICENESS = 10


def main() -> None:
    """Do jobs until the input ends."""
    # Control and C in a terminal reach every process of it; the server decides what ends when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    # What a library prints must not come between the outcomes.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as outcomes:
        os.dup2(2, 1)
        settings = Settings.model_validate_json(sys.stdin.readline())
        engine = connect(settings.model_copy(update={"pool_size": 3}))
        for line in sys.stdin:
            order = json.loads(line)
            outcome = _outcome(engine, settings, order["job"], order["worker"])
            outcomes.write(json.dumps(asdict(outcome)) + "\n")
            outcomes.flush()


def _outcome(engine: Engine, settings: Settings, number: int, worker: str) -> JobOutcome:
    statement = select(Job.__table__).where(Job.id == number)
    try:
        job = in_transaction(engine, lambda c: fetch_one(c, statement, JobRow))
    except SQLAlchemyError as error:
        return JobOutcome("interrupted", describe_error(error))
    if job is None or job.worker != worker:
        return JobOutcome("lost")
    return execute(KINDS[job.kind], JobContext(engine, settings, job))


if __name__ == "__main__":
    main()

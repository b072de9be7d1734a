"""Jobs that tests do themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine

from podium.studio.jobs.queue import claim
from podium.studio.store.database import in_transaction
from podium.studio.store.rows import JobRow


def claimed_job(engine: Engine, kind: str, queue: Callable[[Connection], object]) -> JobRow:
    """Queue a job and claim it. One transaction does both: no server's worker can take it."""

    def work(connection: Connection) -> JobRow:
        queue(connection)
        job = claim(connection, "test", [kind])
        return job or pytest.fail(f"No job of kind {kind} was queued.")

    return in_transaction(engine, work)

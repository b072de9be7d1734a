"""The connection to the database, and transactions that survive its restarts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError

from podium.studio.settings import Settings

Found = TypeVar("Found")

_ATTEMPTS = 5
_RETRIED = {"40001", "40P01"}
"""Serialisation failure and deadlock, by PostgreSQL's numbers: trying again is the answer."""

_READING: dict[str, dict[str, Any]] = {
    "postgresql": {"isolation_level": "AUTOCOMMIT"},  # saves two messages, begin and commit
    "sqlite": {"podium_reads": True},
}


def connect(settings: Settings) -> Engine:
    """An engine for the settings' database."""
    if settings.database.startswith("sqlite"):
        engine = create_engine(settings.database, connect_args={"timeout": 30})
        _prepare_sqlite(engine)
        return engine
    return create_engine(
        settings.database,
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=10,
        pool_recycle=3600,
        # A server that hangs must not hang every request: connections are given up in time.
        connect_args={"connect_timeout": 5, "prepare_threshold": 3},
    )


def in_transaction(engine: Engine, work: Callable[[Connection], Found]) -> Found:
    """Do something in one transaction; once more if the connection broke or two met in a deadlock.

    What is done must be safe to repeat, because a commit whose answer was lost may have happened:
    tokens see to that where people answer.

    Example:
        >>> from sqlalchemy import text
        >>> engine = connect(Settings(database="sqlite://"))
        >>> in_transaction(engine, lambda connection: connection.scalar(text("select 6 * 7")))
        42
    """
    for attempt in range(_ATTEMPTS):
        try:
            with engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if attempt == _ATTEMPTS - 1 or not _passes(error):
                raise
            time.sleep(random.uniform(0.5, 1) * 0.05 * 2**attempt)  # noqa: S311 - no secret
    raise AssertionError("unreachable")


def reading(engine: Engine, work: Callable[[Connection], Found]) -> Found:
    """Read something; each statement sees what is committed when it starts.

    Example:
        >>> from sqlalchemy import text
        >>> engine = connect(Settings(database="sqlite://"))
        >>> reading(engine, lambda connection: connection.scalar(text("select 6 * 7")))
        42
    """
    return in_transaction(_reader(engine), work)


@lru_cache(maxsize=16)
def _reader(engine: Engine) -> Engine:
    return engine.execution_options(**_READING[engine.dialect.name])


def _passes(error: DBAPIError) -> bool:
    """Whether trying again may help."""
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _RETRIED:
        return True
    message = str(error.orig)
    return isinstance(error, OperationalError) and (
        "database is locked" in message or getattr(error.orig, "sqlstate", "") is None
    )


def _prepare_sqlite(engine: Engine) -> None:
    """One writer at a time from the first statement on; what is committed is on disk."""

    @event.listens_for(engine, "connect")
    def _settings(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy begins transactions, see below
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could meet another writer half-way.
        reads = connection.get_execution_options().get("podium_reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

"""The connection to the database, and transactions that survive its restarts.

A connection to PostgreSQL is given up when the server does not answer: the server's own limits
(``statement_timeout``) do not help when the server itself hangs, and neither do those of TCP while
its kernel acknowledges what arrives.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.rows import TupleRow
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from podium.studio.json_types import JsonObject
from podium.studio.settings import Settings

_LOOK_EVERY = 0.1
_NOT_READY = 0
"""What psycopg sends a waiting operation when there is nothing to read or write yet."""


class DatabaseTimeoutError(psycopg.OperationalError):
    """The database did not answer in time; asking it again at once would only wait again."""


class TimedConnection(psycopg.Connection[TupleRow]):
    """A connection whose operations end in time.

    Attributes:
        timeout_seconds: How long an operation may take; None for as long as it needs.
    """

    timeout_seconds: float | None = None

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _LOOK_EVERY,
        *more: Any,  # noqa: ANN401 - psycopg 3.3 has more of them than 3.2
        **named: Any,  # noqa: ANN401
    ) -> RV:
        """Wait for an operation."""
        if self.timeout_seconds is None:
            return super().wait(gen, interval, *more, **named)
        try:
            limited = _with_deadline(gen, self.timeout_seconds)
            return super().wait(limited, interval, *more, **named)
        except DatabaseTimeoutError:
            self.close()  # whatever it was doing, its state is unknown
            raise


def _with_deadline(gen: PQGen[RV], seconds: float) -> PQGen[RV]:
    end = time.monotonic() + seconds
    try:
        waiting_for = next(gen)
        while True:
            ready = yield waiting_for
            if ready == _NOT_READY and time.monotonic() > end:
                raise DatabaseTimeoutError(f"the database did not answer in {seconds:g} seconds")
            waiting_for = gen.send(ready)
    except StopIteration as ended:
        result: RV = ended.value
        return result


Result = TypeVar("Result")

_ATTEMPTS = 5
_RETRY_SECONDS = 8.0
"""People wait for an answer: after this long they get an error."""
_CONNECT_SECONDS = 5
_LOCK_SECONDS = 30
"""How long one that wants to write to SQLite waits for the one that does."""
_RETRIED = {"40001", "40P01", "23505", "23503"}
"""Serialisation failure and deadlock, by PostgreSQL's numbers, and a row that another transaction
added or deleted meanwhile: trying again is the answer, for then it is seen."""

_READING: dict[str, JsonObject] = {
    "postgresql": {"isolation_level": "AUTOCOMMIT"},  # saves two messages, begin and commit
    "sqlite": {"podium_reads": True},
}

_FILE = "select file from pragma_database_list where name = 'main'"
"""Which file a connection to SQLite has opened; empty in memory."""


def connect(settings: Settings, *, seconds: float | None = None, pooled: bool = True) -> Engine:
    """An engine for the settings' database.

    Args:
        settings: Where it is, and how many connections to hold.
        seconds: How long a statement may take before it is given up; None for as long as it needs.
        pooled: Whether connections are kept for the next transaction.
    """
    if settings.database.startswith("sqlite"):
        # Values can be passwords' hashes and people's addresses: no error may quote them.
        engine = create_engine(
            settings.database, connect_args={"timeout": _LOCK_SECONDS}, hide_parameters=True
        )
        _prepare_sqlite(engine)
        return engine
    pool: JsonObject = {"poolclass": NullPool}
    if pooled:
        pool = {"pool_size": settings.pool_size, "max_overflow": 0, "pool_timeout": 10,
                "pool_recycle": 3600}  # fmt: skip
    engine = create_engine(
        settings.database,
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "prepare_threshold": 3,
            # A server that is gone without a word is noticed in half a minute.
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 15_000,
            **_limits(settings, seconds),
        },
        **pool,
    )

    @event.listens_for(engine, "do_connect")
    def _connect(
        _dialect: object, _record: object, words: Sequence[str], named: dict[str, Any]
    ) -> TimedConnection:
        connection = TimedConnection.connect(*words, **named)
        # The server gives statements up first, and says so; this is for one that hangs.
        connection.timeout_seconds = None if seconds is None else seconds + 1
        return connection

    return engine


def _limits(settings: Settings, seconds: float | None) -> dict[str, str]:
    """What the server itself gives up: statements, waits for locks, and forgotten transactions."""
    if seconds is None or "options" in make_url(settings.database).query:
        return {}
    whole = int(seconds * 1000)
    limits = {
        "statement_timeout": whole,
        "lock_timeout": max(whole // 3, 1),
        "idle_in_transaction_session_timeout": 4 * whole,
    }
    return {"options": " ".join(f"-c {name}={value}" for name, value in limits.items())}


def in_transaction(engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Do something in one transaction; once more if the connection broke or two met in a deadlock.

    What is done must be safe to repeat, because a commit whose answer was lost may have happened:
    tokens see to that where people answer.

    Example:
        >>> from sqlalchemy import text
        >>> engine = connect(Settings(database="sqlite://"))
        >>> in_transaction(engine, lambda connection: connection.scalar(text("select 6 * 7")))
        42
    """
    end = time.monotonic() + _RETRY_SECONDS
    for attempt in range(_ATTEMPTS):
        try:
            with engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if attempt == _ATTEMPTS - 1 or not _passes(error) or time.monotonic() > end:
                raise
            time.sleep(random.uniform(0.5, 1) * 0.05 * 2**attempt)  # noqa: S311 - no secret
    raise AssertionError("unreachable")


def reading(engine: Engine, work: Callable[[Connection], Result]) -> Result:
    """Read something; each statement sees what is committed when it starts.

    Example:
        >>> from sqlalchemy import text
        >>> engine = connect(Settings(database="sqlite://"))
        >>> reading(engine, lambda connection: connection.scalar(text("select 6 * 7")))
        42
    """
    return in_transaction(_reader(engine), work)


def sqlite_file(connection: Connection) -> str:
    """The file of a SQLite database, whatever its URL: of a link, or with parameters.

    Example:
        >>> reading(connect(Settings(database="sqlite://")), sqlite_file)  # in memory
        ''
    """
    return str(connection.scalar(text(_FILE)) or "")


@lru_cache(maxsize=16)
def _reader(engine: Engine) -> Engine:
    return engine.execution_options(**_READING[engine.dialect.name])


def _passes(error: DBAPIError) -> bool:
    """Whether trying again may help."""
    if isinstance(error.orig, DatabaseTimeoutError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _RETRIED:
        return True
    message = str(error.orig)
    return isinstance(error, OperationalError) and (
        "database is locked" in message or getattr(error.orig, "sqlstate", "") is None
    )


def _prepare_sqlite(engine: Engine) -> None:
    """One writer at a time from the first statement on; what is committed is on disk."""

    @event.listens_for(engine, "do_connect")
    def _create(
        _dialect: object, _record: object, arguments: tuple[str, ...], options: dict[str, object]
    ) -> None:
        # SQLite would create it by the umask, for others to read; its log has the same permissions.
        name = arguments[0]
        if options.get("uri"):
            parts = urlsplit(name)
            creates = parse_qs(parts.query).get("mode", ["rwc"]) == ["rwc"]
            name = unquote(parts.path) if creates else ":memory:"
        if name != ":memory:":
            _check_log_of(name)
            with suppress(OSError):  # SQLite's own message is better
                Path(name).touch(mode=0o600)

    @event.listens_for(engine, "connect")
    def _settings(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # SQLAlchemy begins transactions, see below
        name = connection.execute(_FILE).fetchone()[0]
        record.info["file"] = name, _number_of_file(name)
        write_ahead(connection)
        # What is deleted, such as an address, is overwritten; not every build of SQLite does so.
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "checkout")
    def _check_file(
        _connection: sqlite3.Connection, record: ConnectionPoolEntry, _proxy: object
    ) -> None:
        # Where somebody put another file in its place, such as a backup, answers would be written
        # to the one that has no name any more, and be lost.
        name, number = record.info["file"]
        if _number_of_file(name) != number:
            raise InvalidatePoolError("another file has the name of the database")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could meet another writer half-way.
        reads = connection.get_execution_options().get("podium_reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _check_log_of(name: str) -> None:
    """Refuse to create a database beside another's write-ahead log, which SQLite would delete."""
    file = Path(name).resolve()
    log = file.with_name(f"{file.name}-wal")
    with suppress(OSError):
        if log.stat().st_size and not (file.exists() and file.stat().st_size):
            raise sqlite3.OperationalError(f"{log.name} is of a database that was moved away")


def _number_of_file(name: str) -> tuple[int, int] | None:
    """Which file has a name now; None if there is none, or the database is in memory."""
    if not name:
        return None
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def write_ahead(connection: sqlite3.Connection) -> None:
    """Keep a write-ahead log.

    Where several open a new file together, SQLite may say at once that it is locked: unlike
    statements, this change does not always wait.
    """
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > end:
                raise
            time.sleep(random.uniform(0.01, 0.03))  # noqa: S311 - no secret
        else:
            return


def storable(text: str) -> str:
    r"""Text as PostgreSQL can keep it: without NUL, and without halves of characters.

    Example:
        >>> storable("a\x00b")
        'ab'
    """
    return text.replace("\x00", "").encode("utf-8", "replace").decode()

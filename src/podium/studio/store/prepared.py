"""Statements that every answer waits for, run by the database's driver itself.

With SQLAlchemy a statement takes about twice as long as with the driver alone (``python -m
benchmarks.studio`` prints both), most of it to find out what it has found out before. So its text
is made once, and on PostgreSQL the driver runs it. On SQLite, where one person tries things out,
SQLAlchemy does.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


class Prepared:
    """A statement whose values come by name.

    Args:
        statement: Made of SQLAlchemy's parts, with a `bindparam` for each value.

    Example:
        >>> from sqlalchemy import bindparam, literal, select
        >>> from podium.studio.store.database import connect, reading
        >>> from podium.studio.settings import Settings
        >>> double = Prepared(select((literal(2) * bindparam("number")).label("twice")))
        >>> engine = connect(Settings(database="sqlite://"))
        >>> reading(engine, lambda c: double.one(c, number=21).twice)
        42
    """

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._text: str | None = None
        self._fixed: dict[str, Any] = {}
        self._row: Callable[[Iterable[Any]], Any] | None = None

    def rows(self, connection: Connection, **values: Any) -> list[Any]:
        """What a statement finds; columns are attributes."""
        if connection.dialect.name != "postgresql":
            return list(connection.execute(self._statement, values).all())
        cursor = self._executed(connection, values)
        if self._row is None:
            names = [column.name for column in cursor.description or ()]
            row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]
            self._row = row._make
        return [self._row(row) for row in cursor.fetchall()]

    def one(self, connection: Connection, **values: Any) -> Any:
        """The one row that a statement finds, or None."""
        rows = self.rows(connection, **values)
        return rows[0] if rows else None

    def run(self, connection: Connection, **values: Any) -> int:
        """Change something; returns how many rows."""
        if connection.dialect.name != "postgresql":
            return int(connection.execute(self._statement, values).rowcount)
        return int(self._executed(connection, values).rowcount)

    def _executed(self, connection: Connection, values: dict[str, Any]) -> psycopg.Cursor[Any]:
        if self._text is None:
            self._prepare(connection, values)
        driver: Any = connection.connection.driver_connection
        cursor: psycopg.Cursor[Any] = driver.cursor(binary=True)
        try:
            return cursor.execute(self._text or "", {**self._fixed, **values})
        except psycopg.Error as error:
            raise _as_sqlalchemy(connection, self._text or "", error) from error

    def _prepare(self, connection: Connection, values: dict[str, Any]) -> None:
        made = self._statement.compile(
            dialect=connection.dialect,
            # An insert that names no values takes those that come first.
            column_keys=list(values) if self._statement.is_insert else None,
        )
        self._fixed = {name: value for name, value in made.params.items() if name not in values}
        self._text = str(made)


def _as_sqlalchemy(connection: Connection, text: str, error: psycopg.Error) -> BaseException:
    """The error as everything else expects it; a broken connection is given up."""
    driver: Any = connection.connection.driver_connection
    broken = bool(driver.closed)
    if broken:
        connection.invalidate(error)
        # The others broke with it, most likely: each would fail once more.
        connection.engine.dispose()
    return DBAPIError.instance(
        text,
        None,
        error,
        psycopg.Error,
        connection_invalidated=broken,
        dialect=connection.dialect,
    )

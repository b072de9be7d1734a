"""What differs between PostgreSQL and SQLite: INSERT … ON CONFLICT, and numbers of transactions.

By numbers of transactions readers know that they have seen everything up to one. On PostgreSQL
a change carries the number of the transaction that made it. Transactions commit in another order
than they begin, so a reader who has seen change 7 may still meet change 6 later, but none below the
oldest transaction that was running when it looked. SQLite has one writer at a time: there, a count
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import BigInteger
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from podium.studio.store.tables import Base


class transaction_number(FunctionElement[int]):  # noqa: N801 - written as the function it is
    """The number of this transaction, larger than those that ended before it began."""

    type = BigInteger()
    inherit_cache = True


class oldest_running(FunctionElement[int]):  # noqa: N801 - written as the function it is
    """The lowest number that a change of a project may have of which this statement sees nothing.

    Takes the project's id: on SQLite, numbers start again from those that are left when another
    project is deleted, and only those of the project itself are never given twice.
    """

    type = BigInteger()
    inherit_cache = True


@compiles(transaction_number, "postgresql")
def _number_postgresql(*_: object, **__: object) -> str:
    return "CAST(CAST(pg_current_xact_id() AS text) AS bigint)"


@compiles(transaction_number, "sqlite")
def _number_sqlite(*_: object, **__: object) -> str:
    return "(SELECT coalesce(max(numbered.changed), 0) + 1 FROM queries AS numbered)"


@compiles(oldest_running, "postgresql")
def _oldest_postgresql(*_: object, **__: object) -> str:
    return "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint)"


@compiles(oldest_running, "sqlite")
def _oldest_sqlite(element: oldest_running, compiler: SQLCompiler, **options: object) -> str:
    project = compiler.process(element.clauses, **options)
    # What is put in is a placeholder.
    numbered = f"FROM queries AS numbered WHERE numbered.project_id = {project}"
    return f"(SELECT coalesce(max(numbered.changed), 0) + 1 {numbered})"


Insert: TypeAlias = Callable[[type[Base]], postgresql.Insert | sqlite.Insert]
"""A dialect's ``insert``."""

INSERTS: dict[str, Insert] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
"""``insert`` with ``on_conflict_do_update``, by the dialect's name."""

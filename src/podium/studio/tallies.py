"""How much everyone has judged, counted as they go."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam
from sqlalchemy.dialects import postgresql, sqlite

from podium.studio.tables import Tally


def _statement(insert: Any) -> Any:
    statement = insert(Tally).values(
        query_id=bindparam("query"),
        user_id=bindparam("user"),
        judgments=1,
        seconds=bindparam("spent"),
        last_at=bindparam("now"),
    )
    return statement.on_conflict_do_update(
        index_elements=[Tally.query_id, Tally.user_id],
        set_={
            "judgments": Tally.judgments + 1,
            "seconds": Tally.seconds + statement.excluded.seconds,
            "last_at": statement.excluded.last_at,
        },
    )


_COUNT = {"postgresql": _statement(postgresql.insert), "sqlite": _statement(sqlite.insert)}


def count_judgment(
    connection: Connection, query_id: int, user_id: int, seconds: float, now: float
) -> None:
    """One more judgment by someone of a query."""
    connection.execute(
        _COUNT[connection.dialect.name],
        {"query": query_id, "user": user_id, "spent": seconds, "now": now},
    )

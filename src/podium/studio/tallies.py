"""How much everyone has judged, counted as they go."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite

from podium.studio.prepared import Prepared
from podium.studio.tables import Query, Tally


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


_COUNT = {
    "postgresql": Prepared(_statement(postgresql.insert)),
    "sqlite": Prepared(_statement(sqlite.insert)),
}
_MINE = Prepared(
    select(
        func.coalesce(func.sum(Tally.judgments), 0).label("judged"),
        func.coalesce(func.sum(Tally.seconds), 0.0).label("seconds"),
    )
    .join(Query, Query.id == Tally.query_id)
    .where(Tally.user_id == bindparam("user"), Query.project_id == bindparam("project"))
)


def count_judgment(
    connection: Connection, query_id: int, user_id: int, seconds: float, now: float
) -> None:
    """One more judgment by someone of a query."""
    _COUNT[connection.dialect.name].run(
        connection, query=query_id, user=user_id, spent=seconds, now=now
    )


def judged_by(connection: Connection, project_id: int, user_id: int) -> tuple[int, float]:
    """How much someone has judged in a project, and how many seconds that took."""
    row = _MINE.one(connection, user=user_id, project=project_id)
    return int(row.judged), float(row.seconds)

"""Running totals of judgments and seconds per assessor, updated with each answer."""

from __future__ import annotations

from sqlalchemy import Connection, Executable, bindparam, literal_column, select

from podium.studio.store.dialects import INSERTS, Insert
from podium.studio.store.rows import ProjectQueryRow
from podium.studio.store.tables import AssessorProgress, JudgmentCount


def _of_query(insert: Insert) -> Executable:
    statement = insert(JudgmentCount).values(
        query_id=bindparam("query"),
        user_id=bindparam("user"),
        judgments=bindparam("more"),
        seconds=bindparam("spent"),
        last_at=bindparam("last"),
    )
    return statement.on_conflict_do_update(
        index_elements=[JudgmentCount.query_id, JudgmentCount.user_id],
        set_={
            "judgments": JudgmentCount.judgments + statement.excluded.judgments,
            "seconds": JudgmentCount.seconds + statement.excluded.seconds,
            "last_at": statement.excluded.last_at,
        },
    )


def _of_project(insert: Insert) -> Executable:
    statement = insert(AssessorProgress).values(
        user_id=bindparam("user"),
        project_id=bindparam("project"),
        judgments=bindparam("more"),
        seconds=bindparam("spent"),
        open_changed=literal_column("0"),
        open_id=literal_column("0"),
        assigned_changed=literal_column("0"),
        assigned_id=literal_column("0"),
    )
    return statement.on_conflict_do_update(
        index_elements=[AssessorProgress.user_id, AssessorProgress.project_id],
        set_={
            "judgments": AssessorProgress.judgments + statement.excluded.judgments,
            "seconds": AssessorProgress.seconds + statement.excluded.seconds,
        },
    )


_OF_QUERY = {name: _of_query(insert) for name, insert in INSERTS.items()}
_OF_PROJECT = {name: _of_project(insert) for name, insert in INSERTS.items()}
_MINE = select(AssessorProgress.judgments, AssessorProgress.seconds).where(
    AssessorProgress.user_id == bindparam("user"),
    AssessorProgress.project_id == bindparam("project"),
)


def count_judgment(
    connection: Connection,
    query: ProjectQueryRow,
    user_id: int,
    *,
    judgments: int,
    seconds: float,
    last_at: float,
) -> None:
    """Add an answer to the totals, or subtract undone ones.

    Args:
        connection: The transaction.
        query: The query's row.
        user_id: Whose answer.
        judgments: 1 for a judgment that counts, 0 for one that does not, negative for undone ones.
        seconds: How long those took.
        last_at: The time of their last answer that was not undone; 0 if there is none.
    """
    name = connection.dialect.name
    values = {"user": user_id, "more": judgments, "spent": seconds}
    connection.execute(_OF_QUERY[name], {"query": query.id, "last": last_at, **values})
    connection.execute(_OF_PROJECT[name], {"project": query.project_id, **values})


def user_judgments(connection: Connection, project_id: int, user_id: int) -> tuple[int, float]:
    """Someone's number of judgments in a project, and the seconds they took."""
    row = connection.execute(_MINE, {"user": user_id, "project": project_id}).one_or_none()
    return (0, 0.0) if row is None else (row.judgments, row.seconds)

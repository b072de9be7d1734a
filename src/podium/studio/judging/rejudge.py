"""Rejudging: undo all verdicts of a loop, so that they are asked again.

All of them, because nobody knows which one is wrong: if one verdict of a loop is missing, the
others imply it, and it would not be asked.

The log is append-only: each verdict is undone by an entry in the name of its author, with the
manager who requested it as the reason; the audit log records it too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Connection, Engine, select

from podium.studio.accounts.audit import record
from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.judging.judged import load_judged_query
from podium.studio.judging.judgment_log import append_undo, update_query
from podium.studio.judging.leases import active_leases
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import Project, ProjectQuery
from podium.studio.store.tokens import new_token


def rejudge(engine: Engine, who: Member, query_id: int, loop: Sequence[int]) -> int:
    """Undo everyone's verdicts on neighbours in a loop; returns the number of verdicts.

    Args:
        engine: The database.
        who: The manager who requests it.
        query_id: The query.
        loop: Positions of documents; the last one is a neighbour of the first. Two are a pair.
    """

    def work(connection: Connection) -> int:
        statement = select(ProjectQuery.__table__).where(
            ProjectQuery.id == query_id, ProjectQuery.project_id == who.project.id
        )
        query = fetch_one(connection, statement.with_for_update(), ProjectQueryRow)
        if query is None:
            raise RefusedError(404, "The query does not exist.")
        if who.project.mode != Mode.PAIRS:
            raise RefusedError(409, "Only pairs can be judged again.")
        return _undo_verdicts(connection, who, query, loop)

    return in_transaction(engine, work)


def _undo_verdicts(
    connection: Connection, who: Member, query: ProjectQueryRow, loop: Sequence[int]
) -> int:
    pairs = {frozenset(pair) for pair in zip(loop, [*loop[1:], loop[0]], strict=True)}
    statement = select(Project.__table__).where(Project.id == who.project.id)
    project = ProjectRow(*connection.execute(statement).one())
    judged = load_judged_query(connection, project, query)
    undone = {entry.undoes for entry in judged.log if entry.kind is Kind.UNDO}
    verdicts = [
        entry
        for entry in judged.log
        if entry.kind is Kind.VERDICT
        and entry.purpose is Purpose.MAIN
        and {entry.left, entry.right} in pairs
        and entry.position not in undone
    ]
    if not verdicts:
        raise RefusedError(404, "There are no verdicts on these documents to undo.")
    now, token = time.time(), new_token()
    reason = f"undone by {who.person.id}"
    append_undo(connection, judged.state, query, verdicts, token, now, reason)
    query_leases = active_leases(connection, query.id, now)
    update_query(connection, query, judged.state, query_leases, opened=True)
    record(
        connection, who.person.id, who.project.id, "requested new judgments",
        query=query.name, documents=list(loop), verdicts=len(verdicts),
    )  # fmt: skip
    return len(verdicts)

"""Writes to a query: log entries, and the row with its current state."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, bindparam, insert, update
from sqlalchemy.orm import InstrumentedAttribute

from podium.studio.json_types import JsonObject
from podium.studio.judging.answer_choices import AnswerEntry
from podium.studio.judging.done_events import announce_done
from podium.studio.judging.judgment_counts import count_judgment
from podium.studio.judging.leases import QueryLeases
from podium.studio.judging.modes import QueryLogEntry
from podium.studio.judging.query_state import QueryState
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.prepared import PreparedWrite
from podium.studio.store.rows import ProjectQueryRow
from podium.studio.store.tables import LogEntry, ProjectQuery, QueryAssignment
from podium.studio.store.tokens import new_token
from podium.studio.store.transaction_ids import transaction_number

_FORECAST_EVERY = 16
"""The number of judgments left is estimated again after this many entries."""

_INSERT = PreparedWrite(insert(LogEntry))


def _update_statement(
    changed: InstrumentedAttribute[int] | ColumnElement[int],
) -> PreparedWrite:
    return PreparedWrite(
        update(ProjectQuery)
        .where(ProjectQuery.id == bindparam("query"))
        .values(
            entries=bindparam("entries"),
            judgments=bindparam("stand"),
            free=bindparam("free"),
            available=bindparam("is_available"),
            changed=changed,
            lease_expiry=bindparam("expiry"),
            done=bindparam("is_done"),
            expected_left=bindparam("left"),
            withdrawn=bindparam("is_withdrawn"),
        )
    )


_UPDATE = _update_statement(ProjectQuery.changed)
_UPDATE_AND_REOPEN = _update_statement(transaction_number())
_ASSIGNED_DONE = PreparedWrite(
    update(QueryAssignment)
    .where(QueryAssignment.query_id == bindparam("query"))
    .values(done=bindparam("is_done"))
)


def append(
    connection: Connection,
    state: QueryState,
    query_id: int,
    user_id: int,
    parts: list[AnswerEntry],
    purpose: Purpose,
    token: UUID,
    *,
    late: bool,
    counts: bool,
    reason: str | None,
    at: float,
    seconds: float,
    replies: JsonObject | None = None,
) -> None:
    """Append an answer's entries to a query's log, and apply them to its state."""
    for number, part in enumerate(parts):
        spent = seconds if number == 0 else 0.0
        entry = QueryLogEntry(
            state.seen, user_id, part.kind, part.left, part.right, part.value,
            None, purpose, counts, token, at, spent, replies=replies if number == 0 else None,
        )  # fmt: skip
        _INSERT.run(connection, **_row(entry, query_id, number, late, reason))
        state.apply(entry)


def append_undo(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    undone: list[QueryLogEntry],
    token: UUID,
    at: float,
    reason: str | None = None,
    manager_id: int | None = None,
) -> None:
    """Append undo entries, each in the name of the entry's author, and apply them to the state.

    Args:
        connection: The transaction.
        state: The query's state.
        query: The query's row.
        undone: The answers.
        token: Identifies the undo.
        at: When.
        reason: Why.
        manager_id: Who undoes them, if not their author.
    """
    targets = [(entry, entry.position) for entry in undone]
    _append_undos(connection, state, query, targets, token, at, reason, manager_id)
    _count(connection, state, query, undone, -1)


def append_restoration(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    undone: list[QueryLogEntry],
    token: UUID,
    at: float,
    manager_id: int,
) -> None:
    """Bring undone answers back: append undos of the entries that undid them."""
    targets = [
        (entry, undo) for entry in undone if (undo := state.undo_of(entry.position)) is not None
    ]
    _append_undos(connection, state, query, targets, token, at, None, manager_id)
    _count(connection, state, query, undone, 1)


def append_withdrawal(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    document: int | None,
    manager_id: int,
    at: float,
    reason: str | None,
) -> None:
    """Append that a document, or the query, is withdrawn."""
    entry = QueryLogEntry(
        state.seen, manager_id, Kind.WITHDRAW, document, None, None,
        None, Purpose.MAIN, True, new_token(), at, 0.0,
    )  # fmt: skip
    _INSERT.run(connection, **_row(entry, query.id, 0, False, reason, manager_id))
    state.apply(entry)


def append_readmission(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    withdrawal: int,
    manager_id: int,
    at: float,
) -> None:
    """Append that what an entry withdrew is back."""
    undo = QueryLogEntry(
        state.seen, manager_id, Kind.UNDO, None, None, None,
        withdrawal, Purpose.MAIN, True, new_token(), at, 0.0,
    )  # fmt: skip
    _INSERT.run(connection, **_row(undo, query.id, 0, False, None, manager_id))
    state.apply(undo)


def _append_undos(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    targets: list[tuple[QueryLogEntry, int]],
    token: UUID,
    at: float,
    reason: str | None,
    manager_id: int | None,
) -> None:
    """Append undos of the entries at some positions, each in the name of an answer's author."""
    for number, (entry, position) in enumerate(targets):
        undo = QueryLogEntry(
            state.seen, entry.user, Kind.UNDO, None, None, None,
            position, entry.purpose, True, token, at, 0.0,
        )  # fmt: skip
        _INSERT.run(connection, **_row(undo, query.id, number, False, reason, manager_id))
        state.apply(undo)


def _count(
    connection: Connection,
    state: QueryState,
    query: ProjectQueryRow,
    entries: list[QueryLogEntry],
    sign: int,
) -> None:
    """Add answers that were brought back to their authors' totals, or subtract undone ones."""
    for user in {entry.user for entry in entries}:
        judgments = [entry for entry in entries if entry.user == user and entry.is_judgment]
        count_judgment(
            connection,
            query,
            user,
            judgments=sign * len({entry.token for entry in judgments}),
            seconds=sign * sum(entry.seconds for entry in judgments),
            last_at=state.last_at(user),
        )


def update_query(
    connection: Connection,
    query: ProjectQueryRow,
    state: QueryState,
    query_leases: QueryLeases,
    *,
    opened: bool = False,
    corrected: bool = False,
) -> float:
    """Update a query's row to its state; returns the estimated number of judgments left.

    Args:
        connection: The transaction.
        query: The query's row, as it was read under its lock.
        state: The query's state.
        query_leases: Its active leases.
        opened: Whether tasks may have become available in a way that the state cannot tell.
        corrected: Whether a manager changed it, so that what is left is to be estimated again.
    """
    missing = state.missing()
    done = not missing
    left = query.expected_left
    if done:
        left = 0.0
    elif (
        query.done
        or corrected
        or state.seen > query.entries + 1
        or state.seen // _FORECAST_EVERY != query.entries // _FORECAST_EVERY
    ):
        left = state.mode.expected_left()
    else:
        # Undone judgments are needed again.
        left = max(left - (state.judgments - query.judgments), 1.0)
    free = _free(missing, query_leases)
    # `opened_more` comes first: it remembers what is missing for the next call.
    more = state.opened_more(missing, query.entries) or query_leases.freed or opened
    more = more or not query.available
    statement = _UPDATE_AND_REOPEN if free and more else _UPDATE
    statement.run(
        connection,
        query=query.id,
        entries=state.seen,
        stand=state.judgments,
        free=free,
        is_available=free > 0,
        expiry=_look_again_at(query, query_leases),
        is_done=done,
        left=left,
        is_withdrawn=state.withdrawn,
    )
    if done != query.done:
        _ASSIGNED_DONE.run(connection, query=query.id, is_done=done)
        if done:
            announce_done(connection, query, withdrawn=state.withdrawn)
    return float(left)


def _free(missing: dict[tuple[int, int], int], query_leases: QueryLeases) -> int:
    """The number of open tasks that nobody has leased."""
    held = Counter(each.pair for each in query_leases.held)
    return sum(max(count - held[pair], 0) for pair, count in missing.items())


def _look_again_at(query: ProjectQueryRow, query_leases: QueryLeases) -> float | None:
    """When to look for expired leases.

    The stored time is kept if it is early enough: each new value would add an index entry.
    """
    first = min((each.expires_at for each in query_leases.held), default=None)
    if first is None or query.lease_expiry is None:
        return first
    return float(query.lease_expiry) if query_leases.since < query.lease_expiry <= first else first


def _row(
    entry: QueryLogEntry,
    query_id: int,
    part: int,
    late: bool,
    reason: str | None,
    manager_id: int | None = None,
) -> JsonObject:
    return {
        "query_id": query_id,
        "place": entry.position,
        "user_id": entry.user,
        "kind": entry.kind.value,
        "left": entry.left,
        "right": entry.right,
        "value": None if entry.value is None else int(entry.value),
        "undoes": entry.undoes,
        "purpose": entry.purpose.value,
        "counts": entry.counts,
        "late": late,
        "token": entry.token,
        "part": part,
        "reason": reason,
        "at": entry.at,
        "seconds": entry.seconds,
        "manager_id": manager_id,
        "replies": entry.replies,
    }

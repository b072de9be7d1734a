"""What is written when a query moves on: entries of its log, and where it stands."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, insert, update

from podium.studio.judging.answers import Part
from podium.studio.judging.judgment_counts import count_judgment
from podium.studio.judging.leases import Holding
from podium.studio.judging.modes import Said
from podium.studio.judging.query_state import Board
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import Assigned, LogEntry, Query
from podium.studio.store.transaction_ids import transaction_number

_FORECAST_EVERY = 16
"""After how many entries the number of judgments left is worked out anew."""

_ADD = Prepared(insert(LogEntry))


def _moved(changed: Any) -> Prepared:
    return Prepared(
        update(Query)
        .where(Query.id == bindparam("query"))
        .values(
            entries=bindparam("entries"),
            judgments=bindparam("stand"),
            free=bindparam("free"),
            available=bindparam("is_available"),
            changed=changed,
            lease_expiry=bindparam("expiry"),
            done=bindparam("is_done"),
            expected_left=bindparam("left"),
        )
    )


_MOVED = _moved(Query.changed)
_MOVED_AND_OPENED = _moved(transaction_number())
_ASSIGNED_DONE = Prepared(
    update(Assigned)
    .where(Assigned.query_id == bindparam("query"))
    .values(done=bindparam("is_done"))
)


def append(
    connection: Connection,
    board: Board,
    query_id: int,
    user_id: int,
    parts: list[Part],
    purpose: Purpose,
    token: UUID,
    *,
    late: bool,
    counts: bool,
    reason: str | None,
    at: float,
    seconds: float,
) -> None:
    """Add an answer's entries to a query's log, and tell its board."""
    for number, part in enumerate(parts):
        spent = seconds if number == 0 else 0.0
        said = Said(
            board.seen, user_id, part.kind, part.left, part.right, part.value,
            None, purpose, counts, token, at, spent,
        )  # fmt: skip
        _ADD.run(connection, **_row(said, query_id, number, late, reason))
        board.take(said)


def append_undo(
    connection: Connection,
    board: Board,
    query: Any,
    gone: list[Said],
    token: UUID,
    at: float,
    reason: str | None = None,
) -> None:
    """Add that some entries no longer stand, each in the name of who made it; tell the board."""
    for number, said in enumerate(gone):
        undo = Said(
            board.seen, said.user, Kind.UNDO, None, None, None,
            said.place, said.purpose, True, token, at, 0.0,
        )  # fmt: skip
        _ADD.run(connection, **_row(undo, query.id, number, False, reason))
        board.take(undo)
    for user in {said.user for said in gone}:
        taken = [said for said in gone if said.user == user and said.is_judgment]
        count_judgment(
            connection,
            query,
            user,
            judgments=-len({said.token for said in taken}),
            seconds=-sum(said.seconds for said in taken),
            last_at=board.last_at(user),
        )


def settle(
    connection: Connection, query: Any, board: Board, holding: Holding, *, opened: bool = False
) -> float:
    """Write down where a query stands; returns about how many judgments are left.

    Args:
        connection: The transaction.
        query: The query's row, as it was read under its lock.
        board: The query's board.
        holding: Who holds what of it.
        opened: Whether something may be open to someone that the board cannot tell.
    """
    missing = board.missing()
    done = not missing
    left = query.expected_left
    if done:
        left = 0.0
    elif (
        query.done
        or board.seen > query.entries + 1
        or board.seen // _FORECAST_EVERY != query.entries // _FORECAST_EVERY
    ):
        left = board.panel.expected_left()
    else:
        # What was taken back is needed again.
        left = max(left - (board.judgments - query.judgments), 1.0)
    free = _free(missing, holding)
    # The board is asked first, so that it remembers what was missing.
    more = board.opens_more(missing, query.entries) or holding.freed or opened
    more = more or not query.available
    statement = _MOVED_AND_OPENED if free and more else _MOVED
    statement.run(
        connection,
        query=query.id,
        entries=board.seen,
        stand=board.judgments,
        free=free,
        is_available=free > 0,
        expiry=_look_again_at(query, holding),
        is_done=done,
        left=left,
    )
    if done != query.done:
        _ASSIGNED_DONE.run(connection, query=query.id, is_done=done)
    return float(left)


def _free(missing: dict[tuple[int, int], int], holding: Holding) -> int:
    """How many tasks are left for others while some are held."""
    held = Counter(each.pair for each in holding.held)
    return sum(max(count - held[pair], 0) for pair, count in missing.items())


def _look_again_at(query: Any, holding: Holding) -> float | None:
    """When to look for leases that ended.

    What is written down already stays if it is not too late: a new value each time would be a new
    entry of an index each time.
    """
    first = min((each.expires_at for each in holding.held), default=None)
    if first is None or query.lease_expiry is None:
        return first
    return float(query.lease_expiry) if holding.since < query.lease_expiry <= first else first


def _row(said: Said, query_id: int, part: int, late: bool, reason: str | None) -> dict[str, Any]:
    return {
        "query_id": query_id,
        "place": said.place,
        "user_id": said.user,
        "kind": said.kind.value,
        "left": said.left,
        "right": said.right,
        "value": None if said.value is None else int(said.value),
        "undoes": said.undoes,
        "purpose": said.purpose.value,
        "counts": said.counts,
        "late": late,
        "token": said.token,
        "part": part,
        "reason": reason,
        "at": said.at,
        "seconds": said.seconds,
    }

"""What is written when a query moves on: entries of its log, and where it stands."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, insert, update

from podium.studio.boards import Board
from podium.studio.choices import Part
from podium.studio.handing import Held
from podium.studio.kinds import Kind, Purpose
from podium.studio.panels import Said
from podium.studio.prepared import Prepared
from podium.studio.tables import LogEntry, Query

_FORECAST_EVERY = 16
"""After how many entries the number of judgments left is worked out anew."""

_ADD = Prepared(insert(LogEntry))
_MOVED = Prepared(
    update(Query)
    .where(Query.id == bindparam("query"))
    .values(
        entries=bindparam("entries"),
        free=bindparam("free"),
        lease_expiry=bindparam("expiry"),
        done=bindparam("is_done"),
        expected_left=bindparam("left"),
    )
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
    query_id: int,
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
        _ADD.run(connection, **_row(undo, query_id, number, False, reason))
        board.take(undo)


def settle(connection: Connection, query: Any, board: Board, held: list[Held]) -> float:
    """Write down where a query stands; returns about how many judgments are left."""
    done = board.done
    left = query.expected_left
    if done:
        left = 0.0
    elif (
        query.done
        or board.seen > query.entries + 1
        or board.seen // _FORECAST_EVERY != query.entries // _FORECAST_EVERY
    ):
        left = board.panel.expected_left()
    elif board.seen != query.entries:
        left = max(left - 1, 1.0)
    _MOVED.run(
        connection,
        query=query.id,
        entries=board.seen,
        free=board.free(each.pair for each in held),
        expiry=min((each.expires_at for each in held), default=None),
        is_done=done,
        left=left,
    )
    return float(left)


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

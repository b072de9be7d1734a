"""Which task goes to whom: the statements and choices behind the desk."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from podium.studio.boards import Board
from podium.studio.errors import RefusedError
from podium.studio.kinds import Mode, Purpose
from podium.studio.panels import Task
from podium.studio.prepared import Prepared
from podium.studio.tables import Assigned, Gold, Lease, LogEntry, Query, Tally

_MOST_TABS = 10
_MOST_TRIES = 200
"""How many queries one request looks at: of most, the first has something for whoever asks."""
_REPEAT_AFTER = 5
"""How many answers lie at least between a pair and its repetition."""

_HELD = Prepared(
    select(Lease.token, Lease.left, Lease.right, Lease.user_id, Lease.expires_at).where(
        Lease.query_id == bindparam("query"), ~Lease.released
    )
)
_RELEASE = Prepared(update(Lease).where(Lease.token == bindparam("wanted")).values(released=True))
_OF_USER = Prepared(
    select(Lease.__table__)
    .join(Query, Query.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        Query.project_id == bindparam("project"),
        ~Lease.released,
        Lease.expires_at >= bindparam("now"),
    )
    .order_by(Lease.granted_at.desc())
)
_PROLONG = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("wanted"), ~Lease.released)
    .values(expires_at=bindparam("until"))
)


def _open(assigned_only: bool, project: Any, user: Any) -> Any:
    """Queries of a project that are not done and that someone may judge."""
    mine = and_(Query.project_id == project, Query.done.is_(False))
    if not assigned_only:
        return mine
    return and_(
        mine,
        exists().where(Assigned.query_id == Query.id, Assigned.user_id == user),
    )


def _find(assigned_only: bool) -> Select[Any]:
    """A query with something free for someone, locked."""
    return (
        select(Query.__table__)
        .where(
            _open(assigned_only, bindparam("project"), bindparam("user")),
            or_(Query.free > 0, Query.lease_expiry < bindparam("now")),
        )
        .order_by(Query.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=Query)
    )


_FIND = {assigned_only: Prepared(_find(assigned_only)) for assigned_only in (False, True)}


@dataclass(frozen=True)
class Held:
    """A pair that someone holds until some time."""

    pair: tuple[int, int]
    user_id: int
    expires_at: float


@dataclass(frozen=True)
class Nothing:
    """Why there is no task: ``wait`` if others hold what is left, for about so many seconds."""

    why: Literal["wait", "paused", "yours-done", "done"]
    seconds: float = 0.0


def held_leases(connection: Connection, query_id: int, now: float) -> list[Held]:
    """What is held of a query; leases that ran out are released."""
    held = []
    for row in _HELD.rows(connection, query=query_id):
        if row.expires_at < now:
            _RELEASE.run(connection, wanted=row.token)
        else:
            pair = (min(row.left, row.right), max(row.left, row.right))
            held.append(Held(pair, row.user_id, row.expires_at))
    return held


class Handing:
    """Chooses queries and tasks.

    Args:
        chance: Draws whether a pair is a check, and which.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def lease_of_tab(
        self, connection: Connection, project_id: int, user_id: int, tab: str, now: float
    ) -> Any:
        """The lease that a browser tab holds, or None."""
        rows = _OF_USER.rows(connection, user=user_id, project=project_id, now=now)
        for row in rows:
            if row.tab == tab:
                return row
        if len(rows) >= _MOST_TABS:
            raise RefusedError(
                429, "You are judging in too many tabs: close some, and wait a while."
            )
        return None

    def prolong(self, connection: Connection, project: Any, lease: Any, now: float) -> float:
        """Let whoever holds a task keep it from now on as long as a new one."""
        until: float = now + project.lease_seconds
        found = _PROLONG.run(connection, wanted=lease.token, until=until)
        return until if found else float(lease.expires_at)

    def give_up_tab(self, connection: Connection, user_id: int, tab: str, now: float) -> None:
        """A tab that takes an answer back no longer holds what it was asked since."""
        held = [Lease.user_id == user_id, Lease.tab == tab, ~Lease.released]
        queries = connection.scalars(select(Lease.query_id).where(*held)).all()
        if queries:
            connection.execute(update(Lease).where(*held).values(released=True, expires_at=now))
            # Whoever looks for something free next sees what is free there.
            connection.execute(update(Query).where(Query.id.in_(queries)).values(lease_expiry=0.0))

    def find_query(
        self, connection: Connection, project: Any, user_id: int, tried: list[int], now: float
    ) -> Any:
        """A query with something free, its row locked; those that others have locked are passed."""
        if len(tried) >= _MOST_TRIES:
            return None
        values = {"project": project.id, "user": user_id, "now": now}
        if not tried:
            return _FIND[bool(project.assigned_only)].one(connection, **values)
        others = _find(project.assigned_only).where(Query.id.not_in(tried))
        return connection.execute(others, values).one_or_none()

    def pick(
        self,
        connection: Connection,
        project: Any,
        query: Any,
        board: Board,
        held: list[Held],
        user_id: int,
    ) -> Task | None:
        """A task of a query for someone, or None: now and then a check in the place of a task."""
        mine = {each.pair for each in held if each.user_id == user_id}
        counts: dict[tuple[int, int], int] = {}
        for each in held:
            counts[each.pair] = counts.get(each.pair, 0) + 1
        main = next(
            (
                task
                for task in board.open(user_id)
                if task.pair not in mine and board.panel.missing(task) > counts.get(task.pair, 0)
            ),
            None,
        )
        if main is None or project.mode != Mode.PAIRS:
            return main
        check = self._check(connection, project, query, board, user_id)
        return main if check is None or check.pair in mine else check

    def _check(
        self, connection: Connection, project: Any, query: Any, board: Board, user_id: int
    ) -> Task | None:
        drawn = self._chance.random()
        if drawn < project.gold_rate:
            met = board.met(user_id, Purpose.GOLD)
            rows = connection.execute(
                select(Gold.left, Gold.right).where(Gold.query_id == query.id)
            ).all()
            tasks = [Task(row.left, row.right, Purpose.GOLD) for row in rows]
            tasks = [task for task in tasks if task.pair not in met]
            if not tasks:
                return None
            task = self._chance.choice(tasks)
            if self._chance.random() < 0.5:
                return Task(task.right, task.left, Purpose.GOLD)
            return task
        if drawn < project.gold_rate + project.repeat_rate:
            again = board.repeatable(user_id, after=_REPEAT_AFTER)
            return self._chance.choice(again) if again else None
        return None

    def why_nothing(
        self, connection: Connection, project: Any, user_id: int, tried: list[int], now: float
    ) -> Nothing:
        """Why nothing could be handed out: it is done, or others are at it."""
        rows = connection.execute(
            select(
                func.count(),
                func.min(Query.lease_expiry),
                func.count().filter(
                    or_(Query.free > 0, Query.lease_expiry < now), Query.id.not_in(tried)
                ),
            ).where(_open(project.assigned_only, project.id, user_id))
        ).one()
        undone, expiry, passed = rows
        if passed:  # others had them locked at this very moment
            return Nothing("wait", 0.5)
        if expiry is not None:
            return Nothing("wait", min(max(expiry - now, 0.5), 5.0))
        if undone == 0 and not connection.scalar(
            select(exists().where(Query.project_id == project.id, Query.done.is_(False)))
        ):
            return Nothing("done")
        return Nothing("yours-done")

    def query_to_undo(
        self, connection: Connection, project_id: int, user_id: int, answer: UUID | None
    ) -> int | None:
        """The query of an answer of someone's, or the one they judged last."""
        if answer is not None:
            return connection.scalar(
                select(LogEntry.query_id)
                .join(Query, Query.id == LogEntry.query_id)
                .where(
                    LogEntry.token == answer,
                    LogEntry.part == 0,
                    LogEntry.user_id == user_id,
                    Query.project_id == project_id,
                )
            )
        return connection.scalar(
            select(Tally.query_id)
            .join(Query, Query.id == Tally.query_id)
            .where(Tally.user_id == user_id, Query.project_id == project_id)
            .order_by(Tally.last_at.desc())
            .limit(1)
        )

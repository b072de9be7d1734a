"""Leases: who holds which task, for how long, and who gets it back.

A page that says every few seconds that someone is there has a short lease, which ends soon after
its last word. A program that says nothing in between has the project's `lease_seconds`. A lease
that ended stays, so that a late answer finds it, until `delete_old_leases`.

Two tabs of one person may show the same task. Neither tab knows of the other, so a tab that gives
such a task up only shortens its lease: the other tab's next renewal keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from podium.studio.judging.modes import JudgingTask
from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import Lease, Query
from podium.studio.store.tokens import new_token

RENEWED_SECONDS = 45.0
"""How long a page's lease lasts from its last word on: whoever waits for it waits no minute."""
RENEW_EVERY = 15.0
"""After how many seconds a page says that someone is still there."""
SHARED_SECONDS = RENEW_EVERY + 5.0
"""How long a task that one tab gave up stays with the other tabs that show it: time for them to
renew it."""
KEPT_DAYS = 30.0
"""How long an answer may come late: after that, nobody remembers what was asked."""

MOST_TABS = 10
"""How many tasks one person may hold in a project."""

_HELD = Prepared(
    select(Lease.token, Lease.left, Lease.right, Lease.user_id, Lease.expires_at).where(
        Lease.query_id == bindparam("query"), ~Lease.released
    )
)
# Its page may have renewed it since it was read.
_END = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("key"), Lease.expires_at < bindparam("now"))
    .values(released=True)
)
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
_LOST = Prepared(
    select(Lease.token, Lease.query_id)
    .join(Query, Query.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        Query.project_id == bindparam("project"),
        Lease.tab != "",
        or_(Lease.released, Lease.expires_at < bindparam("now")),
    )
    .order_by(Lease.granted_at.desc())
    .limit(1)
)
_RENEW = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("key"), Lease.user_id == bindparam("user"), ~Lease.released)
    .values(
        expires_at=bindparam("until"),
        renewed=bindparam("does_renew"),
        shared=or_(Lease.shared, Lease.tab != bindparam("by")),
    )
)
_GIVE_BACK = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("key"))
    .values(
        released=False,
        expires_at=bindparam("until"),
        renewed=bindparam("does_renew"),
        tab=bindparam("by"),
        shared=False,
    )
)
_RELEASE = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("key"))
    .values(released=True, expires_at=bindparam("now"))
)
_SHORTEN = Prepared(
    update(Lease)
    .where(Lease.token == bindparam("key"), Lease.expires_at > bindparam("until"))
    .values(expires_at=bindparam("until"))
)
_NOT_AGAIN = Prepared(update(Lease).where(Lease.token == bindparam("key")).values(tab=""))
_GIVE = Prepared(insert(Lease))
_REMOVE = Prepared(delete(Lease).where(Lease.token == bindparam("key")))


@dataclass(frozen=True)
class LeaseHolder:
    """Who asks: a person's browser tab, or a program's.

    Attributes:
        user_id: The person.
        tab: The tab.
        renews: Whether it says every `RENEW_EVERY` seconds that someone is there.
    """

    user_id: int
    tab: str
    renews: bool = False

    def until(self, project: Any, now: float) -> float:
        """When a lease that it gets now ends."""
        longest = float(project.lease_seconds)
        return now + (min(longest, RENEWED_SECONDS) if self.renews else longest)


@dataclass(frozen=True)
class HeldPair:
    """A pair that someone holds until some time."""

    pair: tuple[int, int]
    user_id: int
    expires_at: float


@dataclass
class QueryLeases:
    """What is held of a query.

    Attributes:
        since: When that was looked up.
        held: The pairs.
        freed: Whether anything is free again that was held before.
    """

    since: float
    held: list[HeldPair] = field(default_factory=list)
    freed: bool = False


def active_leases(connection: Connection, query_id: int, now: float) -> QueryLeases:
    """What is held of a query; leases that ran out end."""
    found = QueryLeases(now)
    for row in _HELD.rows(connection, query=query_id):
        if row.expires_at < now and _END.run(connection, key=row.token, now=now):
            found.freed = True
        else:
            pair = (min(row.left, row.right), max(row.left, row.right))
            found.held.append(HeldPair(pair, row.user_id, max(row.expires_at, now)))
    return found


def user_leases(connection: Connection, project_id: int, user_id: int, now: float) -> list[Any]:
    """What someone holds in a project, newest first."""
    return _OF_USER.rows(connection, user=user_id, project=project_id, now=now)


def last_lapsed_lease(connection: Connection, project_id: int, user_id: int, now: float) -> Any:
    """The task that someone had last and neither answered nor kept: its token and its query."""
    return _LOST.one(connection, user=user_id, project=project_id, now=now)


def grant(
    connection: Connection,
    project: Any,
    query_id: int,
    who: LeaseHolder,
    task: JudgingTask,
    now: float,
) -> tuple[UUID, float]:
    """Lease a task to someone; its token, and when it ends."""
    token, until = new_token(), who.until(project, now)
    _GIVE.run(
        connection,
        token=token,
        query_id=query_id,
        user_id=who.user_id,
        tab=who.tab,
        left=task.left,
        right=task.right,
        purpose=task.purpose.value,
        granted_at=now,
        expires_at=until,
        released=False,
        renewed=who.renews,
        shared=False,
    )
    return token, until


def renew(
    connection: Connection, project: Any, who: LeaseHolder, token: UUID, now: float
) -> float | None:
    """Keep a task from now on as long as a new one; None if it has gone to others.

    If another tab holds it, both share it from now on.
    """
    until = who.until(project, now)
    kept = _RENEW.run(
        connection,
        key=token,
        user=who.user_id,
        until=until,
        does_renew=who.renews,
        by=who.tab,
    )
    return until if kept else None


def regrant(
    connection: Connection, project: Any, who: LeaseHolder, token: UUID, now: float
) -> float:
    """Give a task that had ended to whoever had it, in the tab that asks; returns its end."""
    until = who.until(project, now)
    _GIVE_BACK.run(connection, key=token, until=until, does_renew=who.renews, by=who.tab)
    return until


def release(connection: Connection, token: UUID, now: float) -> None:
    """End a lease; the query's row must be locked."""
    _RELEASE.run(connection, key=token, now=now)


def shorten(connection: Connection, token: UUID, now: float) -> None:
    """End a lease soon unless a tab that shows the task renews it; the query's row must be locked.

    Tabs that are closed one after the other do not make it longer.
    """
    _SHORTEN.run(connection, key=token, until=now + SHARED_SECONDS)


def do_not_return(connection: Connection, token: UUID) -> None:
    """Do not give a task back: it is wanted no longer."""
    _NOT_AGAIN.run(connection, key=token)


def remove(connection: Connection, token: UUID) -> bool:
    """Remove a lease that is answered; False if the same answer was quicker."""
    return _REMOVE.run(connection, key=token) > 0


def release_tab(connection: Connection, user_id: int, tab: str, now: float) -> None:
    """A tab that takes an answer back no longer holds what it was asked since.

    What another tab shows too stays with that one.
    """
    held = [Lease.user_id == user_id, Lease.tab == tab, ~Lease.released, ~Lease.shared]
    queries = connection.scalars(select(Lease.query_id).where(*held)).all()
    if queries:
        connection.execute(update(Lease).where(*held).values(released=True, expires_at=now, tab=""))
        # Whoever looks for something free next sees what is free there.
        connection.execute(update(Query).where(Query.id.in_(queries)).values(lease_expiry=0.0))


def delete_old_leases(connection: Connection, now: float) -> int:
    """Remove leases that ended so long ago that nobody will answer; returns how many."""
    oldest = now - 86400 * KEPT_DAYS
    return int(connection.execute(delete(Lease).where(Lease.expires_at < oldest)).rowcount)

"""Leases: who holds which task, and until when.

A page renews its lease every few seconds, so the lease is short and expires soon after the last
renewal. A program that does not renew gets the project's `lease_seconds`. Expired leases are kept
until `delete_old_leases`, so that late answers can be matched.

A page may fetch tasks ahead: they are leased like the one that it shows, and never given back to
someone who left the page.

Two tabs of one person may show the same task without knowing of each other. So when a tab releases
a shared task, its lease is only shortened: the other tab's next renewal extends it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from podium.studio.judging.modes import JudgingTask
from podium.studio.store.rows import LeaseRow, ProjectRow, fetch_all, fetch_one
from podium.studio.store.tables import Lease, ProjectQuery
from podium.studio.store.tokens import new_token

RENEWED_SECONDS = 45.0
"""How long a page's lease lasts after a renewal: others wait less than a minute for the task."""
RENEW_EVERY = 15.0
"""How often a page renews its lease, in seconds."""
SHARED_SECONDS = RENEW_EVERY + 5.0
"""How long a shared lease lasts after one tab released it: time for the other tabs to renew it."""
KEPT_DAYS = 30.0
"""How many days an expired lease is kept for a late answer."""

MAX_LEASES = 10
"""The maximum number of leases of one person in a project."""


class LapsedLease(NamedTuple):
    """The token and query of a lease that ended without an answer."""

    token: UUID
    query_id: int


_HELD = select(Lease.token, Lease.left, Lease.right, Lease.user_id, Lease.expires_at).where(
    Lease.query_id == bindparam("query"), ~Lease.released
)
_OF_USER = (
    select(Lease.__table__)
    .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        ProjectQuery.project_id == bindparam("project"),
        ~Lease.released,
        Lease.expires_at >= bindparam("now"),
    )
    .order_by(Lease.granted_at.desc())
)
_LAPSED = (
    select(Lease.token, Lease.query_id)
    .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        ProjectQuery.project_id == bindparam("project"),
        Lease.tab != "",
        ~Lease.ahead,
        or_(Lease.released, Lease.expires_at < bindparam("now")),
    )
    .order_by(Lease.granted_at.desc())
    .limit(1)
)
_CHANGE = update(Lease).where(Lease.token == bindparam("key"))
# The page may have renewed it since it was read.
_END = _CHANGE.where(Lease.expires_at < bindparam("now")).values(released=True)
_RENEW = _CHANGE.where(Lease.user_id == bindparam("user"), ~Lease.released).values(
    shared=or_(Lease.shared, Lease.tab != bindparam("by"))
)
_SHORTEN = _CHANGE.where(Lease.expires_at > bindparam("until")).values(
    expires_at=bindparam("until")
)
_SHOW = _CHANGE.where(Lease.user_id == bindparam("user"), Lease.ahead).values(ahead=False)
_REMOVE = delete(Lease).where(Lease.token == bindparam("key"))


@dataclass(frozen=True)
class LeaseHolder:
    """Who holds a lease: a browser tab of a person, or a program.

    Attributes:
        user_id: The person.
        tab: The tab; empty for what has nothing to do with one.
        renews: Whether it renews its lease every `RENEW_EVERY` seconds.
    """

    user_id: int
    tab: str = ""
    renews: bool = False

    def until(self, project: ProjectRow, now: float) -> float:
        """When a lease granted now expires."""
        longest = float(project.lease_seconds)
        return now + (min(longest, RENEWED_SECONDS) if self.renews else longest)


@dataclass(frozen=True)
class HeldPair:
    """A pair that someone has leased, and until when."""

    pair: tuple[int, int]
    user_id: int
    expires_at: float


@dataclass
class QueryLeases:
    """The active leases of a query.

    Attributes:
        since: When they were read.
        held: The leased pairs.
        freed: Whether a lease was found expired and ended.
    """

    since: float
    held: list[HeldPair] = field(default_factory=list)
    freed: bool = False


def active_leases(connection: Connection, query_id: int, now: float) -> QueryLeases:
    """The active leases of a query; expired ones are ended."""
    query_leases = QueryLeases(now)
    for token, left, right, user_id, expires_at in connection.execute(_HELD, {"query": query_id}):
        ends = expires_at < now and connection.execute(_END, {"key": token, "now": now}).rowcount
        if ends:
            query_leases.freed = True
        else:
            pair = (min(left, right), max(left, right))
            query_leases.held.append(HeldPair(pair, user_id, max(expires_at, now)))
    return query_leases


def user_leases(
    connection: Connection, project_id: int, user_id: int, now: float
) -> list[LeaseRow]:
    """The active leases of someone in a project, newest first."""
    return fetch_all(connection, _OF_USER, LeaseRow, user=user_id, project=project_id, now=now)


def last_lapsed_lease(
    connection: Connection, project_id: int, user_id: int, now: float
) -> LapsedLease | None:
    """The last lease of someone that ended without an answer: its token and query."""
    return fetch_one(connection, _LAPSED, LapsedLease, user=user_id, project=project_id, now=now)


def grant(
    connection: Connection,
    project: ProjectRow,
    query_id: int,
    who: LeaseHolder,
    task: JudgingTask,
    now: float,
    *,
    ahead: bool = False,
) -> tuple[UUID, float]:
    """Lease a task to someone; returns its token and expiry."""
    token, until = new_token(), who.until(project, now)
    columns = {
        "token": token,
        "query_id": query_id,
        "user_id": who.user_id,
        "tab": who.tab,
        "left": task.left,
        "right": task.right,
        "purpose": task.purpose.value,
        "granted_at": now,
        "expires_at": until,
        "released": False,
        "renewed": who.renews,
        "shared": False,
        "ahead": ahead,
    }
    connection.execute(insert(Lease), columns)
    return token, until


def renew(
    connection: Connection, project: ProjectRow, who: LeaseHolder, token: UUID, now: float
) -> float | None:
    """Extend a lease as if it were new; returns its expiry, or None if it has ended.

    If another tab holds it, both tabs share it from now on.
    """
    until = who.until(project, now)
    values = {"key": token, "user": who.user_id, "by": who.tab}
    renewed = connection.execute(_RENEW, {**values, "expires_at": until, "renewed": who.renews})
    return until if renewed.rowcount else None


def regrant(
    connection: Connection, project: ProjectRow, who: LeaseHolder, token: UUID, now: float
) -> float:
    """Grant an ended lease again to the same person, in the tab that asks; returns its expiry."""
    until = who.until(project, now)
    columns = {
        "released": False,
        "expires_at": until,
        "renewed": who.renews,
        "tab": who.tab,
        "shared": False,
        "ahead": False,
    }
    connection.execute(_CHANGE, {"key": token, **columns})
    return until


def release(connection: Connection, token: UUID, now: float) -> None:
    """End a lease; the query's row must be locked."""
    connection.execute(_CHANGE, {"key": token, "released": True, "expires_at": now})


def shorten(connection: Connection, token: UUID, now: float) -> None:
    """Let a lease expire soon unless another tab renews it; the query's row must be locked.

    Closing several tabs in a row does not extend it.
    """
    connection.execute(_SHORTEN, {"key": token, "until": now + SHARED_SECONDS})


def do_not_return(connection: Connection, token: UUID) -> None:
    """Never grant an ended lease again: its task is no longer open."""
    connection.execute(_CHANGE, {"key": token, "tab": ""})


def show(connection: Connection, user_id: int, token: UUID) -> None:
    """Record that a task that was fetched ahead is now the one that its page shows."""
    connection.execute(_SHOW, {"key": token, "user": user_id})


def remove(connection: Connection, token: UUID) -> bool:
    """Delete an answered lease; False if a copy of the answer already did."""
    return connection.execute(_REMOVE, {"key": token}).rowcount > 0


def release_tab(connection: Connection, user_id: int, tab: str, now: float) -> None:
    """End the leases of a tab that undoes an answer, except those shared with another tab."""
    held = [Lease.user_id == user_id, Lease.tab == tab, ~Lease.released, ~Lease.shared]
    queries = connection.scalars(select(Lease.query_id).where(*held)).all()
    if queries:
        connection.execute(update(Lease).where(*held).values(released=True, expires_at=now, tab=""))
        # The next search for open work looks at these queries.
        connection.execute(
            update(ProjectQuery).where(ProjectQuery.id.in_(queries)).values(lease_expiry=0.0)
        )


def delete_old_leases(connection: Connection, now: float) -> int:
    """Delete leases that expired too long ago for a late answer; returns how many."""
    oldest = now - 86400 * KEPT_DAYS
    return int(connection.execute(delete(Lease).where(Lease.expires_at < oldest)).rowcount)

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

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, select, update

from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import Lease, ProjectQuery

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

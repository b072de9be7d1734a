"""Finds the next task: the one a tab holds, one that lapsed, or a new one of any query."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy import Executable, bindparam, or_, select, update

from podium.studio.judging.blocked import NOT_ASSIGNED, BlockedWork
from podium.studio.judging.leases import MAX_LEASES, LeaseHolder
from podium.studio.judging.open_work import OpenWork
from podium.studio.judging.unit_of_work import LeasedTask, LockedQuery, UnitOfWork, task_of
from podium.studio.messages import Message
from podium.studio.store.enums import Mode
from podium.studio.store.rows import LeaseRow, ProjectQueryRow, ProjectRow
from podium.studio.store.tables import Lease, ProjectQuery

_AT_ONCE = 0.5
_SOON = 5.0
_LATER = 15.0
"""Seconds until the next request if others must judge first and nobody holds a task."""

_OF_PROJECT = select(ProjectQuery.__table__).where(
    ProjectQuery.id == bindparam("query"), ProjectQuery.project_id == bindparam("project")
)
_QUERY = _OF_PROJECT.with_for_update()
_IF_FREE = _OF_PROJECT.with_for_update(skip_locked=True)
_MINE = (
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
_CHANGE = update(Lease).where(Lease.token == bindparam("key"), Lease.user_id == bindparam("user"))
_SHOW = _CHANGE.where(Lease.ahead).values(ahead=False)
_HELD_QUERIES = select(Lease.query_id).where(
    Lease.token.in_(bindparam("tokens", expanding=True)), Lease.user_id == bindparam("user")
)
_LEASE = select(Lease.__table__).where(
    Lease.token == bindparam("key"), Lease.user_id == bindparam("user")
)


@dataclass(frozen=True)
class NoTask:
    """Why there is no task.

    Attributes:
        why: ``wait`` if answers of others may open a task, ``paused`` if the project is paused,
            ``yours-done`` if every query that the person may judge is done, ``done`` if all are,
            ``blocked`` if a manager has to change something first, ``training`` if the person has
            to be trained first.
        seconds: After how many seconds to ask again.
        problems: What is blocked, why, and what would unblock it.
    """

    why: Literal["wait", "paused", "yours-done", "done", "blocked", "training"]
    seconds: float = 0.0
    problems: tuple[Message, ...] = ()


NextTask = LeasedTask | NoTask


class TaskDispatcher:
    """Finds a task for someone, and leases it to them.

    Args:
        unit: The transaction.
        project: The project's row.
        who: Who asks, and from which tab.
        rng: Decides at random when to ask a check, and which.
        blocked: Finds work that nobody can do.
    """

    def __init__(
        self,
        unit: UnitOfWork,
        project: ProjectRow,
        who: LeaseHolder,
        rng: random.Random,
        blocked: BlockedWork,
    ) -> None:
        self._unit = unit
        self._project = project
        self._who = who
        self._rng = rng
        self._blocked = blocked
        self._work = OpenWork(unit.connection, project, who.user_id)

    def next_task(self, at: LockedQuery | None) -> NextTask:
        """The next task.

        Args:
            at: The query whose task was just answered, to stay with if possible; None if the tab
                may hold a task.
        """
        held = [] if at is not None else self._held()
        # What was fetched ahead is not what the page shows, nor showed before it was reloaded.
        mine = [each for each in held if each.tab == self._who.tab and not each.ahead]
        leased = self._renewed(mine[0]) if mine else None
        if leased is not None:
            return leased
        if len(held) < MAX_LEASES:
            leased = self._search(at)
            self._work.advance()
        if leased is None:
            # Better the same task in two tabs than none: it is answered once.
            held = self._held()
            leased = self._renewed(held[0]) if held else None
        return leased or self._no_task()

    def task_ahead(self, at: LockedQuery | None, after: Sequence[UUID]) -> NextTask:
        """A task to show after those that a tab holds, which their answers cannot change.

        An answer about a pair decides which pairs of its query are asked next, so a pair comes
        from a query in which the tab holds none. Grades and rankings do not depend on each other.
        The last query with something free is left to others, who would have to wait.

        Args:
            at: The query whose task was just answered, to stay with if possible.
            after: The tokens of the tasks that the tab holds, the one that it shows first.
        """
        connection, user_id = self._unit.connection, self._who.user_id
        connection.execute(_SHOW, {"key": after[0], "user": user_id})  # it is what the page shows
        held = self._held()
        excluded: set[int] = set()
        if self._project.mode == Mode.PAIRS:
            tokens = {"tokens": list(after), "user": user_id}
            excluded = {lease.query_id for lease in held if lease.tab == self._who.tab}
            excluded.update(connection.scalars(_HELD_QUERIES, tokens))
        leased = None
        if len(held) < MAX_LEASES:
            last = None if at is not None else self._lease(after[-1])
            if last is not None and last.query_id not in excluded:
                at = self._lock(last.query_id, _IF_FREE)
            first = None if at is None else at.row
            leased = self._lease_of(self._work.queries_ahead(first, excluded), ahead=True)
            self._work.advance()
        return leased or NoTask("wait", _LATER)

    def _search(self, at: LockedQuery | None) -> LeasedTask | None:
        """A task of the query that they are at, the one that lapsed, or one of any query."""
        leased = None if at is None else self._lease_of(self._work.alone(at.row))
        return leased or self._regain() or self._lease_of(self._work.queries(self._unit.now))

    def _lease_of(
        self, queries: Iterable[tuple[ProjectQueryRow, bool]], *, ahead: bool = False
    ) -> LeasedTask | None:
        """Lease a task of one of some queries."""
        for row, may_judge in queries:
            query = self._unit.locked(self._project, row)
            task = None
            if may_judge:
                task = query.pick(self._project, self._who.user_id, self._rng)
            if task is not None:
                return query.lease(self._project, self._who, task, ahead=ahead)
            query.write_back()
        return None

    def _held(self) -> list[LeaseRow]:
        """What they hold, newest first."""
        return [LeaseRow(*row) for row in self._unit.connection.execute(_MINE, self._asks())]

    def _asks(self) -> dict[str, float]:
        """Who asks for what, and when."""
        return {
            "user": self._who.user_id, "project": self._project.id, "now": self._unit.now,
        }  # fmt: skip

    def _renewed(self, lease: LeaseRow) -> LeasedTask | None:
        """Renew an active lease; None if it was released meanwhile.

        A page that is reloaded asks for its task while the previous page releases it.
        """
        query = self._lock(lease.query_id, _QUERY)
        return None if query is None else query.extend(self._project, self._who, lease)

    def _regain(self) -> LeasedTask | None:
        """The task that someone left unanswered, if it is still open and nobody holds it."""
        connection, user_id = self._unit.connection, self._who.user_id
        lapsed = connection.execute(_LAPSED, self._asks()).one_or_none()
        if lapsed is None:
            return None
        token, query_id = lapsed
        query = self._lock(query_id, _IF_FREE)
        lease = None if query is None else self._lease(token)
        # Meanwhile it may have been answered, or asked for in another tab.
        if query is None or lease is None or not (lease.released or lease.expires_at < query.now):
            return None
        if query.is_still_open(task_of(lease), user_id) and self._work.may_judge(query.row.id):
            return query.lease_again(self._project, self._who, lease)
        # Its task is not open any more: it is not looked at again.
        connection.execute(_CHANGE, {"key": token, "user": user_id, "tab": ""})
        return None

    def _lease(self, token: UUID) -> LeaseRow | None:
        """A lease of theirs."""
        values = {"key": token, "user": self._who.user_id}
        row = self._unit.connection.execute(_LEASE, values).one_or_none()
        return None if row is None else LeaseRow(*row)

    def _lock(self, query_id: int, statement: Executable) -> LockedQuery | None:
        return self._unit.lock(self._project, statement, query=query_id, project=self._project.id)

    def _no_task(self) -> NoTask:
        """Why no task could be leased: all is done, is blocked, or others have what is left."""
        self._unit.write_back()
        reason = no_task_reason(self._work, self._unit.now)
        problems: tuple[Message, ...] = ()
        if reason == NoTask("wait", _LATER):
            problems = self._blocked.problems(self._unit.connection, self._project).messages
        elif reason.why == "yours-done":
            blocked = self._blocked.problems(self._unit.connection, self._project)
            if blocked.blocks_everything:
                problems = blocked.messages
            elif not self._work.is_anything_assigned:
                problems = (NOT_ASSIGNED,)
        return NoTask("blocked", _LATER, problems) if problems else reason


def no_task_reason(work: OpenWork, now: float) -> NoTask:
    """Why no task could be leased: all is done, or others hold or must judge what is left.

    Whether the remaining work is blocked is not checked here.
    """
    if work.has_unseen:  # others have them locked right now, or there are more to look at
        return NoTask("wait", _AT_ONCE)
    if work.is_done:
        return NoTask("done")
    if work.mine_is_done:
        return NoTask("yours-done")
    expiry = work.first_lease_end
    if expiry is not None:
        return NoTask("wait", min(max(expiry - now, _AT_ONCE), _SOON))
    return NoTask("wait", _LATER)

"""Handing out: the task that someone holds, the one they lost, or another, of any query."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, bindparam, select

from podium.studio.judging import leases
from podium.studio.judging.blocked import NOT_ASSIGNED, BlockedWork
from podium.studio.judging.leases import HeldPair, LeaseHolder, QueryLeases, active_leases
from podium.studio.judging.log import update_query
from podium.studio.judging.modes import JudgingTask
from podium.studio.judging.open_work import OpenWork
from podium.studio.judging.query_state import Document, QueryState
from podium.studio.judging.state_cache import StateCache
from podium.studio.judging.task_selection import (
    LATER,
    NoTask,
    TaskSelector,
    no_task_reason,
    open_to,
)
from podium.studio.store.enums import Purpose
from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import Lease, Query

_MOST_TRIES = 50
"""How many queries one request looks at; the next one goes on from there."""

_QUERY = select(Query.__table__).where(Query.id == bindparam("query"))
_LOCKED = Prepared(_QUERY.with_for_update())
_LOCKED_IF_FREE = Prepared(_QUERY.with_for_update(skip_locked=True))
_LEASE = Prepared(select(Lease.__table__).where(Lease.token == bindparam("key")))


@dataclass(frozen=True)
class LeasedTask:
    """A task that someone holds now.

    Attributes:
        token: Names the answer.
        query: The query's row.
        task: What is asked.
        expires_at: Until when nobody else is asked this.
        sides: What is shown on each side: documents with their places.
        judged: How many judgments of the query stand.
        left: About how many judgments it still needs.
    """

    token: UUID
    query: Any
    task: JudgingTask
    expires_at: float
    sides: list[list[tuple[int, Document]]]
    judged: int
    left: float


NextTask = LeasedTask | NoTask

UsedStates = list[tuple[int, QueryState]]
"""The boards that a transaction moved on, by query."""


@dataclass
class LockedQuery:
    """A query whose row is locked, with its board and who holds what of it."""

    query: Any
    state: QueryState
    query_leases: QueryLeases
    opened: bool = False


class TaskDispatcher:
    """Finds a task for whoever asks, and leases it to them.

    Args:
        cache: The boards.
        clock: Tells the time in seconds since 1970.
        rng: Draws whether a pair is a check, and which.
    """

    def __init__(self, cache: StateCache, clock: Callable[[], float], rng: random.Random) -> None:
        self._cache = cache
        self._clock = clock
        self._selector = TaskSelector(rng)
        self._blocked = BlockedWork(clock)

    def load(self, connection: Connection, project: Any, query: Any, now: float) -> LockedQuery:
        """A query whose row is locked, with its board and its leases."""
        state = self._cache.take(connection, project, query)
        # Leases that were given up are not held any more: only the row says that they were.
        opened = query.lease_expiry == 0.0
        return LockedQuery(query, state, active_leases(connection, query.id, now), opened)

    def next_task(
        self, connection: Connection, project: Any, who: LeaseHolder, locked: LockedQuery | None
    ) -> tuple[NextTask, UsedStates]:
        """The next task: of the query at hand if it has one, else of another.

        Boards are returned with it, to be put back after the commit.
        """
        now = self._clock()
        states: UsedStates = []
        held: list[Any] = []
        if locked is None:
            held = leases.user_leases(connection, project.id, who.user_id, now)
            mine = next((lease for lease in held if lease.tab == who.tab), None)
            if mine is not None:
                renewed = self._renewed(connection, project, who, mine, now)
                if renewed is not None:
                    return renewed
        work = OpenWork(connection, project, who.user_id)
        leased: LeasedTask | None = None
        if locked is not None:
            leased = self._try(connection, project, who, work, locked, states)
        if leased is None and len(held) < leases.MOST_TABS:
            leased = self._regain_lapsed(connection, project, who, work, states, now)
            leased = leased or self._search(connection, project, who, work, states, now)
        work.advance()
        if leased is not None:
            return leased, states
        held = leases.user_leases(connection, project.id, who.user_id, now)
        if held:
            # Rather the same in two tabs than nothing: its answer is one answer.
            renewed = self._renewed(connection, project, who, held[0], now)
            if renewed is not None:
                return renewed[0], [*states, *renewed[1]]
        no_task = no_task_reason(work, now)
        problems = self._problems(connection, project, work, no_task)
        if problems:
            no_task = NoTask("blocked", LATER, problems)
        return no_task, states

    def _problems(
        self, connection: Connection, project: Any, work: OpenWork, no_task: NoTask
    ) -> tuple[str, ...]:
        """What keeps someone who finds nothing from going on until a manager changes something."""
        if no_task == NoTask("wait", LATER):
            return self._blocked.problems(connection, project).words
        if no_task.why == "yours-done":
            blocked = self._blocked.problems(connection, project)
            if blocked.is_all:
                return blocked.words
            if not work.is_anything_assigned:
                return (NOT_ASSIGNED,)
        return ()

    def lease(
        self,
        connection: Connection,
        project: Any,
        locked: LockedQuery,
        who: LeaseHolder,
        task: JudgingTask,
    ) -> LeasedTask:
        """Lease a task of a query to someone, and write down where the query stands."""
        token, until = leases.grant(connection, project, locked.query.id, who, task, self._clock())
        return self._leased(connection, locked, who, task, token, until)

    def _leased(
        self,
        connection: Connection,
        locked: LockedQuery,
        who: LeaseHolder,
        task: JudgingTask,
        token: UUID,
        until: float,
    ) -> LeasedTask:
        query, state = locked.query, locked.state
        locked.query_leases.held.append(HeldPair(task.pair, who.user_id, until))
        left = update_query(connection, query, state, locked.query_leases, opened=locked.opened)
        return LeasedTask(
            token, query, task, until, state.documents_shown(task), state.judgments, left
        )

    def _renewed(
        self,
        connection: Connection,
        project: Any,
        who: LeaseHolder,
        lease: Any,
        now: float,
    ) -> tuple[LeasedTask, UsedStates] | None:
        """What someone holds, for as long as a new task; None if it was given up just now.

        A page that is loaded again asks for it while the page before it gives it up.
        """
        query = _LOCKED.one(connection, query=lease.query_id)
        until = leases.renew(connection, project, who, lease.token, now)
        if until is None:
            return None
        task = JudgingTask(lease.left, lease.right, Purpose(lease.purpose))
        state = self._cache.take(connection, project, query)
        leased = LeasedTask(
            lease.token,
            query,
            task,
            until,
            state.documents_shown(task),
            state.judgments,
            query.expected_left,
        )
        return leased, [(query.id, state)]

    def _regain_lapsed(
        self,
        connection: Connection,
        project: Any,
        who: LeaseHolder,
        work: OpenWork,
        states: UsedStates,
        now: float,
    ) -> LeasedTask | None:
        """The task that someone lost by leaving, if it is still open and nobody has it."""
        lapsed = leases.last_lapsed_lease(connection, project.id, who.user_id, now)
        query = None
        if lapsed is not None:
            query = _LOCKED_IF_FREE.one(connection, query=lapsed.query_id)
        if query is None:
            return None
        locked = self.load(connection, project, query, now)
        states.append((query.id, locked.state))
        lease = _LEASE.one(connection, key=lapsed.token)
        # Meanwhile it may have been answered, or asked for in another tab.
        if lease is not None and (lease.released or lease.expires_at < now):
            task = JudgingTask(lease.left, lease.right, Purpose(lease.purpose))
            open_pairs = {
                each.pair for each in open_to(locked.state, locked.query_leases.held, who.user_id)
            }
            still_open = (
                task.pair in open_pairs if task.purpose is Purpose.MAIN else bool(open_pairs)
            )
            if still_open and work.may_judge(query.id):
                until = leases.regrant(connection, project, who, lease.token, now)
                return self._leased(connection, locked, who, task, lease.token, until)
            leases.do_not_return(connection, lease.token)
        update_query(connection, query, locked.state, locked.query_leases, opened=locked.opened)
        return None

    def _search(
        self,
        connection: Connection,
        project: Any,
        who: LeaseHolder,
        work: OpenWork,
        states: UsedStates,
        now: float,
    ) -> LeasedTask | None:
        """A task of a query where a lease ended, or of one with something free."""
        for _ in range(_MOST_TRIES):
            query = work.find_lapsed(now) or work.find()
            if query is None:
                break
            locked = self.load(connection, project, query, now)
            leased = self._try(connection, project, who, work, locked, states)
            if leased is not None:
                return leased
        return None

    def _try(
        self,
        connection: Connection,
        project: Any,
        who: LeaseHolder,
        work: OpenWork,
        locked: LockedQuery,
        states: UsedStates,
    ) -> LeasedTask | None:
        """A task of one query, or None; that is noted then."""
        query, state = locked.query, locked.state
        states.append((query.id, state))
        if work.may_judge(query.id):
            task = self._selector.pick(
                connection, project, query, state, locked.query_leases.held, who.user_id
            )
            if task is not None:
                return self.lease(connection, project, locked, who, task)
        update_query(connection, query, state, locked.query_leases, opened=locked.opened)
        work.exhaust(query.id)
        return None

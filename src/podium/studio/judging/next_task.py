"""Finds the next task: the one a tab holds, one that lapsed, or a new one of any query."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, bindparam, select

from podium.studio.judging import leases
from podium.studio.judging.blocked import NOT_ASSIGNED, BlockedWork
from podium.studio.judging.judgment_log import update_query
from podium.studio.judging.leases import HeldPair, LeaseHolder, QueryLeases, active_leases
from podium.studio.judging.modes import JudgingTask
from podium.studio.judging.open_work import MAX_EXCLUDED, OpenWork
from podium.studio.judging.query_state import Document, QueryState
from podium.studio.judging.state_cache import StateCache
from podium.studio.judging.task_selection import (
    LATER,
    NoTask,
    TaskSelector,
    no_task_reason,
    open_to,
)
from podium.studio.messages import Message
from podium.studio.store.enums import Mode, Purpose
from podium.studio.store.prepared import Prepared
from podium.studio.store.rows import LeaseRow, ProjectQueryRow, ProjectRow
from podium.studio.store.tables import Lease, ProjectQuery

_MAX_TRIES = 50
"""How many queries one request looks at; the next request continues from there."""

_QUERY = select(ProjectQuery.__table__).where(ProjectQuery.id == bindparam("query"))
_LOCKED = Prepared(_QUERY.with_for_update(), ProjectQueryRow)
_LOCKED_IF_FREE = Prepared(_QUERY.with_for_update(skip_locked=True), ProjectQueryRow)
_HELD_QUERIES = select(Lease.query_id).where(
    Lease.token.in_(bindparam("tokens", expanding=True)), Lease.user_id == bindparam("user")
)
_LEASE = Prepared(select(Lease.__table__).where(Lease.token == bindparam("key")), LeaseRow)


@dataclass(frozen=True)
class LeasedTask:
    """A task that is leased to someone.

    Attributes:
        token: Identifies the answer.
        query: The query's row.
        task: The task.
        expires_at: When the lease expires.
        sides: The documents on each side, with their positions.
        judged: The number of judgments of the query.
        left: The estimated number of judgments it still needs.
    """

    token: UUID
    query: ProjectQueryRow
    task: JudgingTask
    expires_at: float
    sides: list[list[tuple[int, Document]]]
    judged: int
    left: float


NextTask = LeasedTask | NoTask

UsedStates = list[tuple[int, QueryState]]
"""The states that a transaction used, by query."""


@dataclass
class LockedQuery:
    """A query whose row is locked, with its state and active leases."""

    query: ProjectQueryRow
    state: QueryState
    query_leases: QueryLeases
    opened: bool = False


class TaskDispatcher:
    """Finds a task for an assessor, and leases it to them.

    Args:
        cache: The query states.
        clock: Returns the time in seconds since 1970.
        rng: Decides at random when to ask a check, and which.
    """

    def __init__(self, cache: StateCache, clock: Callable[[], float], rng: random.Random) -> None:
        self._cache = cache
        self._clock = clock
        self._selector = TaskSelector(rng)
        self._blocked = BlockedWork(clock)

    def load(
        self, connection: Connection, project: ProjectRow, query: ProjectQueryRow, now: float
    ) -> LockedQuery:
        """Load the state and leases of a query whose row is locked."""
        state = self._cache.take(connection, project, query)
        # Released leases are not active any more: only the row tells that there were some.
        opened = query.lease_expiry == 0.0
        return LockedQuery(query, state, active_leases(connection, query.id, now), opened)

    def next_task(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        locked: LockedQuery | None,
    ) -> tuple[NextTask, UsedStates]:
        """The next task, of the given query if it has one, else of another.

        The states used are returned too, to be put back after the commit.
        """
        now = self._clock()
        states: UsedStates = []
        held: list[LeaseRow] = []
        if locked is None:
            held = leases.user_leases(connection, project.id, who.user_id, now)
            # What was fetched ahead is not what the page shows, nor showed before it was reloaded.
            mine = next((each for each in held if each.tab == who.tab and not each.ahead), None)
            if mine is not None:
                renewed = self._renewed(connection, project, who, mine, now)
                if renewed is not None:
                    return renewed
        work = OpenWork(connection, project, who.user_id)
        leased: LeasedTask | None = None
        if locked is not None:
            leased = self._try(connection, project, who, work, locked, states)
        if leased is None and len(held) < leases.MAX_LEASES:
            leased = self._regain_lapsed(connection, project, who, work, states, now)
            leased = leased or self._search(connection, project, who, work, states, now)
        work.advance()
        if leased is not None:
            return leased, states
        held = leases.user_leases(connection, project.id, who.user_id, now)
        if held:
            # Better the same task in two tabs than none: it is answered once.
            renewed = self._renewed(connection, project, who, held[0], now)
            if renewed is not None:
                return renewed[0], [*states, *renewed[1]]
        no_task = no_task_reason(work, now)
        problems = self._problems(connection, project, work, no_task)
        if problems:
            no_task = NoTask("blocked", LATER, problems)
        return no_task, states

    def task_ahead(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        locked: LockedQuery | None,
        after: Sequence[UUID],
    ) -> tuple[NextTask, UsedStates]:
        """A task to show after those that a tab holds, which their answers cannot change.

        An answer about a pair decides which pairs of its query are asked next, so a pair comes
        from a query in which the tab holds none. Grades and rankings do not depend on each other.
        The last query with something free is left to others, who would have to wait.

        Args:
            connection: The transaction.
            project: The project's row.
            who: Who asks, and from which tab.
            locked: The query whose task was just answered, to stay with if possible.
            after: The tokens of the tasks that the tab holds, the one that it shows first.
        """
        now = self._clock()
        states: UsedStates = []
        if after:
            leases.show(connection, who.user_id, after[0])
        held = leases.user_leases(connection, project.id, who.user_id, now)
        excluded: set[int] = set()
        if project.mode == Mode.PAIRS:
            tokens = connection.execute(_HELD_QUERIES, {"tokens": list(after), "user": who.user_id})
            excluded = {lease.query_id for lease in held if lease.tab == who.tab}
            excluded |= {query_id for (query_id,) in tokens}
        work = OpenWork(connection, project, who.user_id)
        leased: LeasedTask | None = None
        if len(held) < leases.MAX_LEASES and len(excluded) < MAX_EXCLUDED:
            own = locked or self._query_held(connection, project, who, after, excluded)
            if own is not None and own.query.id not in excluded and work.leaves_others(own.query):
                leased = self._try(connection, project, who, work, own, states, ahead=True)
                locked = None
            elif own is not None and own is not locked:
                states.append((own.query.id, own.state))
            others = excluded if own is None else {own.query.id, *excluded}
            for _ in range(_MAX_TRIES):
                query = None if leased is not None else work.find_other(others)
                if query is None or not work.leaves_others(query):
                    break
                other = self.load(connection, project, query, now)
                leased = self._try(connection, project, who, work, other, states, ahead=True)
            work.advance()
        if locked is not None:
            states.append((locked.query.id, locked.state))
            update_query(
                connection, locked.query, locked.state, locked.query_leases, opened=locked.opened
            )
        return leased or NoTask("wait", LATER), states

    def _query_held(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        after: Sequence[UUID],
        excluded: set[int],
    ) -> LockedQuery | None:
        """The query of the last task that a tab holds, to stay with, if that is possible."""
        lease = _LEASE.one(connection, key=after[-1]) if after else None
        if lease is None or lease.user_id != who.user_id or lease.query_id in excluded:
            return None
        query = _LOCKED_IF_FREE.one(connection, query=lease.query_id)
        if query is None or query.project_id != project.id:
            return None
        return self.load(connection, project, query, self._clock())

    def _problems(
        self, connection: Connection, project: ProjectRow, work: OpenWork, no_task: NoTask
    ) -> tuple[Message, ...]:
        """Why an assessor without a task cannot go on until a manager changes something."""
        if no_task == NoTask("wait", LATER):
            return self._blocked.problems(connection, project).messages
        if no_task.why == "yours-done":
            blocked = self._blocked.problems(connection, project)
            if blocked.blocks_everything:
                return blocked.messages
            if not work.is_anything_assigned:
                return (NOT_ASSIGNED,)
        return ()

    def lease(
        self,
        connection: Connection,
        project: ProjectRow,
        locked: LockedQuery,
        who: LeaseHolder,
        task: JudgingTask,
        *,
        ahead: bool = False,
    ) -> LeasedTask:
        """Lease a task of a query to someone, and update the query's row."""
        token, until = leases.grant(
            connection, project, locked.query.id, who, task, self._clock(), ahead=ahead
        )
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
        project: ProjectRow,
        who: LeaseHolder,
        lease: LeaseRow,
        now: float,
    ) -> tuple[LeasedTask, UsedStates] | None:
        """Renew an active lease; None if it was released meanwhile.

        A page that is reloaded asks for its task while the previous page releases it.
        """
        query = _LOCKED.only(connection, query=lease.query_id)
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
        project: ProjectRow,
        who: LeaseHolder,
        work: OpenWork,
        states: UsedStates,
        now: float,
    ) -> LeasedTask | None:
        """The task that someone left unanswered, if it is still open and nobody holds it."""
        lapsed = leases.last_lapsed_lease(connection, project.id, who.user_id, now)
        if lapsed is None:
            return None
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
                task.pair in open_pairs
                if task.purpose is Purpose.MAIN
                else bool(open_pairs) and locked.state.shows_all(task)
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
        project: ProjectRow,
        who: LeaseHolder,
        work: OpenWork,
        states: UsedStates,
        now: float,
    ) -> LeasedTask | None:
        """A task of a query with an expired lease, or of one with open tasks."""
        for _ in range(_MAX_TRIES):
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
        project: ProjectRow,
        who: LeaseHolder,
        work: OpenWork,
        locked: LockedQuery,
        states: UsedStates,
        *,
        ahead: bool = False,
    ) -> LeasedTask | None:
        """A task of one query, or None; one that they may judge is then exhausted for them."""
        query, state = locked.query, locked.state
        states.append((query.id, state))
        may_judge = work.may_judge(query.id)
        if may_judge:
            task = self._selector.pick(
                connection, project, query, state, locked.query_leases.held, who.user_id
            )
            if task is not None:
                return self.lease(connection, project, locked, who, task, ahead=ahead)
        update_query(connection, query, state, locked.query_leases, opened=locked.opened)
        if may_judge:  # whoever may not yet finds the query once they may
            work.exhaust(query.id)
        return None

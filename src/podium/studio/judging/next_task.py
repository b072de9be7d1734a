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
from podium.studio.judging.leases import Held, Holder, Holding, held_leases
from podium.studio.judging.log import settle
from podium.studio.judging.modes import Task
from podium.studio.judging.open_work import OpenWork
from podium.studio.judging.query_state import Board, Document
from podium.studio.judging.state_cache import Shelf
from podium.studio.judging.task_selection import LATER, Handing, Nothing, open_to, why_nothing
from podium.studio.store.enums import Purpose
from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import Lease, Query

_MOST_TRIES = 50
"""How many queries one request looks at; the next one goes on from there."""

_QUERY = select(Query.__table__).where(Query.id == bindparam("query"))
_LOCKED = Prepared(_QUERY.with_for_update())
_LOCKED_IF_FREE = Prepared(_QUERY.with_for_update(skip_locked=True))
_LEASE = Prepared(select(Lease.__table__).where(Lease.token == bindparam("wanted")))


@dataclass(frozen=True)
class Given:
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
    task: Task
    expires_at: float
    sides: list[list[tuple[int, Document]]]
    judged: int
    left: float


Next = Given | Nothing

Used = list[tuple[int, Board]]
"""The boards that a transaction moved on, by query."""


@dataclass
class Here:
    """A query whose row is locked, with its board and who holds what of it."""

    query: Any
    board: Board
    holding: Holding
    opened: bool = False


class Giving:
    """Finds a task for whoever asks, and leases it to them.

    Args:
        shelf: The boards.
        clock: Tells the time in seconds since 1970.
        chance: Draws whether a pair is a check, and which.
    """

    def __init__(self, shelf: Shelf, clock: Callable[[], float], chance: random.Random) -> None:
        self._shelf = shelf
        self._clock = clock
        self._handing = Handing(chance)
        self._blocked = BlockedWork(clock)

    def at(self, connection: Connection, project: Any, query: Any, now: float) -> Here:
        """A query whose row is locked, with its board and its leases."""
        board = self._shelf.take(connection, project, query)
        # Leases that were given up are not held any more: only the row says that they were.
        opened = query.lease_expiry == 0.0
        return Here(query, board, held_leases(connection, query.id, now), opened)

    def hand_out(
        self, connection: Connection, project: Any, who: Holder, here: Here | None
    ) -> tuple[Next, Used]:
        """The next task: of the query at hand if it has one, else of another.

        Boards are returned with it, to be put back after the commit.
        """
        now = self._clock()
        boards: Used = []
        held: list[Any] = []
        if here is None:
            held = leases.leases_of(connection, project.id, who.user_id, now)
            mine = next((lease for lease in held if lease.tab == who.tab), None)
            if mine is not None:
                same = self._same_again(connection, project, who, mine, now)
                if same is not None:
                    return same
        work = OpenWork(connection, project, who.user_id)
        given: Given | None = None
        if here is not None:
            given = self._try(connection, project, who, work, here, boards)
        if given is None and len(held) < leases.MOST_TABS:
            given = self._lost(connection, project, who, work, boards, now)
            given = given or self._search(connection, project, who, work, boards, now)
        work.advance()
        if given is not None:
            return given, boards
        held = leases.leases_of(connection, project.id, who.user_id, now)
        if held:
            # Rather the same in two tabs than nothing: its answer is one answer.
            same = self._same_again(connection, project, who, held[0], now)
            if same is not None:
                return same[0], [*boards, *same[1]]
        why = why_nothing(work, now)
        problems = self._problems(connection, project, work, why)
        if problems:
            why = Nothing("blocked", LATER, problems)
        return why, boards

    def _problems(
        self, connection: Connection, project: Any, work: OpenWork, why: Nothing
    ) -> tuple[str, ...]:
        """What keeps someone who finds nothing from going on until a manager changes something."""
        if why == Nothing("wait", LATER):
            return self._blocked.problems(connection, project).words
        if why.why == "yours-done":
            blocked = self._blocked.problems(connection, project)
            if blocked.is_all:
                return blocked.words
            if not work.is_anything_assigned:
                return (NOT_ASSIGNED,)
        return ()

    def give(
        self, connection: Connection, project: Any, here: Here, who: Holder, task: Task
    ) -> Given:
        """Lease a task of a query to someone, and write down where the query stands."""
        token, until = leases.grant(connection, project, here.query.id, who, task, self._clock())
        return self._given(connection, here, who, task, token, until)

    def _given(
        self,
        connection: Connection,
        here: Here,
        who: Holder,
        task: Task,
        token: UUID,
        until: float,
    ) -> Given:
        query, board = here.query, here.board
        here.holding.held.append(Held(task.pair, who.user_id, until))
        left = settle(connection, query, board, here.holding, opened=here.opened)
        return Given(token, query, task, until, board.shown(task), board.judgments, left)

    def _same_again(
        self,
        connection: Connection,
        project: Any,
        who: Holder,
        lease: Any,
        now: float,
    ) -> tuple[Given, Used] | None:
        """What someone holds, for as long as a new task; None if it was given up just now.

        A page that is loaded again asks for it while the page before it gives it up.
        """
        query = _LOCKED.one(connection, query=lease.query_id)
        until = leases.renew(connection, project, who, lease.token, now)
        if until is None:
            return None
        task = Task(lease.left, lease.right, Purpose(lease.purpose))
        board = self._shelf.take(connection, project, query)
        given = Given(
            lease.token,
            query,
            task,
            until,
            board.shown(task),
            board.judgments,
            query.expected_left,
        )
        return given, [(query.id, board)]

    def _lost(
        self,
        connection: Connection,
        project: Any,
        who: Holder,
        work: OpenWork,
        boards: Used,
        now: float,
    ) -> Given | None:
        """The task that someone lost by leaving, if it is still open and nobody has it."""
        lost = leases.lost_lease(connection, project.id, who.user_id, now)
        query = None
        if lost is not None:
            query = _LOCKED_IF_FREE.one(connection, query=lost.query_id)
        if query is None:
            return None
        here = self.at(connection, project, query, now)
        boards.append((query.id, here.board))
        lease = _LEASE.one(connection, wanted=lost.token)
        # Meanwhile it may have been answered, or asked for in another tab.
        if lease is not None and (lease.released or lease.expires_at < now):
            task = Task(lease.left, lease.right, Purpose(lease.purpose))
            open_pairs = {each.pair for each in open_to(here.board, here.holding.held, who.user_id)}
            wanted = task.pair in open_pairs if task.purpose is Purpose.MAIN else bool(open_pairs)
            if wanted and work.may_judge(query.id):
                until = leases.give_back(connection, project, who, lease.token, now)
                return self._given(connection, here, who, task, lease.token, until)
            leases.not_again(connection, lease.token)
        settle(connection, query, here.board, here.holding, opened=here.opened)
        return None

    def _search(
        self,
        connection: Connection,
        project: Any,
        who: Holder,
        work: OpenWork,
        boards: Used,
        now: float,
    ) -> Given | None:
        """A task of a query where a lease ended, or of one with something free."""
        for _ in range(_MOST_TRIES):
            query = work.find_lapsed(now) or work.find()
            if query is None:
                break
            here = self.at(connection, project, query, now)
            given = self._try(connection, project, who, work, here, boards)
            if given is not None:
                return given
        return None

    def _try(
        self,
        connection: Connection,
        project: Any,
        who: Holder,
        work: OpenWork,
        here: Here,
        boards: Used,
    ) -> Given | None:
        """A task of one query, or None; that is noted then."""
        query, board = here.query, here.board
        boards.append((query.id, board))
        if work.may_judge(query.id):
            task = self._handing.pick(
                connection, project, query, board, here.holding.held, who.user_id
            )
            if task is not None:
                return self.give(connection, project, here, who, task)
        settle(connection, query, board, here.holding, opened=here.opened)
        work.exhaust(query.id)
        return None

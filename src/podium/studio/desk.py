"""The desk where tasks are handed out and answers taken: each call is one transaction.

A task that was handed out is a lease with a token, and the token names its answer: the same answer
sent twice is one, and whose lease ran out can still answer. A query's row is locked while its log
grows, so entries of a query are in one order everywhere.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, bindparam, delete, insert, select
from sqlalchemy.exc import IntegrityError

from podium.studio.boards import Board, Document
from podium.studio.choices import parts_of
from podium.studio.database import Found, in_transaction
from podium.studio.errors import RefusedError
from podium.studio.handing import Handing, Held, Nothing, held_leases
from podium.studio.kinds import Kind, Mode, Purpose
from podium.studio.ledger import append, append_undo, settle
from podium.studio.panels import Said, Task
from podium.studio.prepared import Prepared
from podium.studio.secrets import new_token
from podium.studio.shelf import Shelf
from podium.studio.tables import Lease, LogEntry, Query
from podium.studio.tallies import count_judgment

_LEASE = Prepared(
    select(
        Query.__table__,
        Lease.user_id,
        Lease.left,
        Lease.right,
        Lease.purpose,
        Lease.granted_at,
        Lease.expires_at,
        Lease.released,
    )
    .join(Lease, Lease.query_id == Query.id)
    .where(Lease.token == bindparam("wanted"))
    .with_for_update(of=Query)
)
_QUERY = Prepared(select(Query.__table__).where(Query.id == bindparam("query")).with_for_update())
_GIVE = Prepared(insert(Lease))
_GIVE_UP = Prepared(delete(Lease).where(Lease.token == bindparam("wanted")))
_RECORDED = Prepared(
    select(LogEntry.user_id, LogEntry.late, LogEntry.counts, Query.project_id)
    .join(Query, Query.id == LogEntry.query_id)
    .where(LogEntry.token == bindparam("wanted"), LogEntry.part == 0)
)


@dataclass(frozen=True)
class Given:
    """A task that someone holds now.

    Attributes:
        token: Names the answer.
        query: The query's row.
        task: What is asked.
        expires_at: Until when nobody else is asked this.
        sides: What is shown on each side: documents with their places.
        judged: How many entries the query's log has.
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


@dataclass(frozen=True)
class Taken:
    """What became of an answer.

    Attributes:
        repeated: Whether it had been taken before: the same answer, sent again.
        late: Whether its lease had run out.
        counts: Whether it takes part; late answers to what was asked of others do not.
    """

    repeated: bool
    late: bool
    counts: bool


class Desk:
    """Hands out tasks and takes answers.

    Args:
        engine: The database.
        clock: Tells the time in seconds since 1970.
        chance: Draws whether a pair is a check, and which.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._shelf = Shelf()
        self._handing = Handing(chance or random.Random())  # noqa: S311 - no secret

    def carry_out(self, work: Callable[[Connection], tuple[Found, Used]]) -> Found:
        """Run a transaction, and put the boards that it used back once it is committed."""
        try:
            found, boards = in_transaction(self._engine, work)
        except IntegrityError:
            # Two of the same answer met: by now the other is in, and this one finds it.
            found, boards = in_transaction(self._engine, work)
        for query_id, board in boards:
            self._shelf.put(query_id, board)
        return found

    def next(self, project: Any, user_id: int, tab: str) -> Next:
        """As `next_in`, in a transaction of its own."""
        return self.carry_out(lambda connection: self.next_in(connection, project, user_id, tab))

    def answer(
        self, project: Any, user_id: int, *answer: Any, **more: Any
    ) -> tuple[Taken, Next | None]:
        """As `answer_in`, in a transaction of its own."""
        return self.carry_out(
            lambda connection: self.answer_in(connection, project, user_id, *answer, **more)
        )

    def undo(self, project: Any, user_id: int, *undo: Any) -> Next:
        """As `undo_in`, in a transaction of its own."""
        return self.carry_out(lambda connection: self.undo_in(connection, project, user_id, *undo))

    def next_in(
        self, connection: Connection, project: Any, user_id: int, tab: str
    ) -> tuple[Next, Used]:
        """A task for someone's browser tab: the one it holds, or another.

        Args:
            connection: The transaction.
            project: The project's row.
            user_id: Who asks.
            tab: The browser tab.
        """
        if project.paused:
            return Nothing("paused"), []
        return self._hand_out(connection, project, user_id, tab, None)

    def answer_in(
        self,
        connection: Connection,
        project: Any,
        user_id: int,
        token: UUID,
        choice: str,
        *,
        seconds: float,
        tab: str,
        reason: str | None = None,
        more: bool = True,
    ) -> tuple[tuple[Taken, Next | None], Used]:
        """Take an answer, and hand out the next task at once.

        Args:
            connection: The transaction.
            project: The project's row.
            user_id: Who answers.
            token: Of the lease.
            choice: One of `podium.studio.choices.CHOICES`.
            seconds: How long it took, breaks left out.
            tab: Which browser tab the next task is for.
            reason: Why it was skipped, if it was.
            more: Whether to hand out another task.
        """
        lease = _LEASE.one(connection, wanted=token)
        if lease is not None and lease.project_id != project.id:
            raise RefusedError(404, "This task belongs to another project.")
        # Two of the same answer may both see the lease; only one of them finds it to remove.
        if lease is None or _GIVE_UP.run(connection, wanted=token) == 0:
            taken = self._recorded(connection, project, user_id, token)
            if not more or project.paused:
                return (taken, None), []
            given, boards = self._hand_out(connection, project, user_id, tab, None)
            return (taken, given), boards
        if lease.user_id != user_id:
            raise RefusedError(403, "This pair was given to someone else.")
        task = Task(lease.left, lease.right, Purpose(lease.purpose))
        parts = parts_of(Mode(project.mode), task, choice)
        if parts is None:
            raise RefusedError(422, f"{choice!r} is no answer here.")
        now = self._clock()
        late = bool(lease.released) or lease.expires_at < now
        query = lease  # the row holds the query's columns too
        board = self._shelf.take(connection, project, query)
        held = held_leases(connection, query.id, now)
        counts = not late or self._still_wanted(board, task, user_id, held)
        spent = min(max(seconds, 0.0), now - lease.granted_at)
        append(
            connection, board, query.id, user_id, parts, task.purpose, token,
            late=late, counts=counts, reason=reason, at=now, seconds=max(spent, 0.0),
        )  # fmt: skip
        count_judgment(connection, query.id, user_id, spent, now)
        taken = Taken(False, late, counts)
        if not more or project.paused:
            settle(connection, query, board, held)
            return (taken, None), [(query.id, board)]
        given, boards = self._hand_out(connection, project, user_id, tab, (query, board, held))
        return (taken, given), boards

    def undo_in(
        self,
        connection: Connection,
        project: Any,
        user_id: int,
        token: UUID,
        tab: str,
        answer: UUID | None = None,
    ) -> tuple[Next, Used]:
        """Take back an answer of someone's, by default the last, and ask the same again.

        Args:
            connection: The transaction.
            project: The project's row.
            user_id: Whose answer.
            token: Names this undo: the same undo sent twice is one.
            tab: Which browser tab to ask.
            answer: The token of the answer.
        """
        if _RECORDED.one(connection, wanted=token) is not None:
            return self._hand_out(connection, project, user_id, tab, None)
        query_id = self._handing.query_to_undo(connection, project.id, user_id, answer)
        if query_id is None:
            raise RefusedError(404, "There is nothing to take back.")
        query = _QUERY.one(connection, query=query_id)
        board = self._shelf.take(connection, project, query)
        gone = board.last_answer(user_id) if answer is None else board.answered(user_id, answer)
        if not gone:
            self._shelf.put(query.id, board)
            raise RefusedError(404, "There is nothing to take back.")
        now = self._clock()
        append_undo(connection, board, query.id, gone, token, now)
        self._handing.give_up_tab(connection, user_id, tab, now)
        held = held_leases(connection, query.id, now)
        again = _task_of(gone, board, user_id)
        if again is not None and not project.paused:
            given = self._give(connection, project, (query, board, held), user_id, tab, again)
            return given, [(query.id, board)]
        return self._hand_out(connection, project, user_id, tab, (query, board, held))

    def board(self, connection: Connection, project: Any, query: Any) -> Board:
        """A query's board for reading; it is not put back."""
        return self._shelf.take(connection, project, query)

    def _recorded(self, connection: Connection, project: Any, user_id: int, token: UUID) -> Taken:
        """An answer whose lease is gone: it was taken before, or it never was a task."""
        row = _RECORDED.one(connection, wanted=token)
        if row is None or row.project_id != project.id:
            raise RefusedError(404, "There is no such task.")
        if row.user_id != user_id:
            raise RefusedError(403, "This pair was given to someone else.")
        return Taken(True, row.late, row.counts)

    def _still_wanted(self, board: Board, task: Task, user_id: int, held: list[Held]) -> bool:
        """Whether a late answer still counts: nobody else was asked, and it is still open."""
        if task.purpose is not Purpose.MAIN:
            return True
        if any(each.pair == task.pair and each.user_id != user_id for each in held):
            return False
        return any(each.pair == task.pair for each in board.open(user_id))

    def _hand_out(
        self,
        connection: Connection,
        project: Any,
        user_id: int,
        tab: str,
        here: tuple[Any, Board, list[Held]] | None,
    ) -> tuple[Next, Used]:
        """The next task: of the query at hand if it has one, else of another.

        Boards are returned with it, to be put back after the commit.
        """
        now = self._clock()
        boards: Used = []
        tried: list[int] = []
        if here is None:
            lease = self._handing.lease_of_tab(connection, project.id, user_id, tab, now)
            if lease is not None:
                query = _QUERY.one(connection, query=lease.query_id)
                expires_at = self._handing.prolong(connection, project, lease, now)
                task = Task(lease.left, lease.right, Purpose(lease.purpose))
                board = self._shelf.take(connection, project, query)
                left = query.expected_left
                given = Given(
                    lease.token, query, task, expires_at, board.shown(task), board.seen, left
                )
                return given, [(query.id, board)]
        while True:
            if here is None:
                query = self._handing.find_query(connection, project, user_id, tried, now)
                if query is None:
                    return self._handing.why_nothing(
                        connection, project, user_id, tried, now
                    ), boards
                board = self._shelf.take(connection, project, query)
                here = query, board, held_leases(connection, query.id, now)
            query, board, held = here
            boards.append((query.id, board))
            found = self._handing.pick(connection, project, query, board, held, user_id)
            if found is not None:
                return self._give(connection, project, here, user_id, tab, found), boards
            settle(connection, query, board, held)
            tried.append(query.id)
            here = None

    def _give(
        self,
        connection: Connection,
        project: Any,
        here: tuple[Any, Board, list[Held]],
        user_id: int,
        tab: str,
        task: Task,
    ) -> Given:
        """Lease a task of a query to someone, and write down where the query stands."""
        query, board, held = here
        now = self._clock()
        token, expires_at = new_token(), now + project.lease_seconds
        _GIVE.run(
            connection,
            token=token,
            query_id=query.id,
            user_id=user_id,
            tab=tab,
            left=task.left,
            right=task.right,
            purpose=task.purpose.value,
            granted_at=now,
            expires_at=expires_at,
            released=False,
        )
        held.append(Held(task.pair, user_id, expires_at))
        left = settle(connection, query, board, held)
        return Given(token, query, task, expires_at, board.shown(task), board.seen, left)


def _task_of(gone: list[Said], board: Board, user_id: int) -> Task | None:
    """The task that an answer that was taken back had answered, if it can be asked again."""
    first = gone[0]
    if first.purpose is not Purpose.MAIN and first.left is not None and first.right is not None:
        return Task(first.left, first.right, first.purpose)
    named = {item for said in gone for item in (said.left, said.right) if item is not None}
    for task in board.open(user_id):
        if named <= {task.left, task.right}:
            if first.kind is Kind.VERDICT and first.left is not None and first.right is not None:
                return Task(first.left, first.right)
            return task
    return None

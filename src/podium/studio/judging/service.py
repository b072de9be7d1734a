"""The judging service: leases tasks to assessors and records answers, one transaction per call.

A lease has a token that identifies its answer, so sending the same answer twice records it once,
and an answer may arrive after the lease has expired. A query's row is locked while its log grows,
so all processes see its entries in the same order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Engine, bindparam, select
from sqlalchemy.exc import IntegrityError

from podium.studio.accounts.identity import check_not_archived
from podium.studio.errors import RefusedError
from podium.studio.judging import leases
from podium.studio.judging.answer_choices import (
    SKIP,
    AnswerEntry,
    answer_entries,
    changed_entries,
)
from podium.studio.judging.crowd_work import check_may_undo
from podium.studio.judging.entry_gate import EntryGate
from podium.studio.judging.judgment_counts import count_judgment
from podium.studio.judging.judgment_log import append, append_undo, update_query
from podium.studio.judging.leases import HeldPair, LeaseHolder, active_leases
from podium.studio.judging.modes import NO_ITEM, JudgingTask, QueryLogEntry
from podium.studio.judging.next_task import LeasedTask as LeasedTask
from podium.studio.judging.next_task import LockedQuery, NextTask, TaskDispatcher, UsedStates
from podium.studio.judging.open_work import reset_if_restored
from podium.studio.judging.query_state import QueryState
from podium.studio.judging.scales import checked_replies, grade_names
from podium.studio.judging.state_cache import StateCache
from podium.studio.judging.task_selection import NoTask, query_to_undo
from podium.studio.store.database import Result, in_transaction
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.prepared import Prepared
from podium.studio.store.rows import ProjectQueryRow, ProjectRow
from podium.studio.store.tables import Lease, LogEntry, ProjectQuery
from podium.studio.store.tokens import new_token


class _LeasedQuery:
    """A lease and its query, from a row with the columns of both."""

    def __init__(self, *columns: object) -> None:
        count = len(ProjectQueryRow._fields)
        self.query = ProjectQueryRow._make(columns[:count])
        self.lease = _LeaseColumns._make(columns[count:])


class _LeaseColumns(NamedTuple):
    user_id: int
    left: int
    right: int
    purpose: str
    granted_at: float
    expires_at: float
    released: bool
    shared: bool


class _RecordedRow(NamedTuple):
    user_id: int
    late: bool
    counts: bool
    project_id: int
    kind: str
    left: int | None
    right: int | None
    value: int | None
    purpose: str


_LEASE = Prepared(
    select(
        ProjectQuery.__table__,
        Lease.user_id,
        Lease.left,
        Lease.right,
        Lease.purpose,
        Lease.granted_at,
        Lease.expires_at,
        Lease.released,
        Lease.shared,
    )
    .join(Lease, Lease.query_id == ProjectQuery.id)
    .where(Lease.token == bindparam("key"))
    .with_for_update(of=ProjectQuery),
    _LeasedQuery,
)
_QUERY = Prepared(
    select(ProjectQuery.__table__).where(ProjectQuery.id == bindparam("query")).with_for_update(),
    ProjectQueryRow,
)
_RECORDED = Prepared(
    select(
        LogEntry.user_id,
        LogEntry.late,
        LogEntry.counts,
        ProjectQuery.project_id,
        LogEntry.kind,
        LogEntry.left,
        LogEntry.right,
        LogEntry.value,
        LogEntry.purpose,
    )
    .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
    .where(LogEntry.token == bindparam("key"))
    .order_by(LogEntry.part),
    _RecordedRow,
)


@dataclass(frozen=True)
class AnswerResult:
    """The outcome of submitting an answer.

    Attributes:
        repeated: Whether the same answer had been recorded before.
        late: Whether its lease had expired.
        counts: Whether it counts: it does not if it is late and the task went to someone else, or
            if the same person has already answered it.
    """

    repeated: bool
    late: bool
    counts: bool


@dataclass(frozen=True)
class AnswerChange:
    """What an earlier answer is replaced by.

    Attributes:
        token: Identifies the new answer, so that sending it twice has no effect.
        choice: The new answer; ``keep`` if only the comment changes, None to take it back.
        reason: The comment.
    """

    token: UUID
    choice: str | None
    reason: str | None


class JudgingService:
    """Leases tasks and records answers.

    Args:
        engine: The database.
        clock: Returns the time in seconds since 1970.
        rng: Decides at random when to ask a check, and which.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._cache = StateCache()
        drawn = rng or random.Random()  # noqa: S311 - no secret
        self._dispatcher = TaskDispatcher(self._cache, clock, drawn)
        self._gate = EntryGate(clock)
        self._numbers_are_ours = False

    def transact(self, work: Callable[[Connection], tuple[Result, UsedStates]]) -> Result:
        """Run a transaction, and return the states it used to the cache after the commit."""
        if not self._numbers_are_ours:
            in_transaction(self._engine, reset_if_restored)
            self._numbers_are_ours = True
        try:
            outcome, states = in_transaction(self._engine, work)
        except IntegrityError:
            # The same answer was recorded concurrently: on the second attempt it is found.
            outcome, states = in_transaction(self._engine, work)
        for query_id, state in states:
            self._cache.put(query_id, state)
        return outcome

    def next(
        self,
        project: ProjectRow,
        user_id: int,
        tab: str,
        *,
        renews: bool = False,
        after: Sequence[UUID] = (),
    ) -> NextTask:
        """As `next_in`, in a transaction of its own."""
        who = LeaseHolder(user_id, tab, renews)
        return self.transact(lambda connection: self.next_in(connection, project, who, after))

    def answer(
        self,
        project: ProjectRow,
        user_id: int,
        token: UUID,
        choice: str,
        *,
        tab: str,
        seconds: float,
        reason: str | None = None,
        replies: Mapping[str, str] | None = None,
        more: bool = True,
        renews: bool = False,
        after: Sequence[UUID] = (),
    ) -> tuple[AnswerResult, NextTask | None]:
        """As `answer_in`, in a transaction of its own."""
        who = LeaseHolder(user_id, tab, renews)
        return self.transact(
            lambda connection: self.answer_in(
                connection, project, who, token, choice,
                seconds=seconds, reason=reason, replies=replies, more=more, after=after,
            )
        )  # fmt: skip

    def undo(
        self,
        project: ProjectRow,
        user_id: int,
        token: UUID,
        tab: str,
        answer: UUID | None = None,
    ) -> NextTask:
        """As `undo_in`, in a transaction of its own."""
        who = LeaseHolder(user_id, tab)
        return self.transact(
            lambda connection: self.undo_in(connection, project, who, token, answer)
        )

    def release(
        self, project: ProjectRow, user_id: int, token: UUID, expires_at: float | None = None
    ) -> bool:
        """As `release_in`, in a transaction of its own."""
        return self.transact(
            lambda connection: self.release_in(connection, project, user_id, token, expires_at)
        )

    def next_in(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        after: Sequence[UUID] = (),
    ) -> tuple[NextTask, UsedStates]:
        """The next task for a browser tab: the one it holds, one that lapsed, or a new one.

        Args:
            connection: The transaction.
            project: The project's row.
            who: Who asks, and from which tab.
            after: The tokens of the tasks that the tab holds already, the one that it shows first,
                to get one more: see `TaskDispatcher.task_ahead`.
        """
        if project.paused:
            return NoTask("paused"), []
        stop = self._gate.stop(connection, project, who.user_id)
        if stop is not None:
            return NoTask(stop), []
        if after:
            return self._dispatcher.task_ahead(connection, project, who, None, after)
        return self._dispatcher.next_task(connection, project, who, None)

    def answer_in(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        token: UUID,
        choice: str,
        *,
        seconds: float,
        reason: str | None = None,
        replies: Mapping[str, str] | None = None,
        more: bool = True,
        after: Sequence[UUID] = (),
    ) -> tuple[tuple[AnswerResult, NextTask | None], UsedStates]:
        """Record an answer, and lease the next task.

        Args:
            connection: The transaction.
            project: The project's row.
            who: Who answers, and which browser tab the next task is for.
            token: Of the lease.
            choice: One of `podium.studio.judging.answer_choices.choices`.
            seconds: How long it took, without breaks.
            reason: Why it was skipped, if it was.
            replies: To the name of each of the project's questions the reply.
            more: Whether to lease another task.
            after: The tokens of other tasks that the tab holds, as in `next_in`.
        """
        leased = _LEASE.one(connection, key=token)
        if leased is not None and leased.query.project_id != project.id:
            raise RefusedError(404, "This task belongs to another project.")
        # Two copies of an answer may both see the lease; only one of them removes it.
        if leased is None or not leases.remove(connection, token):
            result = self._recorded(connection, project, who.user_id, token, choice)
            if not more or project.paused or self._gate.stop(connection, project, who.user_id):
                return (result, None), []
            next_task, states = self.next_in(connection, project, who, after)
            return (result, next_task), states
        query, lease = leased.query, leased.lease
        if lease.user_id != who.user_id:
            raise RefusedError(403, "This task was assigned to someone else.")
        task = JudgingTask(lease.left, lease.right, Purpose(lease.purpose))
        answer_parts = answer_entries(Mode(project.mode), task, choice, grade_names(project.scale))
        if answer_parts is None:
            raise RefusedError(422, "%(choice)s is not a valid answer here.", choice=repr(choice))
        kept = checked_replies(project.questions, replies or {}, skipped=choice == SKIP)
        now = self._clock()
        late = bool(lease.released) or lease.expires_at < now
        locked = self._dispatcher.load(connection, project, query, now)
        state = locked.state
        counts = not late or _still_counts(state, task, who.user_id, locked.query_leases.held)
        if task.purpose is Purpose.MAIN and state.has_answered(
            who.user_id, task.pair, answer_parts
        ):
            counts = False
        spent = max(min(seconds, now - lease.granted_at), 0.0)
        append(
            connection, state, query.id, who.user_id, answer_parts, task.purpose, token,
            late=late, counts=counts, reason=reason, at=now, seconds=spent, replies=kept,
        )  # fmt: skip
        judged = counts and answer_parts[0].kind is not Kind.SKIP
        count_judgment(
            connection, query, who.user_id,
            judgments=int(judged), seconds=spent if judged else 0.0, last_at=now,
        )  # fmt: skip
        # A task that was leased and is still open is available to others.
        locked.opened = locked.opened or not judged or task.purpose is not Purpose.MAIN
        result = AnswerResult(False, late, counts)
        if not more or project.paused or self._gate.stop(connection, project, who.user_id):
            update_query(connection, query, state, locked.query_leases, opened=locked.opened)
            return (result, None), [(query.id, state)]
        if after:
            next_task, states = self._dispatcher.task_ahead(connection, project, who, locked, after)
        else:
            next_task, states = self._dispatcher.next_task(connection, project, who, locked)
        return (result, next_task), states

    def undo_in(
        self,
        connection: Connection,
        project: ProjectRow,
        who: LeaseHolder,
        token: UUID,
        answer: UUID | None = None,
    ) -> tuple[NextTask, UsedStates]:
        """Undo an answer, by default the last one, and lease the same task again.

        While the project is paused, the answer is undone and no task is leased.

        Args:
            connection: The transaction.
            project: The project's row.
            who: Whose answer, and which tab the task is for.
            token: Identifies this undo, so that sending it twice has no effect.
            answer: The token of the answer.
        """
        if _RECORDED.one(connection, key=token) is not None:
            return self.next_in(connection, project, who)
        check_not_archived(project)
        check_may_undo(connection, project.id, who.user_id)
        query_id = query_to_undo(connection, project.id, who.user_id, answer)
        if query_id is None:
            raise RefusedError(404, "There is nothing to undo.")
        now = self._clock()
        query = _QUERY.only(connection, query=query_id)
        state = self._cache.take(connection, project, query)
        undone = (
            state.last_answer(who.user_id)
            if answer is None
            else state.answered(who.user_id, answer)
        )
        if not undone:
            self._cache.put(query.id, state)
            raise RefusedError(404, "There is nothing to undo.")
        append_undo(connection, state, query, undone, token, now)
        leases.release_tab(connection, who.user_id, who.tab, now)
        locked = LockedQuery(query, state, active_leases(connection, query.id, now), opened=True)
        stop = self._gate.stop(connection, project, who.user_id)
        if project.paused or stop == "training":
            update_query(connection, query, state, locked.query_leases, opened=True)
            return NoTask("paused" if project.paused else "training"), [(query.id, state)]
        again = _task_of(undone, state, who.user_id, locked.query_leases.held)
        if again is not None:
            return self._dispatcher.lease(connection, project, locked, who, again), [
                (query.id, state)
            ]
        return self._dispatcher.next_task(connection, project, who, locked)

    def change_in(
        self,
        connection: Connection,
        project: ProjectRow,
        user_id: int,
        answer: UUID,
        change: AnswerChange,
    ) -> tuple[None, UsedStates]:
        """Replace an earlier answer by another one, or take it back.

        The log gets an undo and the new answer. Its time is that of the earlier answer: how long
        someone thought about the change is not known.

        Args:
            connection: The transaction.
            project: The project's row.
            user_id: Whose answer.
            answer: The token of the earlier answer.
            change: What to replace it by.
        """
        if _RECORDED.one(connection, key=change.token) is not None:
            return None, []
        check_not_archived(project)
        if change.choice in (None, SKIP):
            check_may_undo(connection, project.id, user_id)
        query_id = query_to_undo(connection, project.id, user_id, answer)
        if query_id is None:
            raise RefusedError(404, "The answer does not exist.")
        now = self._clock()
        query = _QUERY.only(connection, query=query_id)
        locked = self._dispatcher.load(connection, project, query, now)
        state = locked.state
        before = state.answered(user_id, answer)
        parts: list[AnswerEntry] | None = []
        if change.choice is not None:
            parts = changed_entries(project.mode, before, change.choice, grade_names(project.scale))
        if not before or parts is None or (parts and state.withdrawn):
            self._cache.put(query.id, state)
            if not before or state.withdrawn:
                raise RefusedError(409, "This answer cannot be changed any more.")
            raise RefusedError(
                422, "%(choice)s is not a valid answer here.", choice=repr(change.choice)
            )
        first = before[0]
        counts = first.counts
        # The client's token is on what is written last, so that the request can be repeated.
        undo = new_token() if parts else change.token
        append_undo(connection, state, query, before, undo, now, "changed")
        if first.kind is Kind.SKIP and first.left is not None:
            # Others may have judged it meanwhile, as a skip asks them to.
            task = JudgingTask(first.left, NO_ITEM if first.right is None else first.right)
            counts = _still_counts(state, task, user_id, locked.query_leases.held)
        if parts:
            append(
                connection, state, query.id, user_id, parts, first.purpose, change.token,
                late=False, counts=counts, reason=change.reason, at=now, seconds=first.seconds,
                replies=first.replies,
            )  # fmt: skip
            judged = counts and parts[0].kind is not Kind.SKIP
            count_judgment(
                connection, query, user_id,
                judgments=int(judged), seconds=first.seconds if judged else 0.0, last_at=now,
            )  # fmt: skip
        update_query(connection, query, state, locked.query_leases, opened=True)
        return None, [(query.id, state)]

    def renew_in(
        self, connection: Connection, project: ProjectRow, who: LeaseHolder, tokens: Sequence[UUID]
    ) -> dict[UUID, float | None]:
        """Renew leases; returns their new expiry, or None for tasks that went to someone else."""
        now = self._clock()
        return {token: leases.renew(connection, project, who, token, now) for token in tokens}

    def release_in(
        self,
        connection: Connection,
        project: ProjectRow,
        user_id: int,
        token: UUID,
        expires_at: float | None = None,
    ) -> tuple[bool, UsedStates]:
        """Release a lease before it expires; returns whether the task is now available to others.

        A task shown in another tab of the same person becomes available once that tab stops
        renewing it.

        Args:
            connection: The transaction.
            project: The project's row.
            user_id: Who holds the lease.
            token: Of the lease.
            expires_at: When it ends, as whoever gives it up was told. If it ends later by now, it
                was asked for again since, by the same page loaded anew say: then it stays.
        """
        leased = _LEASE.one(connection, key=token)
        if leased is None or leased.query.project_id != project.id:
            return False, []
        query, lease = leased.query, leased.lease
        if lease.user_id != user_id:
            return False, []
        if lease.released or (expires_at is not None and lease.expires_at > expires_at):
            return False, []
        now = self._clock()
        if lease.shared:
            leases.shorten(connection, token, now)
        else:
            leases.release(connection, token, now)
        locked = self._dispatcher.load(connection, project, query, now)
        update_query(
            connection,
            query,
            locked.state,
            locked.query_leases,
            opened=locked.opened or not lease.shared,
        )
        return not lease.shared, [(query.id, locked.state)]

    def query_state(
        self, connection: Connection, project: ProjectRow, query: ProjectQueryRow
    ) -> QueryState:
        """A query's current state, for reading only."""
        return self._cache.take(connection, project, query)

    def _recorded(
        self, connection: Connection, project: ProjectRow, user_id: int, token: UUID, choice: str
    ) -> AnswerResult:
        """The result of an answer that was recorded before; an error if there is none."""
        rows = _RECORDED.rows(connection, key=token)
        if not rows or rows[0].project_id != project.id:
            raise RefusedError(404, "The task does not exist.")
        if rows[0].user_id != user_id:
            raise RefusedError(403, "This task was assigned to someone else.")
        if not _matches(rows, project, choice):
            raise RefusedError(409, "This task has another answer by now, which was kept.")
        return AnswerResult(True, rows[0].late, rows[0].counts)


def _matches(rows: Sequence[_RecordedRow], project: ProjectRow, choice: str) -> bool:
    """Whether a choice adds the entries that were recorded."""
    recorded = [AnswerEntry(Kind(row.kind), row.left or 0, row.right, row.value) for row in rows]
    sides = [side for row in rows for side in (row.left, row.right) if side is not None]
    if recorded[0].kind is Kind.BAD and len(sides) == 1:
        return choice in ("bad-left", "bad-right")  # with which other it was shown is not recorded
    task = JudgingTask(sides[0], sides[1] if len(sides) > 1 else NO_ITEM, Purpose(rows[0].purpose))
    return recorded == answer_entries(Mode(project.mode), task, choice, grade_names(project.scale))


def _still_counts(state: QueryState, task: JudgingTask, user_id: int, held: list[HeldPair]) -> bool:
    """Whether a late answer still counts: the task is open and nobody else holds it."""
    if task.purpose is not Purpose.MAIN:
        return True
    if any(each.pair == task.pair and each.user_id != user_id for each in held):
        return False
    return any(each.pair == task.pair for each in state.open(user_id))


def _task_of(
    undone: list[QueryLogEntry], state: QueryState, user_id: int, held: list[HeldPair]
) -> JudgingTask | None:
    """The task of an undone answer, if it can be asked again."""
    first = undone[0]
    if first.purpose is Purpose.ADJUDICATE:
        return None  # it has a page of its own
    if first.purpose is not Purpose.MAIN and first.left is not None and first.right is not None:
        check = JudgingTask(first.left, first.right, first.purpose)
        return check if state.shows_all(check) else None
    named = {item for entry in undone for item in (entry.left, entry.right) if item is not None}
    for task in state.open(user_id):
        if named <= {task.left, task.right}:
            others = sum(each.pair == task.pair and each.user_id != user_id for each in held)
            if others >= state.mode.missing(task):
                return None  # who got it after a skip is at it
            if first.kind is Kind.VERDICT and first.left is not None and first.right is not None:
                return JudgingTask(first.left, first.right)
            return task
    return None

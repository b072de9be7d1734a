"""The judging service: gives tasks to assessors and takes their answers, a transaction each.

A lease has a token that identifies its answer, so sending the same answer twice records it once,
and an answer may arrive after the lease has expired. A query's row is locked while its log grows,
so all processes see its entries in the same order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Connection, Engine, bindparam, exists, select

from podium.studio.accounts.identity import check_not_archived
from podium.studio.errors import RefusedError
from podium.studio.judging.answer_choices import (
    SKIP,
    AnswerEntry,
    answer_entries,
    changed_entries,
)
from podium.studio.judging.blocked import BlockedWork
from podium.studio.judging.crowd_work import check_may_undo, crowd_work
from podium.studio.judging.modes import NO_ITEM, JudgingTask, QueryLogEntry
from podium.studio.judging.next_task import (
    NextTask,
    NoTask,
    OpenWork,
    TaskDispatcher,
    reset_if_restored,
)
from podium.studio.judging.scales import checked_replies, grade_names
from podium.studio.judging.state_cache import StateCache
from podium.studio.judging.training import must_train
from podium.studio.judging.unit_of_work import (
    LeaseHolder,
    LockedQuery,
    NewAnswer,
    UnitOfWork,
    release_tab,
    renew_lease,
    take_lease,
    task_of,
)
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import LeaseRow, ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import (
    CrowdLink,
    JudgmentCount,
    Lease,
    LogEntry,
    ProjectQuery,
    TrainingExample,
)
from podium.studio.store.tokens import new_token

Stop = Literal["training", "yours-done"]
_KEPT_SECONDS = 5.0


class EntryGate:
    """Decides who gets no task. That a project stops nobody is remembered for some seconds.

    Args:
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[int, float] = {}

    def stop(self, connection: Connection, project: ProjectRow, user_id: int) -> Stop | None:
        """Why someone gets no task, or None."""
        now = self._clock()
        looked_at = self._open.get(project.id)
        if looked_at is not None and looked_at <= now < looked_at + _KEPT_SECONDS:
            return None
        trains, has_links = connection.execute(
            select(
                exists().where(TrainingExample.project_id == project.id),
                exists().where(CrowdLink.project_id == project.id),
            )
        ).one()
        if not (trains or has_links):
            self._open[project.id] = now
            return None
        if trains and must_train(connection, project.id, user_id):
            return "training"
        if has_links:
            work = crowd_work(connection, project, user_id)
            if work is not None and work.code is not None:
                is_done = OpenWork(connection, project, user_id).is_done
                return None if is_done else "yours-done"
        return None


Result = TypeVar("Result")


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


_QUERY_OF_LEASE = (
    select(ProjectQuery.__table__)
    .join(Lease, Lease.query_id == ProjectQuery.id)
    .where(Lease.token == bindparam("key"))
    .with_for_update(of=ProjectQuery)
)
_LEASE = select(Lease.__table__).where(Lease.token == bindparam("key"))
_QUERY = (
    select(ProjectQuery.__table__).where(ProjectQuery.id == bindparam("query")).with_for_update()
)
_RECORDED = (
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
    .order_by(LogEntry.part)
)
_QUERY_OF_ANSWER = (
    select(LogEntry.query_id)
    .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
    .where(
        LogEntry.token == bindparam("answer"),
        LogEntry.part == 0,
        LogEntry.user_id == bindparam("user"),
        ProjectQuery.project_id == bindparam("project"),
    )
)
_QUERY_OF_LAST_ANSWER = (
    select(JudgmentCount.query_id)
    .join(ProjectQuery, ProjectQuery.id == JudgmentCount.query_id)
    .where(
        JudgmentCount.user_id == bindparam("user"),
        JudgmentCount.last_at > 0,
        ProjectQuery.project_id == bindparam("project"),
    )
    .order_by(JudgmentCount.last_at.desc())
    .limit(1)
)


@dataclass(frozen=True)
class Answer:
    """An answer to a task.

    Attributes:
        choice: One of `podium.studio.judging.answer_choices.choices`.
        seconds: How long it took, without breaks.
        reason: Why the task was skipped, if it was.
        replies: To the name of each of the project's questions the reply.
    """

    choice: str
    seconds: float
    reason: str | None = None
    replies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerResult:
    """The outcome of submitting an answer.

    Attributes:
        repeated: Whether the same answer had been recorded before.
        late: Whether its lease had expired.
        counts: Whether it counts: it does not if it is late and the task went to someone else, or
            if the same person has already answered it.
        finished: Whether nothing is left to judge in its query since.
    """

    repeated: bool
    late: bool
    counts: bool
    finished: bool


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
    """What a process keeps between the transactions in which people judge.

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
        self._states = StateCache()
        self._are_positions_checked = False
        self.rng = rng or random.Random()  # noqa: S311 - no secret
        self.gate = EntryGate(clock)
        self.blocked = BlockedWork(clock)

    def transact(self, work: Callable[[UnitOfWork], Result]) -> Result:
        """Run a transaction in which people judge; the queries it locks are written at its end."""
        if not self._are_positions_checked:
            in_transaction(self._engine, reset_if_restored)
            self._are_positions_checked = True

        def run(connection: Connection) -> tuple[Result, UnitOfWork]:
            unit = UnitOfWork(connection, self._states, self._clock)
            try:
                outcome = work(unit)
            except RefusedError:
                unit.keep_unchanged()
                raise
            unit.write_back()
            return outcome, unit

        outcome, unit = in_transaction(self._engine, run)
        unit.keep_states()
        return outcome

    def assessor(self, unit: UnitOfWork, project: ProjectRow, who: LeaseHolder) -> JudgingMember:
        """Someone who judges in a transaction."""
        return JudgingMember(unit, self, project, who)


class JudgingMember:
    """Someone who judges in a project, within a transaction.

    Args:
        unit: The transaction.
        service: What the process keeps between transactions.
        project: The project's row.
        who: Who judges, and in which browser tab.
    """

    def __init__(
        self, unit: UnitOfWork, service: JudgingService, project: ProjectRow, who: LeaseHolder
    ) -> None:
        self._unit = unit
        self._connection = unit.connection
        self._service = service
        self._project = project
        self._who = who
        self._at: LockedQuery | None = None

    def next(self, after: Sequence[UUID] = ()) -> NextTask:
        """The next task: the one that the tab holds, one that lapsed, or a new one.

        Args:
            after: The tokens of the tasks that the tab holds already, the one that it shows first,
                to get one more: see `TaskDispatcher.task_ahead`.
        """
        stop = self._stop()
        return self._dispatch(after) if stop is None else NoTask(stop)

    def following(self, after: Sequence[UUID] = ()) -> NextTask | None:
        """The next task after an answer, as `next`; None if they get no more for now."""
        if self._stop() is not None:
            return None
        return self._dispatch(after)

    def answer(self, token: UUID, answer: Answer) -> AnswerResult:
        """Record an answer.

        Args:
            token: Token of the lease.
            answer: The answer.
        """
        row = self._query_of_lease(token)
        if row is not None and row.project_id != self._project.id:
            raise RefusedError(404, "This task belongs to another project.")
        # Two copies of an answer may both find the query; only one of them gets the lease.
        lease = None if row is None else take_lease(self._connection, token)
        if row is None or lease is None:
            return self._recorded(token, answer.choice)
        user_id = self._who.user_id
        if lease.user_id != user_id:
            raise RefusedError(403, "This task was assigned to someone else.")
        task, grades = task_of(lease), grade_names(self._project.scale)
        parts = answer_entries(Mode(self._project.mode), task, answer.choice, grades)
        replies = checked_replies(
            self._project.questions, answer.replies, skipped=answer.choice == SKIP
        )
        query = self._at = self._unit.locked(self._project, row)
        late = lease.released or lease.expires_at < query.now
        counts = not late or query.still_counts(task, user_id)
        if task.purpose is Purpose.MAIN and query.state.has_answered(user_id, task.pair, parts):
            counts = False
        spent = max(min(answer.seconds, query.now - lease.granted_at), 0.0)
        new = NewAnswer(
            user_id, token, parts, task.purpose, late, counts, answer.reason, spent, replies
        )
        query.answer(new)
        # A task that was leased and is still open is available to others.
        query.opened = query.opened or not new.is_judgment or task.purpose is not Purpose.MAIN
        return AnswerResult(False, late, counts, query.is_finished)

    def undo(self, token: UUID, answer: UUID | None = None) -> NextTask:
        """Undo an answer, by default the last one, and lease the same task again.

        While the project is paused, the answer is undone and no task is leased.

        Args:
            token: Identifies this undo, so that sending it twice has no effect.
            answer: The token of the answer.
        """
        if self._entries(token):
            return self.next()
        check_not_archived(self._project)
        check_may_undo(self._connection, self._project.id, self._who.user_id)
        query = self._at = self._query_of(answer)
        if query is None:
            raise RefusedError(404, "There is nothing to undo.")
        user_id, state = self._who.user_id, query.state
        undone = state.last_answer(user_id) if answer is None else state.answered(user_id, answer)
        if not undone:
            raise RefusedError(404, "There is nothing to undo.")
        query.undo(undone, token)
        query.opened = True
        release_tab(self._connection, user_id, self._who.tab, query.now)
        stop = self._stop()
        if stop in ("paused", "training"):
            return NoTask(stop)
        again = _task_again(query, undone, user_id)
        if again is not None:
            return query.lease(self._project, self._who, again)
        return self._dispatch()

    def change(self, answer: UUID, change: AnswerChange) -> None:
        """Replace an earlier answer by another one, or take it back.

        The log gets an undo and the new answer. Its time is that of the earlier answer: how long
        someone thought about the change is not known.

        Args:
            answer: The token of the earlier answer.
            change: What to replace it by.
        """
        if self._entries(change.token):
            return
        check_not_archived(self._project)
        user_id = self._who.user_id
        if change.choice in (None, SKIP):
            check_may_undo(self._connection, self._project.id, user_id)
        query = self._query_of(answer)
        if query is None:
            raise RefusedError(404, "The answer does not exist.")
        before = query.state.answered(user_id, answer)
        if not before:
            raise RefusedError(409, "This answer cannot be changed any more.")
        parts = self._changed(before, change.choice)
        if query.state.withdrawn and parts:
            raise RefusedError(409, "This answer cannot be changed any more.")
        first = before[0]
        # The client's token is on what is written last, so that the request can be repeated.
        query.undo(before, new_token() if parts else change.token, "changed")
        query.opened = True
        if not parts:
            return
        counts = first.counts
        if first.kind is Kind.SKIP and first.left is not None:
            # Others may have judged it meanwhile, as a skip asks them to.
            task = JudgingTask(first.left, NO_ITEM if first.right is None else first.right)
            counts = query.still_counts(task, user_id)
        query.answer(
            NewAnswer(
                user_id, change.token, parts, first.purpose, counts=counts, reason=change.reason,
                seconds=first.seconds, replies=first.replies,
            )
        )  # fmt: skip

    def renew(self, tokens: Sequence[UUID]) -> dict[UUID, float | None]:
        """Renew leases; returns their new expiry, or None for tasks that went to someone else."""
        return {
            token: renew_lease(self._connection, self._project, self._who, token, self._unit.now)
            for token in tokens
        }

    def release(self, token: UUID, expires_at: float | None = None) -> bool:
        """Release a lease before it expires; returns whether the task is now available to others.

        A task shown in another tab of the same person becomes available once that tab stops
        renewing it.

        Args:
            token: Token of the lease.
            expires_at: When it ended by the last response. If it ends later by now, it was asked
                for again since, for example by the same page loaded anew: then it stays.
        """
        row = self._query_of_lease(token)
        if row is None or row.project_id != self._project.id:
            return False
        lease = fetch_one(self._connection, _LEASE, LeaseRow, key=token)
        if lease is None:
            return False
        if lease.user_id != self._who.user_id or lease.released:
            return False
        if expires_at is not None and lease.expires_at > expires_at:
            return False
        self._unit.locked(self._project, row).release(lease)
        return not lease.shared

    def _dispatch(self, after: Sequence[UUID] = ()) -> NextTask:
        dispatcher = TaskDispatcher(
            self._unit, self._project, self._who, self._service.rng, self._service.blocked
        )
        return dispatcher.task_ahead(self._at, after) if after else dispatcher.next_task(self._at)

    def _stop(self) -> Literal["paused", "training", "yours-done"] | None:
        """Why they get no task, whatever is open; or None."""
        if self._project.paused:
            return "paused"
        return self._service.gate.stop(self._connection, self._project, self._who.user_id)

    def _query_of_lease(self, token: UUID) -> ProjectQueryRow | None:
        """Lock the query of a lease; None if the lease is gone.

        The lease is read after that: while this waits, it may be released or taken over.
        """
        return fetch_one(self._connection, _QUERY_OF_LEASE, ProjectQueryRow, key=token)

    def _query_of(self, answer: UUID | None) -> LockedQuery | None:
        """Lock the query of one of their answers, or of their last one that can be undone."""
        values: dict[str, object] = {"user": self._who.user_id, "project": self._project.id}
        if answer is None:
            query_id = self._connection.scalar(_QUERY_OF_LAST_ANSWER, values)
        else:
            query_id = self._connection.scalar(_QUERY_OF_ANSWER, {**values, "answer": answer})
        if query_id is None:
            return None
        return self._unit.lock(self._project, _QUERY, query=query_id)

    def _changed(self, before: Sequence[QueryLogEntry], choice: str | None) -> list[AnswerEntry]:
        """What replaces an answer; nothing if it is taken back."""
        if choice is None:
            return []
        return changed_entries(self._project.mode, before, choice, grade_names(self._project.scale))

    def _recorded(self, token: UUID, choice: str) -> AnswerResult:
        """The result of an answer that was recorded before; an error if there is none."""
        rows = self._entries(token)
        if not rows or rows[0].project_id != self._project.id:
            raise RefusedError(404, "The task does not exist.")
        if rows[0].user_id != self._who.user_id:
            raise RefusedError(403, "This task was assigned to someone else.")
        if not _matches(rows, self._project, choice):
            raise RefusedError(409, "This task has another answer by now, which was kept.")
        return AnswerResult(True, rows[0].late, rows[0].counts, finished=False)

    def _entries(self, token: UUID) -> list[_RecordedRow]:
        """The entries of the log with a token."""
        return [_RecordedRow(*row) for row in self._connection.execute(_RECORDED, {"key": token})]


def _matches(rows: Sequence[_RecordedRow], project: ProjectRow, choice: str) -> bool:
    """Whether a choice adds the entries that were recorded."""
    recorded = [AnswerEntry(Kind(row.kind), row.left or 0, row.right, row.value) for row in rows]
    sides = [side for row in rows for side in (row.left, row.right) if side is not None]
    if recorded[0].kind is Kind.BAD and len(sides) == 1:
        return choice in ("bad-left", "bad-right")  # with which other it was shown is not recorded
    task = JudgingTask(sides[0], sides[1] if len(sides) > 1 else NO_ITEM, Purpose(rows[0].purpose))
    return recorded == answer_entries(Mode(project.mode), task, choice, grade_names(project.scale))


def _task_again(
    query: LockedQuery, undone: Sequence[QueryLogEntry], user_id: int
) -> JudgingTask | None:
    """The task of an undone answer, if it can be asked again."""
    first, state, held = undone[0], query.state, query.leases.held
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

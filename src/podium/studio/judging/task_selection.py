"""Selects a task of a query for an assessor, or the reason why there is none."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from sqlalchemy import Connection, select

from podium.studio.judging.leases import HeldPair
from podium.studio.judging.modes import JudgingTask
from podium.studio.judging.open_work import OpenWork
from podium.studio.judging.query_state import QueryState
from podium.studio.messages import Message
from podium.studio.store.enums import Mode, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow
from podium.studio.store.tables import Gold, JudgmentCount, LogEntry, ProjectQuery

_REPEAT_AFTER = 5
"""The minimum number of answers between a pair and its repetition."""
_AT_ONCE = 0.5
_SOON = 5.0
LATER = 15.0
"""Seconds until the next request if others must judge first and nobody holds a task."""


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


class TaskSelector:
    """Selects tasks.

    Args:
        rng: Decides at random when to ask a check, and which.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def pick(
        self,
        connection: Connection,
        project: ProjectRow,
        query: ProjectQueryRow,
        state: QueryState,
        held: list[HeldPair],
        user_id: int,
    ) -> JudgingTask | None:
        """A task of a query for someone, or None; sometimes a check instead of an open task."""
        mine = {each.pair for each in held if each.user_id == user_id}
        main = next(open_to(state, held, user_id), None)
        if main is None or project.mode != Mode.PAIRS:
            return main
        check = self._check(connection, project, query, state, user_id)
        return main if check is None or check.pair in mine else check

    def _check(
        self,
        connection: Connection,
        project: ProjectRow,
        query: ProjectQueryRow,
        state: QueryState,
        user_id: int,
    ) -> JudgingTask | None:
        drawn = self._rng.random()
        if drawn < project.gold_rate:
            met = state.asked_pairs(user_id, Purpose.GOLD)
            rows = connection.execute(
                select(Gold.left, Gold.right).where(Gold.query_id == query.id)
            ).all()
            tasks = [JudgingTask(row.left, row.right, Purpose.GOLD) for row in rows]
            tasks = [task for task in tasks if task.pair not in met and state.shows_all(task)]
            if not tasks:
                return None
            task = self._rng.choice(tasks)
            if self._rng.random() < 0.5:
                return JudgingTask(task.right, task.left, Purpose.GOLD)
            return task
        if drawn < project.gold_rate + project.repeat_rate:
            again = state.repeatable(user_id, after=_REPEAT_AFTER)
            return self._rng.choice(again) if again else None
        return None


def open_to(state: QueryState, held: list[HeldPair], user_id: int) -> Iterator[JudgingTask]:
    """Tasks open to someone: not leased to them, nor to as many others as the task needs."""
    mine = {each.pair for each in held if each.user_id == user_id}
    counts: dict[tuple[int, int], int] = {}
    for each in held:
        counts[each.pair] = counts.get(each.pair, 0) + 1
    for task in state.open(user_id):
        if task.pair not in mine and state.mode.missing(task) > counts.get(task.pair, 0):
            yield task


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
    return NoTask("wait", LATER)


def query_to_undo(
    connection: Connection, project_id: int, user_id: int, answer: UUID | None
) -> int | None:
    """The query of one of someone's answers, or of their last one that can be undone."""
    if answer is not None:
        return connection.scalar(
            select(LogEntry.query_id)
            .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
            .where(
                LogEntry.token == answer,
                LogEntry.part == 0,
                LogEntry.user_id == user_id,
                ProjectQuery.project_id == project_id,
            )
        )
    return connection.scalar(
        select(JudgmentCount.query_id)
        .join(ProjectQuery, ProjectQuery.id == JudgmentCount.query_id)
        .where(
            JudgmentCount.user_id == user_id,
            JudgmentCount.last_at > 0,
            ProjectQuery.project_id == project_id,
        )
        .order_by(JudgmentCount.last_at.desc())
        .limit(1)
    )

"""Adjudication: where people disagree, a chosen person decides, who sees the earlier answers.

The decision is an entry of the log. It replaces each answer on that pair, see
`podium.studio.judging.query_state`, and can be undone like any other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.judging.answer_choices import SKIP, answer_entries, invalid_choice
from podium.studio.judging.judged import JudgedQuery, load_judged_query
from podium.studio.judging.modes import NO_ITEM, JudgingTask, QueryLogEntry
from podium.studio.judging.query_state import unit_of
from podium.studio.judging.scales import grade_names
from podium.studio.judging.unit_of_work import LockedQuery, NewAnswer
from podium.studio.store.enums import Kind, Mode, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_all, fetch_one
from podium.studio.store.tables import Adjudicator, Membership, ProjectQuery, QueryFigures
from podium.studio.store.tokens import new_token

_VALUED = (Kind.VERDICT, Kind.GRADE, Kind.SIDE_BY_SIDE)
_MAX_TRIES = 50
"""How many queries one request looks at: figures may be older than the log."""


@dataclass(frozen=True)
class Dispute:
    """A pair, or a document, on which people disagree.

    Attributes:
        judged: The query.
        task: What to decide, with the sides as the first of them saw it.
        votes: What they answered.
    """

    judged: JudgedQuery
    task: JudgingTask
    votes: Sequence[QueryLogEntry]


def disputes_of(judged: JudgedQuery) -> list[Dispute]:
    """What people disagree on in a query, once nobody else is to be asked about it."""
    by_unit: dict[tuple[int, int], list[QueryLogEntry]] = {}
    for entry in judged.standing:
        if entry.kind in _VALUED and entry.purpose is Purpose.MAIN and entry.counts:
            by_unit.setdefault(unit_of(entry), []).append(entry)
    shared = {unit: votes for unit, votes in by_unit.items() if len(votes) > 1}
    if not shared or judged.state.withdrawn:
        return []
    missing = judged.state.missing()
    return [
        Dispute(judged, _task_of(votes[0]), votes)
        for unit, votes in shared.items()
        if unit not in missing
        and len({_value(each, votes[0]) for each in votes}) > 1
        and judged.state.shows_all(_task_of(votes[0]))
        and judged.state.adjudication_of(unit) is None
    ]


def adjudicator_of(connection: Connection, project_id: int) -> int | None:
    """Who decides in a project, if anyone."""
    return connection.scalar(
        select(Adjudicator.user_id).where(Adjudicator.project_id == project_id)
    )


def set_adjudicator(connection: Connection, who: Member, user_id: int | None) -> None:
    """Choose who decides, a member of the project, or nobody."""
    check_not_archived(who.project)
    if user_id is not None and (
        connection.scalar(
            select(Membership.role).where(
                Membership.project_id == who.project.id, Membership.user_id == user_id
            )
        )
        is None
    ):
        raise RefusedError(404, "The member does not exist.")
    connection.execute(delete(Adjudicator).where(Adjudicator.project_id == who.project.id))
    if user_id is not None:
        connection.execute(insert(Adjudicator).values(project_id=who.project.id, user_id=user_id))
    record(connection, who.person.id, who.project.id, "chose an adjudicator", user=user_id)


def count_disputes(connection: Connection, project_id: int) -> int:
    """How many disagreements wait for a decision, as of the last report."""
    total = connection.scalar(
        select(func.sum(QueryFigures.disputes))
        .join(ProjectQuery, ProjectQuery.id == QueryFigures.query_id)
        .where(ProjectQuery.project_id == project_id, ProjectQuery.withdrawn.is_(False))
    )
    return int(total or 0)


def next_dispute(connection: Connection, project: ProjectRow) -> Dispute | None:
    """The first disagreement that waits for a decision, or None."""
    rows = fetch_all(
        connection,
        select(ProjectQuery.__table__)
        .join(QueryFigures, QueryFigures.query_id == ProjectQuery.id)
        .where(
            ProjectQuery.project_id == project.id,
            ProjectQuery.withdrawn.is_(False),
            QueryFigures.disputes > 0,
        )
        .order_by(ProjectQuery.id)
        .limit(_MAX_TRIES),
        ProjectQueryRow,
    )
    for row in rows:
        disputes = disputes_of(load_judged_query(connection, project, row))
        if disputes:
            return disputes[0]
    return None


def decide(
    connection: Connection,
    who: Member,
    query_id: int,
    sides: tuple[int, int],
    choice: str,
    reason: str | None = None,
) -> None:
    """Record an adjudicator's decision.

    Args:
        connection: The transaction.
        who: The adjudicator.
        query_id: The query.
        sides: The documents on the left and on the right as they were shown; the second is -1 if
            there is one alone.
        choice: What the answer is, as for anyone; documents cannot be marked as bad here.
        reason: Why.
    """
    if adjudicator_of(connection, who.project.id) != who.person.id:
        raise RefusedError(403, "Only the project's adjudicator may do this.")
    if who.project.paused:
        raise RefusedError(409, "The project is paused.")
    statement = select(ProjectQuery.__table__).where(
        ProjectQuery.id == query_id, ProjectQuery.project_id == who.project.id
    )
    row = fetch_one(connection, statement.with_for_update(), ProjectQueryRow)
    if row is None:
        raise RefusedError(404, "The query does not exist.")
    judged = load_judged_query(connection, who.project, row)
    task = JudgingTask(*sides, Purpose.ADJUDICATE)
    disputes = disputes_of(judged)
    if not any(each.task.pair == task.pair for each in disputes):
        raise RefusedError(409, "This has been decided, or people have changed their answers.")
    grades = grade_names(who.project.scale)
    if choice == SKIP:
        raise invalid_choice(choice)
    parts = answer_entries(Mode(who.project.mode), task, choice, grades)
    query = LockedQuery(connection, row, judged.state, time.time())
    query.answer(NewAnswer(who.person.id, new_token(), parts, task.purpose, reason=reason))
    query.opened = query.corrected = True
    query.write_back()
    # The next report works it out again; until then the next disagreement is found by this.
    left = len(disputes_of(judged))
    connection.execute(
        update(QueryFigures).where(QueryFigures.query_id == row.id).values(disputes=left)
    )


def _task_of(entry: QueryLogEntry) -> JudgingTask:
    right = NO_ITEM if entry.right is None else entry.right
    return JudgingTask(entry.left or 0, right, Purpose.ADJUDICATE)


def _value(entry: QueryLogEntry, first: QueryLogEntry) -> int:
    """What someone said, with the sides as another saw them."""
    value = entry.value or 0
    return value if entry.left == first.left else -value

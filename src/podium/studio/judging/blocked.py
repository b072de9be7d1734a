"""Blocked work: queries that nobody can finish, why, and what would unblock them.

Pairs judged by several people need that many assessors; where people judge assigned queries only,
each query needs that many assignees. Pairs that everyone has skipped are blocked too. ``careful``
is never short of people: it ends when the assessors have judged every pair, even with budget left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select

from podium.judging.algorithms import CAREFUL
from podium.studio.errors import RefusedError
from podium.studio.messages import Message
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import (
    Exhausted,
    Membership,
    ProjectQuery,
    QueryAssignment,
    User,
)

_KEPT_SECONDS = 5.0
"""How long the result is cached: pages that wait ask every few seconds."""
_ASSIGN = Message("Assign the queries under Assignments, or let everyone judge all queries.")
NOT_ASSIGNED = Message("No query is assigned to you. %(remedy)s", remedy=_ASSIGN)


@dataclass(frozen=True)
class BlockedQueries:
    """Queries that are blocked for the same reason.

    Attributes:
        queries: How many.
        why: The reason.
        remedy: What would unblock them.
    """

    queries: int
    why: Message
    remedy: Message

    @property
    def message(self) -> Message:
        """All of it in a sentence or two."""
        return Message.counted(
            "%(count)s query is blocked: %(why)s %(remedy)s",
            "%(count)s queries are blocked: %(why)s %(remedy)s",
            self.queries,
            why=self.why,
            remedy=self.remedy,
        )


@dataclass(frozen=True)
class BlockedSummary:
    """What is blocked in a project, as shown to assessors.

    Attributes:
        messages: What is blocked, why, and what would unblock it.
        blocks_everything: Whether all remaining work is blocked.
    """

    messages: tuple[Message, ...]
    blocks_everything: bool


@dataclass(frozen=True)
class _CachedSummary:
    settings: tuple[int, bool]
    made_at: float
    problems: BlockedSummary


class BlockedWork:
    """Finds blocked work for pages that wait, cached for a few seconds.

    Args:
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[int, _CachedSummary] = {}

    def problems(self, connection: Connection, project: ProjectRow) -> BlockedSummary:
        """What is blocked in a project."""
        now = self._clock()
        # A manager who has just followed the advice must not see it again.
        settings = people_needed(project), bool(project.assigned_only)
        kept = self._kept.get(project.id)
        if (
            kept is None
            or kept.settings != settings
            or not kept.made_at <= now < kept.made_at + _KEPT_SECONDS
        ):
            kept = _CachedSummary(settings, now, _problems(connection, project))
            self._kept[project.id] = kept
        return kept.problems


def _problems(connection: Connection, project: ProjectRow) -> BlockedSummary:
    blocked = blocked_work(connection, project)
    open_queries = connection.scalar(
        select(func.count())
        .select_from(ProjectQuery)
        .where(ProjectQuery.project_id == project.id, ProjectQuery.done.is_(False))
    )
    blocks_everything = sum(each.queries for each in blocked) >= int(open_queries or 0)
    return BlockedSummary(
        tuple(each.message for each in blocked), bool(blocked) and blocks_everything
    )


def people_needed(project: ProjectRow) -> int:
    """The minimum number of assessors for each query of a project.

    Example:
        >>> from types import SimpleNamespace
        >>> overlap = SimpleNamespace(
        ...     mode="pairs", algorithm="adaptive", overlap_share=0.5, overlap_assessors=2
        ... )
        >>> people_needed(overlap)
        2
    """
    careful = project.mode == Mode.PAIRS and project.algorithm == CAREFUL
    return int(project.overlap_assessors) if project.overlap_share > 0 and not careful else 1


def blocked_work(connection: Connection, project: ProjectRow) -> list[BlockedQueries]:
    """What is blocked in a project."""
    people = int(connection.scalar(_members(project.id)) or 0)
    understaffed = _understaffed_queries(
        connection, project, None if project.assigned_only else people
    )
    if not understaffed:
        return _nothing_for_anyone(connection, project, people)
    blocked = []
    alone = sum(each.queries for each in understaffed if each.people == 0)
    if alone:
        blocked.append(BlockedQueries(alone, Message("nobody is assigned."), _ASSIGN))
    others = [each for each in understaffed if each.people]
    if others:
        needed, most = people_needed(project), max(each.people for each in others)
        if project.assigned_only:
            why = Message.counted(
                "%(needed)s people are needed, and only %(count)s is assigned.",
                "%(needed)s people are needed, and only %(count)s are assigned.",
                most,
                needed=needed,
            )
        else:
            why = Message(
                "%(needed)s people are needed, and only %(count)s can judge.",
                needed=needed,
                count=most,
            )
        count = sum(each.queries for each in others)
        blocked.append(BlockedQueries(count, why, _remedy(project, needed)))
    return blocked


def check_assignments(connection: Connection, project: ProjectRow) -> None:
    """Refuse assignments with which a query could not be finished.

    Queries assigned to nobody are accepted: they may be assigned later.
    """
    if not project.assigned_only:
        return
    understaffed = [
        each for each in _understaffed_queries(connection, project, None) if each.people
    ]
    if understaffed:
        needed, fewest = people_needed(project), min(each.people for each in understaffed)
        count = sum(each.queries for each in understaffed)
        raise RefusedError(
            422,
            "%(needed)s people must judge a query, but %(count)s would be assigned to fewer: to "
            "%(fewest)s. %(remedy)s",
            needed=needed,
            count=count,
            fewest=fewest,
            remedy=_remedy(project, needed),
        )


@dataclass(frozen=True)
class _Understaffed:
    """Queries with fewer assessors than they need."""

    queries: int
    people: int


def _members(project_id: int) -> Select[int]:
    """How many people can judge in a project."""
    return (
        select(func.count())
        .select_from(Membership)
        .join(User, User.id == Membership.user_id)
        .where(Membership.project_id == project_id, User.disabled.is_(False))
    )


def _assigned() -> ColumnElement[int]:
    """To how many people who can judge it a query is assigned."""
    return (
        select(func.count())
        .select_from(QueryAssignment)
        .join(User, User.id == QueryAssignment.user_id)
        .where(QueryAssignment.query_id == ProjectQuery.id, User.disabled.is_(False))
        .correlate(ProjectQuery)
        .scalar_subquery()
    )


def _understaffed_queries(
    connection: Connection, project: ProjectRow, people: int | None
) -> list[_Understaffed]:
    """Queries that are not done and that fewer people may judge than they need.

    Args:
        connection: A transaction.
        project: The project's row.
        people: How many may judge each query; None is those to whom it is assigned.
    """
    needed = people_needed(project)
    if people is not None and people >= needed:
        return []
    each = (
        select((_assigned() if people is None else literal(people)).label("people"))
        .where(ProjectQuery.project_id == project.id, ProjectQuery.done.is_(False))
        .subquery()
    )
    rows = connection.execute(select(each.c.people, func.count()).group_by(each.c.people))
    return [_Understaffed(count, have) for have, count in rows if have < needed]


def _nothing_for_anyone(
    connection: Connection, project: ProjectRow, people: int
) -> list[BlockedQueries]:
    """Queries in which nobody who may judge them has an open task."""
    looked = (
        select(func.count())
        .select_from(Exhausted)
        .join(Membership, Membership.user_id == Exhausted.user_id)
        .join(User, User.id == Exhausted.user_id)
        .where(
            Exhausted.query_id == ProjectQuery.id,
            Exhausted.changed == ProjectQuery.changed,
            Membership.project_id == project.id,
            User.disabled.is_(False),
        )
        .correlate(ProjectQuery)
        .scalar_subquery()
    )
    count = connection.scalar(
        select(func.count())
        .select_from(ProjectQuery)
        .where(
            ProjectQuery.project_id == project.id,
            ProjectQuery.available,
            ProjectQuery.lease_expiry.is_(None),
            looked >= (_assigned() if project.assigned_only else people),
        )
    )
    if not count:
        return []
    why = Message("everyone who can judge has already judged or skipped the remaining pairs.")
    remedy = Message("Invite someone else, or ask those who skipped pairs to undo that.")
    return [BlockedQueries(int(count), why, remedy)]


def _remedy(project: ProjectRow, needed: int) -> Message:
    if project.assigned_only:
        return Message(
            "Assign each query to %(needed)s people, or lower the number of people who judge a "
            "pair in the settings.",
            needed=needed,
        )
    return Message(
        "Invite more people, or lower the number of people who judge a pair in the settings."
    )

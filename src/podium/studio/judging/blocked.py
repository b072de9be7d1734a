"""Work that nobody can do: what is blocked, why, and what would unblock it.

Pairs that several people judge need that many people, each query its own where people judge only
what is assigned to them. And whatever all have skipped is left for nobody. ``careful`` needs nobody
in particular: it ends when those who judge have judged every pair, even with budget left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, literal, select

from podium.judging.algorithms import CAREFUL
from podium.studio.errors import RefusedError
from podium.studio.store.enums import Mode
from podium.studio.store.tables import (
    Exhausted,
    Membership,
    Query,
    QueryAssignment,
    User,
)

_KEPT_SECONDS = 5.0
"""How long what was found holds: people who wait ask again and again."""
_ASSIGN = "Assign the queries on the page Assignment, or let everyone judge all of them."
NOT_ASSIGNED = f"No query is assigned to you. {_ASSIGN}"


@dataclass(frozen=True)
class BlockedQueries:
    """Queries that wait for people who are not there.

    Attributes:
        queries: How many.
        why: What keeps them.
        remedy: What would unblock them.
    """

    queries: int
    why: str
    remedy: str

    def __str__(self) -> str:
        noun = "query is" if self.queries == 1 else "queries are"
        return f"{self.queries:,} {noun} blocked: {self.why} {self.remedy}"


@dataclass(frozen=True)
class BlockedSummary:
    """What is blocked in a project, as assessors are told.

    Attributes:
        words: What is blocked, why, and what would unblock it.
        is_all: Whether that is everything that is left, so that nobody can go on.
    """

    words: tuple[str, ...]
    is_all: bool


@dataclass(frozen=True)
class _CachedSummary:
    settings: tuple[Any, ...]
    made_at: float
    problems: BlockedSummary


class BlockedWork:
    """Finds what is blocked, for people who wait, at most every few seconds.

    Args:
        clock: Tells the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[int, _CachedSummary] = {}

    def problems(self, connection: Connection, project: Any) -> BlockedSummary:
        """What is blocked in a project."""
        now = self._clock()
        # A manager who was told the remedy and changed the settings is not to be told it again.
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


def _problems(connection: Connection, project: Any) -> BlockedSummary:
    blocked = blocked_work(connection, project)
    open_queries = connection.scalar(
        select(func.count())
        .select_from(Query)
        .where(Query.project_id == project.id, Query.done.is_(False))
    )
    is_all = sum(each.queries for each in blocked) >= int(open_queries or 0)
    return BlockedSummary(tuple(map(str, blocked)), bool(blocked) and is_all)


def people_needed(project: Any) -> int:
    """How many people each query of a project takes at the least.

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


def blocked_work(connection: Connection, project: Any) -> list[BlockedQueries]:
    """What is blocked in a project."""
    people = int(connection.scalar(_members(project.id)) or 0)
    short = _short_of_people(connection, project, None if project.assigned_only else people)
    if not short:
        return _nothing_for_anyone(connection, project, people)
    found = []
    alone = sum(each.queries for each in short if each.people == 0)
    if alone:
        found.append(BlockedQueries(alone, "nobody is assigned.", _ASSIGN))
    others = [each for each in short if each.people]
    if others:
        needed, most = people_needed(project), max(each.people for each in others)
        can = "can judge"
        if project.assigned_only:
            can = "is assigned" if most == 1 else "are assigned"
        why = f"{needed} people are needed, and only {most} {can}."
        count = sum(each.queries for each in others)
        found.append(BlockedQueries(count, why, _remedy(project, needed)))
    return found


def check_assignments(connection: Connection, project: Any) -> None:
    """Refuse assignments with which nobody could finish a query.

    Queries that are assigned to nobody are no problem here: they may be yet.
    """
    if not project.assigned_only:
        return
    short = [each for each in _short_of_people(connection, project, None) if each.people]
    if short:
        needed, fewest = people_needed(project), min(each.people for each in short)
        count = sum(each.queries for each in short)
        raise RefusedError(
            422,
            f"{needed} people must judge a query, but {count:,} would be assigned to fewer: "
            f"to {fewest}. {_remedy(project, needed)}",
        )


@dataclass(frozen=True)
class _Understaffed:
    """Queries that are open to fewer people than they need."""

    queries: int
    people: int


def _members(project_id: int) -> Select[Any]:
    """How many people can judge in a project."""
    return (
        select(func.count())
        .select_from(Membership)
        .join(User, User.id == Membership.user_id)
        .where(Membership.project_id == project_id, User.disabled.is_(False))
    )


def _assigned() -> Any:
    """To how many people who can judge it a query is assigned."""
    return (
        select(func.count())
        .select_from(QueryAssignment)
        .join(User, User.id == QueryAssignment.user_id)
        .where(QueryAssignment.query_id == Query.id, User.disabled.is_(False))
        .correlate(Query)
        .scalar_subquery()
    )


def _short_of_people(
    connection: Connection, project: Any, people: int | None
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
        .where(Query.project_id == project.id, Query.done.is_(False))
        .subquery()
    )
    rows = connection.execute(select(each.c.people, func.count()).group_by(each.c.people))
    return [_Understaffed(count, have) for have, count in rows if have < needed]


def _nothing_for_anyone(connection: Connection, project: Any, people: int) -> list[BlockedQueries]:
    """Queries in which everyone who may judge them has looked, and found nothing left to judge."""
    looked = (
        select(func.count())
        .select_from(Exhausted)
        .join(Membership, Membership.user_id == Exhausted.user_id)
        .join(User, User.id == Exhausted.user_id)
        .where(
            Exhausted.query_id == Query.id,
            Exhausted.changed == Query.changed,
            Membership.project_id == project.id,
            User.disabled.is_(False),
        )
        .correlate(Query)
        .scalar_subquery()
    )
    count = connection.scalar(
        select(func.count())
        .select_from(Query)
        .where(
            Query.project_id == project.id,
            Query.available,
            Query.lease_expiry.is_(None),
            looked >= (_assigned() if project.assigned_only else people),
        )
    )
    if not count:
        return []
    why = "everyone who can judge has judged or skipped what is left."
    remedy = "Invite someone else, or ask those who skipped pairs to take that back."
    return [BlockedQueries(int(count), why, remedy)]


def _remedy(project: Any, needed: int) -> str:
    lower = "lower the number of people who judge a pair in the settings"
    if project.assigned_only:
        return f"Assign each query to {needed} people, or {lower}."
    return f"Invite more people, or {lower}."

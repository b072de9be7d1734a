"""Assignment of queries to assessors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from podium.errors import PodiumError
from podium.judging import balance, rotate
from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.errors import RefusedError
from podium.studio.judging.blocked import check_assignments
from podium.studio.judging.next_task import reopen_queries
from podium.studio.store.rows import fetch_all
from podium.studio.store.tables import Membership, ProjectQuery, QueryAssignment, User

Method = Literal["balance", "rotate"]
_AT_ONCE = 1000


def assign_queries(
    connection: Connection,
    who: Member,
    people: Sequence[int],
    *,
    method: Method = "balance",
    copies: int = 1,
    seed: int = 0,
) -> dict[int, int]:
    """Assign the unfinished queries to people, replacing earlier assignments.

    Args:
        connection: A transaction.
        who: The manager who does it.
        people: Members of the project; everyone whose account is enabled if none is named.
        method: ``balance`` by what each query is expected to take, or ``rotate`` by folds drawn
            at random.
        copies: How many people judge each query.
        seed: Draws who gets what among equals.

    Returns:
        How many queries each person got.
    """
    check_not_archived(who.project)
    members = {
        row.id: row
        for row in connection.execute(
            select(User.id, User.name, User.disabled)
            .join(Membership, Membership.user_id == User.id)
            .where(Membership.project_id == who.project.id)
        )
    }
    if not set(people) <= members.keys():
        raise RefusedError(422, "Queries can be assigned to members of the project only.")
    for person in people:
        if members[person].disabled:
            raise RefusedError(
                422,
                "The account of %(name)s is disabled: choose someone else.",
                name=members[person].name,
            )
    chosen = sorted(set(people) or (row.id for row in members.values() if not row.disabled))
    work = {
        str(query): left
        for query, left in connection.execute(
            select(ProjectQuery.id, ProjectQuery.expected_left).where(
                ProjectQuery.project_id == who.project.id, ProjectQuery.done.is_(False)
            )
        )
    }
    names = [str(person) for person in chosen]
    shares: dict[str, list[str]] = {name: [] for name in names}
    try:
        if method == "rotate":
            for assignment in rotate(
                list(work), names, modes=("all",), rounds=copies, random_state=seed
            ):
                shares[assignment.assessor].append(assignment.query)
        else:
            shares = balance(work, names, copies=copies, random_state=seed)
    except PodiumError as error:
        raise RefusedError(422, str(error)) from error
    before = {
        (row.query_id, row.user_id)
        for row in connection.execute(
            select(QueryAssignment.query_id, QueryAssignment.user_id)
            .join(ProjectQuery, ProjectQuery.id == QueryAssignment.query_id)
            .where(ProjectQuery.project_id == who.project.id, ProjectQuery.done.is_(False))
        )
    }
    _clear(connection, who.project.id, only_open=True)
    rows = [
        {"query_id": int(query), "user_id": int(name), "done": False}
        for name, queries in shares.items()
        for query in queries
    ]
    for begin in range(0, len(rows), _AT_ONCE):
        connection.execute(insert(QueryAssignment), rows[begin : begin + _AT_ONCE])
    check_assignments(connection, who.project)
    # People look at the queries that they got, even at those that they had passed before.
    new = {row["query_id"] for row in rows if (row["query_id"], row["user_id"]) not in before}
    changed = sorted(new)
    for begin in range(0, len(changed), _AT_ONCE):
        reopen_queries(connection, ProjectQuery.id.in_(changed[begin : begin + _AT_ONCE]))
    counts = {int(name): len(queries) for name, queries in shares.items()}
    record(
        connection, who.person.id, who.project.id, "assigned the queries",
        people=chosen, method=method, copies=copies, queries=len(work),
    )  # fmt: skip
    return counts


def unassign(connection: Connection, who: Member, person: int | None) -> int:
    """Take queries back from someone, or from everyone; returns how many assignments that were."""
    check_not_archived(who.project)
    gone = _clear(connection, who.project.id, person=person)
    record(
        connection, who.person.id, who.project.id, "removed assignments",
        user=person, assignments=gone,
    )  # fmt: skip
    return gone


class AssignmentCount(NamedTuple):
    """How many queries a member was assigned."""

    id: int
    name: str
    role: str
    queries: int
    left: float


def assignment_counts(connection: Connection, project_id: int) -> list[AssignmentCount]:
    """How many queries each member was assigned, and the judgments they still need."""
    mine = (
        select(
            QueryAssignment.user_id,
            func.count().label("queries"),
            func.sum(ProjectQuery.expected_left).label("left"),
        )
        .join(ProjectQuery, ProjectQuery.id == QueryAssignment.query_id)
        .where(ProjectQuery.project_id == project_id)
        .group_by(QueryAssignment.user_id)
        .subquery()
    )
    return fetch_all(
        connection,
        select(
            User.id,
            User.name,
            Membership.role,
            func.coalesce(mine.c.queries, 0).label("queries"),
            func.coalesce(mine.c.left, 0.0).label("left"),
        )
        .join(Membership, Membership.user_id == User.id)
        .outerjoin(mine, mine.c.user_id == User.id)
        .where(Membership.project_id == project_id)
        .order_by(User.name, User.id),
        AssignmentCount,
    )


def _clear(
    connection: Connection, project_id: int, *, person: int | None = None, only_open: bool = False
) -> int:
    queries = select(ProjectQuery.id).where(ProjectQuery.project_id == project_id)
    if only_open:
        queries = queries.where(ProjectQuery.done.is_(False))
    statement = delete(QueryAssignment).where(QueryAssignment.query_id.in_(queries))
    if person is not None:
        statement = statement.where(QueryAssignment.user_id == person)
    return int(connection.execute(statement).rowcount)

"""Finds the next task: the one a tab holds, one that lapsed, or a new one of any query.

A query with an unleased task is `available`, and stores the number of the transaction in which a
task last became free (`changed`). When someone finds no task for themselves in such a query, that
number is recorded (`Exhausted`) and the query is skipped for them until the number changes. Each
assessor also has a position in the index of available queries before which nothing is left for
them (`AssessorProgress`); a search starts right after it. So finding the next task costs the same
however many queries there are and however many of them are finished.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVarTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Select,
    bindparam,
    cast,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute

from podium.studio.judging.blocked import NOT_ASSIGNED, BlockedWork
from podium.studio.judging.unit_of_work import (
    MAX_LEASES,
    LeasedTask,
    LeaseHolder,
    LockedQuery,
    UnitOfWork,
    task_of,
)
from podium.studio.messages import Message
from podium.studio.store.dialects import INSERTS, Insert, oldest_running, transaction_number
from podium.studio.store.enums import Mode
from podium.studio.store.rows import LeaseRow, ProjectQueryRow, ProjectRow
from podium.studio.store.tables import (
    AssessorProgress,
    Exhausted,
    Lease,
    ProjectQuery,
    QueryAssignment,
)

_Columns = TypeVarTuple("_Columns")

_USER = bindparam("user", type_=BigInteger)
_PROJECT = bindparam("project", type_=BigInteger)
_OLDEST = select(oldest_running(_PROJECT))
_MAX_TRIES = 50
"""How many queries one request looks at; the next request continues from there."""
_LAST_ID = 2**62
"""Above every id."""


def _position_columns(
    assigned_only: bool,
) -> tuple[InstrumentedAttribute[int], InstrumentedAttribute[int]]:
    """The columns of the position before which someone has no open work."""
    if assigned_only:
        return AssessorProgress.assigned_changed, AssessorProgress.assigned_id
    return AssessorProgress.open_changed, AssessorProgress.open_id


def _unseen(selected: Select[*_Columns], assigned_only: bool) -> Select[*_Columns]:
    """Limit what is selected of queries to the first that may have a task for someone."""
    mine = AssessorProgress.user_id == _USER, AssessorProgress.project_id == _PROJECT
    after = [
        func.coalesce(select(column).where(*mine).scalar_subquery(), 0)
        for column in _position_columns(assigned_only)
    ]
    conditions = [
        ProjectQuery.project_id == _PROJECT,
        ProjectQuery.available,
        tuple_(ProjectQuery.changed, ProjectQuery.id) > tuple_(*after),
        ~_exists_per_query(
            Exhausted.user_id == _USER,
            Exhausted.query_id == ProjectQuery.id,
            Exhausted.changed == ProjectQuery.changed,
        ),
    ]
    if assigned_only:
        conditions.append(
            _exists_per_query(
                QueryAssignment.user_id == _USER, QueryAssignment.query_id == ProjectQuery.id
            )
        )
    return selected.where(*conditions).order_by(ProjectQuery.changed, ProjectQuery.id).limit(1)


def _exists_per_query(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """An EXISTS that is evaluated query by query.

    OFFSET 0 keeps PostgreSQL from turning it into a join over all rows: the planner cannot know
    that the first few queries suffice.
    """
    return exists(select(literal_column("1")).where(*conditions).offset(0))


def _locked(statement: Select[*_Columns]) -> Select[*_Columns]:
    """Skip queries that other transactions have locked."""
    return statement.with_for_update(skip_locked=True, of=ProjectQuery)


_ALL = select(ProjectQuery.__table__)
_FIND = {assigned_only: _locked(_unseen(_ALL, assigned_only)) for assigned_only in (False, True)}
_NOT_EXCLUDED = ProjectQuery.id.not_in(bindparam("excluded", expanding=True, type_=BigInteger))
_UNSEEN = {
    assigned_only: _unseen(select(ProjectQuery.changed, ProjectQuery.id), assigned_only)
    for assigned_only in (False, True)
}
_OF_PROJECT = ProjectQuery.project_id == _PROJECT
_ANOTHER = select(ProjectQuery.id).where(
    _OF_PROJECT, ProjectQuery.available, ProjectQuery.id != bindparam("q")
)
_LAPSED = _locked(
    _ALL.where(_OF_PROJECT, ProjectQuery.lease_expiry < bindparam("now"))
    .order_by(ProjectQuery.lease_expiry)
    .limit(1)
)
_FIRST_LEASE = (
    select(ProjectQuery.lease_expiry)
    .where(_OF_PROJECT, ProjectQuery.lease_expiry.is_not(None))
    .order_by(ProjectQuery.lease_expiry)
    .limit(1)
)
_IS_ASSIGNED = select(QueryAssignment.query_id).where(
    QueryAssignment.user_id == _USER, QueryAssignment.query_id == bindparam("q")
)
_ASSIGNED = (
    select(QueryAssignment.query_id)
    .join(ProjectQuery, ProjectQuery.id == QueryAssignment.query_id)
    .where(QueryAssignment.user_id == _USER, _OF_PROJECT)
)
_UNDONE_ASSIGNED = _ASSIGNED.where(QueryAssignment.done.is_(False))
_UNDONE = select(ProjectQuery.id).where(_OF_PROJECT, ProjectQuery.done.is_(False))


def _note(insert: Insert) -> Executable:
    statement = insert(Exhausted).from_select(
        ["user_id", "query_id", "changed"],
        select(cast(_USER, BigInteger), ProjectQuery.id, ProjectQuery.changed).where(
            ProjectQuery.id == bindparam("q"), ProjectQuery.available
        ),
    )
    return statement.on_conflict_do_update(
        index_elements=[Exhausted.user_id, Exhausted.query_id],
        set_={"changed": statement.excluded.changed},
    )


def _advance(insert: Insert, assigned_only: bool) -> Executable:
    """Record someone's position, unless another tab has advanced it further."""
    changed, last = _position_columns(assigned_only)
    others = _position_columns(not assigned_only)
    statement = insert(AssessorProgress).values(
        user_id=_USER,
        project_id=_PROJECT,
        judgments=literal_column("0"),
        seconds=literal_column("0.0"),
        **{changed.key: bindparam("until"), last.key: bindparam("last")},
        **{other.key: literal_column("0") for other in others},
    )
    further = [statement.excluded[column.key] for column in (changed, last)]
    return statement.on_conflict_do_update(
        index_elements=[AssessorProgress.user_id, AssessorProgress.project_id],
        set_={changed.key: further[0], last.key: further[1]},
        where=tuple_(*further) > tuple_(changed, last),
    )


_NOTE = {name: _note(insert) for name, insert in INSERTS.items()}
_ADVANCE = {
    (name, assigned_only): _advance(insert, assigned_only)
    for name, insert in INSERTS.items()
    for assigned_only in (False, True)
}


class OpenWork:
    """Searches for queries with open work for one person, within a transaction.

    Args:
        connection: The transaction.
        project: The project's row.
        user_id: Who looks for work.
    """

    def __init__(self, connection: Connection, project: ProjectRow, user_id: int) -> None:
        self._connection = connection
        self._assigned_only = bool(project.assigned_only)
        self._who = {"user": user_id, "project": project.id}
        self._noted = False

    def queries(self, now: float) -> Iterator[tuple[ProjectQueryRow, bool]]:
        """Queries that may have a task, with their rows locked, and whether this person may judge.

        One that goes on to the next has written back the row before, which had no task: it is not
        looked at again until it changes. Queries with a possibly expired lease come first, even if
        this person may not judge them.
        """
        for _ in range(_MAX_TRIES):
            row = self._one(_LAPSED, now=now) or self.find()
            if row is None:
                break
            yield from self.alone(row)

    def alone(self, row: ProjectQueryRow) -> Iterator[tuple[ProjectQueryRow, bool]]:
        """A query whose row is locked already, as `queries`."""
        may_judge = self.may_judge(row.id)
        yield row, may_judge
        if may_judge:  # others find the query once they may judge it
            self.exhaust(row.id)

    def queries_ahead(
        self, first: ProjectQueryRow | None, excluded: Collection[int]
    ) -> Iterator[tuple[ProjectQueryRow, bool]]:
        """As `queries`, as long as what is taken leaves something free to others in the project.

        Args:
            first: A query to begin with, locked already.
            excluded: Queries to leave out.
        """
        others = {*excluded} if first is None else {first.id, *excluded}
        if first is not None and first.id not in excluded and self._leaves_others(first):
            yield from self.alone(first)
        for _ in range(_MAX_TRIES):
            row = self.find(others)
            if row is None or not self._leaves_others(row):
                break
            yield from self.alone(row)

    def find(self, excluded: Collection[int] = ()) -> ProjectQueryRow | None:
        """The next query that may have a task, with its row locked; None if there is none."""
        if not excluded:
            return self._one(_FIND[self._assigned_only])
        statement = _FIND[self._assigned_only].where(_NOT_EXCLUDED)
        return self._one(statement, excluded=[*excluded])

    def may_judge(self, query_id: int) -> bool:
        """Whether a query is open to this person at all."""
        return not self._assigned_only or self._is_any(_IS_ASSIGNED, q=query_id)

    def _leaves_others(self, query: ProjectQueryRow) -> bool:
        """Whether taking a task of a query leaves something free in the project, there or else."""
        return query.free > 1 or self._is_any(_ANOTHER, q=query.id)

    def exhaust(self, query_id: int) -> None:
        """Record that a query, as its row is now, has no task for this person."""
        values = {"user": self._who["user"], "q": query_id}
        self._connection.execute(_NOTE[self._connection.dialect.name], values)
        self._noted = True

    def advance(self) -> None:
        """Start the next search after the queries that have no task for this person."""
        if not self._noted:
            return
        self._noted = False
        # Running transactions may add queries with a lower number, so never go past the oldest one.
        # It is read first: the next statement sees everything that was committed before it.
        oldest = self._connection.execute(_OLDEST, self._who).scalar_one()
        until, last = oldest - 1, _LAST_ID
        first = self._connection.execute(_UNSEEN[self._assigned_only], self._who).one_or_none()
        if first is not None and first.changed <= until:
            until, last = first.changed, first.id - 1
        statement = _ADVANCE[self._connection.dialect.name, self._assigned_only]
        self._connection.execute(statement, {"until": until, "last": last, **self._who})

    @property
    def has_unseen(self) -> bool:
        """Whether any query may have a task, including queries that others have locked."""
        return self._is_any(_UNSEEN[self._assigned_only])

    @property
    def first_lease_end(self) -> float | None:
        """When the first lease of the project may expire; None if there are none."""
        return self._connection.scalar(_FIRST_LEASE, self._who)

    @property
    def is_done(self) -> bool:
        """Whether every query of the project is done."""
        return not self._is_any(_UNDONE)

    @property
    def mine_is_done(self) -> bool:
        """Whether every query that this person may judge is done."""
        return not self._is_any(_UNDONE_ASSIGNED if self._assigned_only else _UNDONE)

    @property
    def is_anything_assigned(self) -> bool:
        """Whether any query of the project, done or not, is assigned to this person."""
        return self._is_any(_ASSIGNED)

    def _one(self, statement: Executable, **values: object) -> ProjectQueryRow | None:
        row = self._connection.execute(statement, {**self._who, **values}).one_or_none()
        return None if row is None else ProjectQueryRow._make(row)

    def _is_any(self, statement: Select[*_Columns], **values: int) -> bool:
        row = self._connection.execute(statement.limit(1), {**self._who, **values}).first()
        return row is not None


def reopen_queries(connection: Connection, *where: ColumnElement[bool]) -> int:
    """Make queries available to everyone again; returns how many."""
    statement = update(ProjectQuery).where(ProjectQuery.done.is_(False), *where)
    return int(
        connection.execute(statement.values(available=True, changed=transaction_number())).rowcount
    )


def reset_if_restored(connection: Connection) -> None:
    """Reset search positions whose transaction numbers come from another database server.

    A backup loaded into a new server starts with low transaction numbers again.
    """
    number = transaction_number()
    ahead = or_(AssessorProgress.open_changed > number, AssessorProgress.assigned_changed > number)
    updated = connection.execute(
        update(AssessorProgress).where(ahead).values(open_changed=0, assigned_changed=0)
    )
    if updated.rowcount:
        connection.execute(delete(Exhausted))


_AT_ONCE = 0.5
_SOON = 5.0
_LATER = 15.0
"""Seconds until the next request if others must judge first and nobody holds a task."""

_QUERY_OF_PROJECT = select(ProjectQuery.__table__).where(
    ProjectQuery.id == bindparam("query"), ProjectQuery.project_id == bindparam("project")
)
_QUERY = _QUERY_OF_PROJECT.with_for_update()
_IF_FREE = _QUERY_OF_PROJECT.with_for_update(skip_locked=True)
_MINE = (
    select(Lease.__table__)
    .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        ProjectQuery.project_id == bindparam("project"),
        ~Lease.released,
        Lease.expires_at >= bindparam("now"),
    )
    .order_by(Lease.granted_at.desc())
)
_LAPSED_LEASE = (
    select(Lease.token, Lease.query_id)
    .join(ProjectQuery, ProjectQuery.id == Lease.query_id)
    .where(
        Lease.user_id == bindparam("user"),
        ProjectQuery.project_id == bindparam("project"),
        Lease.tab != "",
        ~Lease.ahead,
        or_(Lease.released, Lease.expires_at < bindparam("now")),
    )
    .order_by(Lease.granted_at.desc())
    .limit(1)
)
_CHANGE = update(Lease).where(Lease.token == bindparam("key"), Lease.user_id == bindparam("user"))
_SHOW = _CHANGE.where(Lease.ahead).values(ahead=False)
_HELD_QUERIES = select(Lease.query_id).where(
    Lease.token.in_(bindparam("tokens", expanding=True)), Lease.user_id == bindparam("user")
)
_LEASE = select(Lease.__table__).where(
    Lease.token == bindparam("key"), Lease.user_id == bindparam("user")
)


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


NextTask = LeasedTask | NoTask


class TaskDispatcher:
    """Finds a task for someone, and leases it to them.

    Args:
        unit: The transaction.
        project: The project's row.
        who: Who asks, and from which tab.
        rng: Decides at random when to ask a check, and which.
        blocked: Finds work that nobody can do.
    """

    def __init__(
        self,
        unit: UnitOfWork,
        project: ProjectRow,
        who: LeaseHolder,
        rng: random.Random,
        blocked: BlockedWork,
    ) -> None:
        self._unit = unit
        self._project = project
        self._who = who
        self._rng = rng
        self._blocked = blocked
        self._work = OpenWork(unit.connection, project, who.user_id)

    def next_task(self, at: LockedQuery | None) -> NextTask:
        """The next task.

        Args:
            at: The query whose task was just answered, to stay with if possible; None if the tab
                may hold a task.
        """
        held = [] if at is not None else self._held()
        # What was fetched ahead is not what the page shows, nor showed before it was reloaded.
        mine = [each for each in held if each.tab == self._who.tab and not each.ahead]
        leased = self._renewed(mine[0]) if mine else None
        if leased is not None:
            return leased
        if len(held) < MAX_LEASES:
            leased = self._search(at)
            self._work.advance()
        if leased is None:
            # Better the same task in two tabs than none: it is answered once.
            held = self._held()
            leased = self._renewed(held[0]) if held else None
        return leased or self._no_task()

    def task_ahead(self, at: LockedQuery | None, after: Sequence[UUID]) -> NextTask:
        """A task to show after those that a tab holds, which their answers cannot change.

        An answer about a pair decides which pairs of its query are asked next, so a pair comes
        from a query in which the tab holds none. Grades and rankings do not depend on each other.
        The last query with something free is left to others, who would have to wait.

        Args:
            at: The query whose task was just answered, to stay with if possible.
            after: The tokens of the tasks that the tab holds, the one that it shows first.
        """
        connection, user_id = self._unit.connection, self._who.user_id
        connection.execute(_SHOW, {"key": after[0], "user": user_id})  # it is what the page shows
        held = self._held()
        excluded: set[int] = set()
        if self._project.mode == Mode.PAIRS:
            tokens = {"tokens": list(after), "user": user_id}
            excluded = {lease.query_id for lease in held if lease.tab == self._who.tab}
            excluded.update(connection.scalars(_HELD_QUERIES, tokens))
        leased = None
        if len(held) < MAX_LEASES:
            last = None if at is not None else self._lease(after[-1])
            if last is not None and last.query_id not in excluded:
                at = self._lock(last.query_id, _IF_FREE)
            first = None if at is None else at.row
            leased = self._lease_of(self._work.queries_ahead(first, excluded), ahead=True)
            self._work.advance()
        return leased or NoTask("wait", _LATER)

    def _search(self, at: LockedQuery | None) -> LeasedTask | None:
        """A task of the query that they are at, the one that lapsed, or one of any query."""
        leased = None if at is None else self._lease_of(self._work.alone(at.row))
        return leased or self._regain() or self._lease_of(self._work.queries(self._unit.now))

    def _lease_of(
        self, queries: Iterable[tuple[ProjectQueryRow, bool]], *, ahead: bool = False
    ) -> LeasedTask | None:
        """Lease a task of one of some queries."""
        for row, may_judge in queries:
            query = self._unit.locked(self._project, row)
            task = None
            if may_judge:
                task = query.pick(self._project, self._who.user_id, self._rng)
            if task is not None:
                return query.lease(self._project, self._who, task, ahead=ahead)
            query.write_back()
        return None

    def _held(self) -> list[LeaseRow]:
        """What they hold, newest first."""
        return [LeaseRow(*row) for row in self._unit.connection.execute(_MINE, self._asks())]

    def _asks(self) -> dict[str, float]:
        """Who asks for what, and when."""
        return {
            "user": self._who.user_id, "project": self._project.id, "now": self._unit.now,
        }  # fmt: skip

    def _renewed(self, lease: LeaseRow) -> LeasedTask | None:
        """Renew an active lease; None if it was released meanwhile.

        A page that is reloaded asks for its task while the previous page releases it.
        """
        query = self._lock(lease.query_id, _QUERY)
        return None if query is None else query.extend(self._project, self._who, lease)

    def _regain(self) -> LeasedTask | None:
        """The task that someone left unanswered, if it is still open and nobody holds it."""
        connection, user_id = self._unit.connection, self._who.user_id
        lapsed = connection.execute(_LAPSED_LEASE, self._asks()).one_or_none()
        if lapsed is None:
            return None
        token, query_id = lapsed
        query = self._lock(query_id, _IF_FREE)
        lease = None if query is None else self._lease(token)
        # Meanwhile it may have been answered, or asked for in another tab.
        if query is None or lease is None or not (lease.released or lease.expires_at < query.now):
            return None
        if query.is_still_open(task_of(lease), user_id) and self._work.may_judge(query.row.id):
            return query.lease_again(self._project, self._who, lease)
        # Its task is not open any more: it is not looked at again.
        connection.execute(_CHANGE, {"key": token, "user": user_id, "tab": ""})
        return None

    def _lease(self, token: UUID) -> LeaseRow | None:
        """A lease of theirs."""
        values = {"key": token, "user": self._who.user_id}
        row = self._unit.connection.execute(_LEASE, values).one_or_none()
        return None if row is None else LeaseRow(*row)

    def _lock(self, query_id: int, statement: Executable) -> LockedQuery | None:
        return self._unit.lock(self._project, statement, query=query_id, project=self._project.id)

    def _no_task(self) -> NoTask:
        """Why no task could be leased: all is done, is blocked, or others have what is left."""
        self._unit.write_back()
        reason = no_task_reason(self._work, self._unit.now)
        problems: tuple[Message, ...] = ()
        if reason == NoTask("wait", _LATER):
            problems = self._blocked.problems(self._unit.connection, self._project).messages
        elif reason.why == "yours-done":
            blocked = self._blocked.problems(self._unit.connection, self._project)
            if blocked.blocks_everything:
                problems = blocked.messages
            elif not self._work.is_anything_assigned:
                problems = (NOT_ASSIGNED,)
        return NoTask("blocked", _LATER, problems) if problems else reason


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
    return NoTask("wait", _LATER)

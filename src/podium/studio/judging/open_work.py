"""Open work: finds a query that may have a task for someone without reading finished ones.

A query with an unleased task is `available`, and stores the number of the transaction in which a
task last became free (`changed`). When someone finds no task for themselves in such a query, that
number is recorded (`Exhausted`) and the query is skipped for them until the number changes. Each
assessor also has a position in the index of available queries before which nothing is left for
them (`AssessorProgress`); a search starts right after it. So finding the next task costs the same
however many queries there are and whoever has finished them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVarTuple

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

from podium.studio.store.rows import ProjectQueryRow, ProjectRow
from podium.studio.store.tables import AssessorProgress, Exhausted, ProjectQuery, QueryAssignment
from podium.studio.store.transaction_ids import oldest_running, transaction_number
from podium.studio.store.upsert import INSERTS, Insert

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
        looked at again until it changes. Queries with a possibly expired lease come first, whoever
        may judge them.
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
        if may_judge:  # whoever may not yet finds the query once they may
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

"""Open work: finds a query that may have a task for someone without reading finished ones.

A query with an unleased task is `available`, and stores the number of the transaction in which a
task last became free (`changed`). When someone finds no task for themselves in such a query, that
number is recorded (`Exhausted`) and the query is skipped for them until the number changes. Each
assessor also has a position in the index of available queries before which nothing is left for
them (`AssessorProgress`); a search starts right after it. So finding the next task costs the same
however many queries there are and whoever has finished them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
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
from sqlalchemy.dialects import postgresql, sqlite

from podium.studio.store.prepared import Prepared
from podium.studio.store.tables import AssessorProgress, Exhausted, Query, QueryAssignment
from podium.studio.store.transaction_ids import oldest_running, transaction_number

_USER = bindparam("user", type_=BigInteger)
_PROJECT = bindparam("project", type_=BigInteger)
_LAST_ID = 2**62
"""Above every id."""


def _place(assigned_only: bool) -> tuple[Any, Any]:
    """Up to where someone has found nothing: the columns of a number and of an id."""
    if assigned_only:
        return AssessorProgress.assigned_changed, AssessorProgress.assigned_id
    return AssessorProgress.open_changed, AssessorProgress.open_id


def _unseen(assigned_only: bool, *columns: Any) -> Select[Any]:
    """The first query that may have something for someone."""
    mine = AssessorProgress.user_id == _USER, AssessorProgress.project_id == _PROJECT
    after = [
        func.coalesce(select(column).where(*mine).scalar_subquery(), 0)
        for column in _place(assigned_only)
    ]
    conditions = [
        Query.project_id == _PROJECT,
        Query.available,
        tuple_(Query.changed, Query.id) > tuple_(*after),
        ~_each(
            Exhausted.user_id == _USER,
            Exhausted.query_id == Query.id,
            Exhausted.changed == Query.changed,
        ),
    ]
    if assigned_only:
        conditions.append(
            _each(QueryAssignment.user_id == _USER, QueryAssignment.query_id == Query.id)
        )
    return select(*columns).where(*conditions).order_by(Query.changed, Query.id).limit(1)


def _each(*conditions: Any) -> Any:
    """Whether there is a row, looked up for one query after the other.

    The offset of none keeps PostgreSQL from making it a join of all rows: it cannot know that the
    first few queries will do.
    """
    return exists(select(literal_column("1")).where(*conditions).offset(0))


def _locked(statement: Select[Any]) -> Prepared:
    """Those that others have locked are passed: they are at it."""
    return Prepared(statement.with_for_update(skip_locked=True, of=Query))


def _both(make: Any) -> dict[bool, Prepared]:
    return {assigned_only: make(assigned_only) for assigned_only in (False, True)}


_FIND = _both(lambda assigned_only: _locked(_unseen(assigned_only, Query.__table__)))
_UNSEEN = _both(lambda assigned_only: Prepared(_unseen(assigned_only, Query.changed, Query.id)))
_OLDEST = Prepared(select(oldest_running(_PROJECT).label("oldest")))
_LAPSED = _locked(
    select(Query.__table__)
    .where(Query.project_id == _PROJECT, Query.lease_expiry < bindparam("now"))
    .order_by(Query.lease_expiry)
    .limit(1)
)
_FIRST_LEASE = Prepared(
    select(func.min(Query.lease_expiry).label("expiry")).where(
        Query.project_id == _PROJECT, Query.lease_expiry.is_not(None)
    )
)
_IS_ASSIGNED = Prepared(
    select(QueryAssignment.query_id).where(
        QueryAssignment.user_id == _USER, QueryAssignment.query_id == bindparam("q")
    )
)
_ASSIGNED = Prepared(
    select(QueryAssignment.query_id)
    .join(Query, Query.id == QueryAssignment.query_id)
    .where(QueryAssignment.user_id == _USER, Query.project_id == _PROJECT)
    .limit(1)
)
_UNDONE = Prepared(
    select(Query.id).where(Query.project_id == _PROJECT, Query.done.is_(False)).limit(1)
)
_UNDONE_ASSIGNED = Prepared(
    select(QueryAssignment.query_id)
    .join(Query, Query.id == QueryAssignment.query_id)
    .where(
        QueryAssignment.user_id == _USER,
        QueryAssignment.done.is_(False),
        Query.project_id == _PROJECT,
    )
    .limit(1)
)


def _note(insert: Any) -> Prepared:
    statement = insert(Exhausted).from_select(
        ["user_id", "query_id", "changed"],
        select(cast(_USER, BigInteger), Query.id, Query.changed).where(
            Query.id == bindparam("q"), Query.available
        ),
    )
    return Prepared(
        statement.on_conflict_do_update(
            index_elements=[Exhausted.user_id, Exhausted.query_id],
            set_={"changed": statement.excluded.changed},
        )
    )


def _advance(insert: Any, assigned_only: bool) -> Prepared:
    """Note up to where there is nothing for someone; another tab may have come further."""
    changed, last = _place(assigned_only)
    others = _place(not assigned_only)
    statement = insert(AssessorProgress).values(
        user_id=_USER,
        project_id=_PROJECT,
        judgments=literal_column("0"),
        seconds=literal_column("0.0"),
        **{changed.key: bindparam("until"), last.key: bindparam("last")},
        **{other.key: literal_column("0") for other in others},
    )
    further = [statement.excluded[column.key] for column in (changed, last)]
    return Prepared(
        statement.on_conflict_do_update(
            index_elements=[AssessorProgress.user_id, AssessorProgress.project_id],
            set_={changed.key: further[0], last.key: further[1]},
            where=tuple_(*further) > tuple_(changed, last),
        )
    )


_INSERTS = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
_NOTE = {name: _note(insert) for name, insert in _INSERTS.items()}
_ADVANCE = {
    (name, assigned_only): _advance(insert, assigned_only)
    for name, insert in _INSERTS.items()
    for assigned_only in (False, True)
}


class OpenWork:
    """What may be open to someone in a project, in one transaction.

    Args:
        connection: The transaction.
        project: The project's row.
        user_id: Who looks for work.
    """

    def __init__(self, connection: Connection, project: Any, user_id: int) -> None:
        self._connection = connection
        self._assigned_only = bool(project.assigned_only)
        self._who = {"user": user_id, "project": project.id}
        self._noted = False

    def find(self) -> Any:
        """The next query that may have something, its row locked; None if there is none.

        Give it to `exhaust` if it has nothing, or it is found again.
        """
        return _FIND[self._assigned_only].one(self._connection, **self._who)

    def find_lapsed(self, now: float) -> Any:
        """A query with a lease that may have ended, its row locked, whoever may judge it."""
        return _LAPSED.one(self._connection, project=self._who["project"], now=now)

    def may_judge(self, query_id: int) -> bool:
        """Whether a query is open to this person at all."""
        return not self._assigned_only or bool(
            _IS_ASSIGNED.rows(self._connection, user=self._who["user"], q=query_id)
        )

    def exhaust(self, query_id: int) -> None:
        """Note that a query, as it stands in the database, has nothing for this person."""
        _NOTE[self._connection.dialect.name].run(
            self._connection, user=self._who["user"], q=query_id
        )
        self._noted = True

    def advance(self) -> None:
        """Begin after what has nothing for this person the next time, if there is more of it."""
        if not self._noted:
            return
        self._noted = False
        # Transactions that still run may bring queries with a lower number: not beyond the oldest.
        # It is asked for first: what ended before it is seen by the statement after it.
        oldest = _OLDEST.one(self._connection, project=self._who["project"]).oldest
        until, last = oldest - 1, _LAST_ID
        first = _UNSEEN[self._assigned_only].one(self._connection, **self._who)
        if first is not None and first.changed <= until:
            until, last = first.changed, first.id - 1
        key = self._connection.dialect.name, self._assigned_only
        _ADVANCE[key].run(self._connection, until=until, last=last, **self._who)

    @property
    def has_unseen(self) -> bool:
        """Whether any query may have something, also if someone else has locked it."""
        return bool(_UNSEEN[self._assigned_only].rows(self._connection, **self._who))

    @property
    def first_lease_end(self) -> float | None:
        """When the first lease of the project may end; None if nobody holds anything."""
        row = _FIRST_LEASE.one(self._connection, project=self._who["project"])
        return None if row.expiry is None else float(row.expiry)

    @property
    def is_done(self) -> bool:
        """Whether every query of the project is done."""
        return not _UNDONE.rows(self._connection, project=self._who["project"])

    @property
    def mine_is_done(self) -> bool:
        """Whether every query that this person may judge is done."""
        statement = _UNDONE_ASSIGNED if self._assigned_only else _UNDONE
        return not statement.rows(self._connection, **self._who)

    @property
    def is_anything_assigned(self) -> bool:
        """Whether any query of the project, done or not, is assigned to this person."""
        return bool(_ASSIGNED.rows(self._connection, **self._who))


def reopen_queries(connection: Connection, *where: Any) -> int:
    """Let everyone look at queries anew, because more may be open to them; returns how many."""
    statement = update(Query).where(Query.done.is_(False), *where)
    return int(
        connection.execute(statement.values(available=True, changed=transaction_number())).rowcount
    )


def reset_if_restored(connection: Connection) -> None:
    """Forget how far people have looked if their numbers are of another database server.

    Where a backup was loaded into a new server, its transactions count from the start again.
    """
    number = transaction_number()
    ahead = or_(AssessorProgress.open_changed > number, AssessorProgress.assigned_changed > number)
    found = connection.execute(
        update(AssessorProgress).where(ahead).values(open_changed=0, assigned_changed=0)
    )
    if found.rowcount:
        connection.execute(delete(Exhausted))

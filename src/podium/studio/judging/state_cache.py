"""A cache of recently used query states, so that most answers need no replay of the log.

A state is taken out of the cache while a transaction uses it and put back after the commit. If the
transaction fails it is not put back, so no cached state is ever ahead of the database. A state that
is behind, because another process added entries, catches up by reading those entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock

from sqlalchemy import Connection, bindparam, func, select

from podium.studio.judging.modes import QueryLogEntry, new_mode
from podium.studio.judging.query_state import Document, QueryState
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow
from podium.studio.store.tables import LogEntry, QueryCandidate, Ranking

_LATER = (
    select(
        LogEntry.position,
        LogEntry.user_id,
        LogEntry.kind,
        LogEntry.left,
        LogEntry.right,
        LogEntry.value,
        LogEntry.undoes,
        LogEntry.purpose,
        LogEntry.counts,
        LogEntry.token,
        LogEntry.at,
        LogEntry.seconds,
        LogEntry.reason,
        LogEntry.manager_id,
        LogEntry.replies,
    )
    .where(LogEntry.query_id == bindparam("query"), LogEntry.position >= bindparam("seen"))
    .order_by(LogEntry.position)
)
_DOCUMENTS = (
    select(
        QueryCandidate.reference,
        QueryCandidate.item,
        QueryCandidate.title,
        QueryCandidate.url,
        func.length(QueryCandidate.text),
        func.length(QueryCandidate.html),
    )
    .where(QueryCandidate.query_id == bindparam("query"))
    .order_by(QueryCandidate.position)
)
_RANKINGS = (
    select(Ranking.name, Ranking.items)
    .where(Ranking.query_id == bindparam("query"))
    .order_by(Ranking.position)
)

_SETTINGS = (
    "mode", "k", "algorithm", "seed", "budget", "overlap_share", "overlap_assessors", "incarnation",
)  # fmt: skip
"""Project settings that a query's state depends on; restoring a backup changes `incarnation`."""


def read_log(connection: Connection, query_id: int, *, seen: int = 0) -> Iterator[QueryLogEntry]:
    """Read a query's log from entry `seen` on."""
    for row in connection.execute(_LATER, {"query": query_id, "seen": seen}):
        position, user, kind, left, right, value, undoes, purpose, *rest = row
        yield QueryLogEntry(
            position, user, Kind(kind), left, right, value, undoes, Purpose(purpose), *rest
        )


def new_query_state(
    connection: Connection, project: ProjectRow, query: ProjectQueryRow
) -> QueryState:
    """The state of a query with an empty log."""
    documents = tuple(Document(*row) for row in connection.execute(_DOCUMENTS, {"query": query.id}))
    rankings = connection.execute(_RANKINGS, {"query": query.id}).all()
    items = [document.item for document in documents]
    mode = new_mode(project, query.ordered, items, [name for name, _ in rankings])
    return QueryState(mode, documents, tuple(tuple(ranked) for _, ranked in rankings))


class StateCache:
    """Query states by query id; the least recently used one is evicted.

    Args:
        size: The maximum number of states.
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._states: OrderedDict[int, QueryState] = OrderedDict()
        self._settings: dict[int, tuple[object, ...]] = {}
        self._lock = Lock()

    def take(
        self, connection: Connection, project: ProjectRow, query: ProjectQueryRow
    ) -> QueryState:
        """Take a query's current state; no other thread gets it before `put`.

        Args:
            connection: A transaction in which the query's row is locked.
            project: The project's row.
            query: The query's row.
        """
        settings = tuple(getattr(project, name) for name in _SETTINGS)
        with self._lock:
            state = self._states.pop(query.id, None)
            if self._settings.get(query.id) != settings:
                # Another process changed the project before anyone had answered.
                state = None
                self._settings[query.id] = settings
        if state is None or state.seen > query.entries:
            state = new_query_state(connection, project, query)
        if state.seen < query.entries:
            for entry in read_log(connection, query.id, seen=state.seen):
                state.apply(entry)
        return state

    def put(self, query_id: int, state: QueryState) -> None:
        """Return a state to the cache once its entries are committed."""
        with self._lock:
            self._states[query_id] = state
            self._states.move_to_end(query_id)
            while len(self._states) > self._size:
                oldest, _ = self._states.popitem(last=False)
                self._settings.pop(oldest, None)

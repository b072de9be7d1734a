"""A cache of recently used query states, so that most answers need no replay of the log.

A state is taken out of the cache while a transaction uses it and put back after the commit. If the
transaction fails it is not put back, so no cached state is ever ahead of the database. A state that
is behind, because another process added entries, catches up by reading those entries.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from podium.studio.judging.modes import JudgingMode, QueryLogEntry, new_mode
from podium.studio.judging.query_state import Document, QueryState
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow
from podium.studio.store.tables import LogEntry, QueryCandidate, Ranking

_QUERIES: BindParameter[Any] = bindparam("queries", expanding=True)
_ENTRIES = select(
    LogEntry.query_id,
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
_LOGS = _ENTRIES.where(LogEntry.query_id.in_(_QUERIES)).order_by(
    LogEntry.query_id, LogEntry.position
)
_LATER = _ENTRIES.where(
    LogEntry.query_id == bindparam("query"), LogEntry.position >= bindparam("seen")
).order_by(LogEntry.position)
_DOCUMENTS = (
    select(
        QueryCandidate.query_id,
        QueryCandidate.reference,
        QueryCandidate.item,
        QueryCandidate.title,
        QueryCandidate.url,
        func.length(QueryCandidate.text),
        func.length(QueryCandidate.html),
    )
    .where(QueryCandidate.query_id.in_(_QUERIES))
    .order_by(QueryCandidate.query_id, QueryCandidate.position)
)
_RANKINGS = (
    select(Ranking.query_id, Ranking.name, Ranking.items)
    .where(Ranking.query_id.in_(_QUERIES))
    .order_by(Ranking.query_id, Ranking.position)
)
_KINDS = {kind.value: kind for kind in Kind}
_PURPOSES = {purpose.value: purpose for purpose in Purpose}

_SETTINGS = (
    "mode", "k", "algorithm", "seed", "budget", "overlap_share", "overlap_assessors", "incarnation",
)  # fmt: skip
"""Project settings that a query's state depends on; restoring a backup changes `incarnation`."""


@dataclass(frozen=True)
class QueryContent:
    """What is judged of a query.

    Attributes:
        documents: Its documents, by position.
        rankings: The document positions of each ranking by its name, if rankings are compared.
    """

    documents: Sequence[Document]
    rankings: Mapping[str, Sequence[int]]

    def mode(self, project: ProjectRow, query: ProjectQueryRow) -> JudgingMode:
        """How the query is judged, before the first entry of its log."""
        items = [document.item for document in self.documents]
        return new_mode(project, query.ordered, items, list(self.rankings))

    def state(
        self, project: ProjectRow, query: ProjectQueryRow, log: Iterable[QueryLogEntry] = ()
    ) -> QueryState:
        """The state of the query after some log entries."""
        rankings = list(self.rankings.values())
        return QueryState(self.mode(project, query), self.documents, rankings, log)


def read_contents(connection: Connection, query_ids: Sequence[int]) -> dict[int, QueryContent]:
    """Read what is judged of some queries, by their numbers."""
    values = {"queries": query_ids}
    documents: dict[int, list[Document]] = {query_id: [] for query_id in query_ids}
    rankings: dict[int, dict[str, Sequence[int]]] = {query_id: {} for query_id in query_ids}
    for query_id, *document in connection.execute(_DOCUMENTS, values):
        documents[query_id].append(Document(*document))
    for query_id, name, ranked in connection.execute(_RANKINGS, values):
        rankings[query_id][name] = ranked
    return {
        query_id: QueryContent(documents[query_id], rankings[query_id]) for query_id in query_ids
    }


def read_logs(connection: Connection, query_ids: Sequence[int]) -> dict[int, list[QueryLogEntry]]:
    """Read the whole logs of some queries, by their numbers."""
    logs: dict[int, list[QueryLogEntry]] = {query_id: [] for query_id in query_ids}
    for row in connection.execute(_LOGS, {"queries": query_ids}):
        logs[row[0]].append(_entry(*row))
    return logs


def _entry(
    _query_id: int, position: int, user: int, kind: str, left: int | None, right: int | None,
    value: int | None, undoes: int | None, purpose: str, *rest: Any,  # noqa: ANN401 - as stored
) -> QueryLogEntry:  # fmt: skip
    return QueryLogEntry(
        position, user, _KINDS[kind], left, right, value, undoes, _PURPOSES[purpose], *rest
    )


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
            state = read_contents(connection, [query.id])[query.id].state(project, query)
        if state.seen < query.entries:
            for row in connection.execute(_LATER, {"query": query.id, "seen": state.seen}):
                state.apply(_entry(*row))
        return state

    def put(self, query_id: int, state: QueryState) -> None:
        """Return a state to the cache once its entries are committed."""
        with self._lock:
            self._states[query_id] = state
            self._states.move_to_end(query_id)
            while len(self._states) > self._size:
                oldest, _ = self._states.popitem(last=False)
                self._settings.pop(oldest, None)

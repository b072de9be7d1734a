"""Judged queries read from the database: log, labels and preferences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Connection, Engine, select

from podium.judging import Verdict
from podium.judging.agreement import inferred_verdicts
from podium.judging.entries import active_entries
from podium.studio.judging.modes import GradesMode, PairsMode, QueryLogEntry
from podium.studio.judging.query_state import QueryState
from podium.studio.judging.state_cache import QueryContent, read_contents, read_logs
from podium.studio.store.database import reading
from podium.studio.store.enums import Kind, Purpose
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_all
from podium.studio.store.tables import ProjectQuery

_PAGE = 50
"""How many queries are in memory at once."""


@dataclass(frozen=True)
class JudgedQuery:
    """A query with its log and resulting state.

    Attributes:
        project: The project's row.
        query: The query's row.
        content: Its documents and rankings.
        log: Its log entries.
    """

    project: ProjectRow
    query: ProjectQueryRow
    content: QueryContent
    log: list[QueryLogEntry]

    @cached_property
    def state(self) -> QueryState:
        """The state after the whole log."""
        return self.content.state(self.project, self.query, self.log)

    @cached_property
    def items(self) -> list[str]:
        """The query's documents by id."""
        return [document.item for document in self.content.documents]

    @property
    def is_judged(self) -> bool:
        """Whether any judgment counts, checks excluded.

        If all were skipped or undone, the top k is that of the prior ranking.
        """
        return any(entry.is_judgment and entry.purpose is Purpose.MAIN for entry in self.standing)

    @cached_property
    def standing(self) -> list[QueryLogEntry]:
        """The answers that were not undone, oldest first."""
        return [
            entry
            for entry in self.log
            if entry.position in self.standing_positions and entry.kind is not Kind.WITHDRAW
        ]

    @cached_property
    def standing_positions(self) -> set[int]:
        """The positions of the answers and withdrawals that were not undone.

        They follow from the log alone, so that exports of the log need no state.
        """
        standing: set[int] = set()
        undone_by: dict[int, int] = {}
        for entry in self.log:
            if entry.undoes is None:
                standing.add(entry.position)
            elif entry.undoes in standing:
                standing.discard(entry.undoes)
                undone_by[entry.position] = entry.undoes
            elif entry.undoes in undone_by:
                standing.add(undone_by.pop(entry.undoes))
        return standing

    @property
    def kept_items(self) -> list[str]:
        """The documents that were not withdrawn."""
        withdrawn = self.state.withdrawn_documents
        return [item for at, item in enumerate(self.items) if at not in withdrawn]

    def labels(self, *, ties: bool) -> dict[str, float]:
        """The label of each document by the top k, or the mean grade of those that have any.

        Withdrawn documents have no label.
        """
        mode = self.state.mode
        items = self.kept_items
        if isinstance(mode, GradesMode):
            graded = mode.session.grades()
            mean_of = dict(zip(self.items, mode.session.labels(), strict=True))
            return {item: float(mean_of[item]) for item in items if graded[item]}
        assert isinstance(mode, PairsMode)
        values = mode.session.result().labels(items, ties=ties)
        return dict(zip(items, values.tolist(), strict=True))

    def verdicts(self) -> list[Verdict]:
        """Verdicts that were not undone, or those that grades imply."""
        log = self.state.mode.log
        if isinstance(self.state.mode, GradesMode):
            log = tuple(inferred_verdicts(log))
        if not any(entry.kind in (Kind.VERDICT, Kind.GRADE) for entry in self.log) or not log:
            return []
        kept = set(self.kept_items)
        return [
            entry
            for entry in (log[position] for position in active_entries(log))
            if isinstance(entry, Verdict) and entry.left in kept and entry.right in kept
        ]


def judged_queries(
    engine: Engine, project: ProjectRow, *, only_done: bool, withdrawn: bool = False
) -> Iterator[JudgedQuery]:
    """Iterate over the queries of a project that have log entries, a page at a time.

    Args:
        engine: The database.
        project: The project's row.
        only_done: Whether to leave out queries that are not done.
        withdrawn: Whether to include withdrawn queries.
    """
    after = 0
    while True:
        page = reading(
            engine,
            lambda c, after=after: _page(c, project, after, only_done, withdrawn),  # type: ignore[misc]
        )
        if not page:
            return
        yield from page
        after = page[-1].query.id


def _page(
    connection: Connection, project: ProjectRow, after: int, only_done: bool, withdrawn: bool
) -> list[JudgedQuery]:
    statement = (
        select(ProjectQuery.__table__)
        .where(
            ProjectQuery.project_id == project.id, ProjectQuery.id > after, ProjectQuery.entries > 0
        )
        .order_by(ProjectQuery.id)
        .limit(_PAGE)
    )
    if only_done:
        statement = statement.where(ProjectQuery.done)
    if not withdrawn:
        statement = statement.where(ProjectQuery.withdrawn.is_(False))
    return load_judged_queries(
        connection, project, fetch_all(connection, statement, ProjectQueryRow)
    )


def load_judged_queries(
    connection: Connection, project: ProjectRow, queries: Sequence[ProjectQueryRow]
) -> list[JudgedQuery]:
    """Load queries with their logs."""
    if not queries:  # after the last page
        return []
    query_ids = [query.id for query in queries]
    contents = read_contents(connection, query_ids)
    logs = read_logs(connection, query_ids)
    return [JudgedQuery(project, query, contents[query.id], logs[query.id]) for query in queries]


def load_judged_query(
    connection: Connection, project: ProjectRow, query: ProjectQueryRow
) -> JudgedQuery:
    """Load a query with its log."""
    return load_judged_queries(connection, project, [query])[0]

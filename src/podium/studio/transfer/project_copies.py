"""Copies of projects: the settings at once, the queries by an import of the new project."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, Engine, Exists, FromClause, exists, select

from podium.data import Candidate, CandidateList
from podium.studio.accounts.identity import Member, record
from podium.studio.jobs.queue import enqueue
from podium.studio.judging.gold import GoldPair
from podium.studio.judging.judged import load_judged_query
from podium.studio.projects.changes import settings_of
from podium.studio.projects.service import create_project, project_row
from podium.studio.store.database import reading
from podium.studio.store.rows import ProjectQueryRow, fetch_all
from podium.studio.store.tables import Gold, ProjectQuery, QueryCandidate, Ranking
from podium.studio.transfer.readers import ImportedQuery

_PAGE = 50


def copy_project(connection: Connection, who: Member, name: str) -> int:
    """Create a project with the settings of another, and queue the copy of its queries.

    Judgments and members are not copied; the person who copies owns the copy.

    Args:
        connection: A transaction.
        who: Who copies which project.
        name: The name of the copy.
    """
    settings = settings_of(who.project).model_copy(update={"name": name})
    copy = create_project(connection, who.person.id, type(settings)(**settings.model_dump()))
    enqueue(
        connection, copy, who.person.id, "import", {"source": "project", "project": who.project.id}
    )
    record(connection, who.person.id, who.project.id, "copied the project", copy=copy)
    return copy


def copied_queries(engine: Engine, project_id: int) -> Iterator[ImportedQuery]:
    """The queries of a project, without those and the documents that were withdrawn."""
    after = 0
    while page := reading(engine, lambda c, after=after: _page(c, project_id, after)):  # type: ignore[misc]
        for last, query in page:
            after = last
            yield query


def copied_gold(connection: Connection, project_id: int, copy_id: int) -> list[GoldPair]:
    """The gold pairs of a project whose documents its copy has: withdrawn ones are left out."""
    documents = QueryCandidate.__table__
    left, right = documents.alias("left_one"), documents.alias("right_one")
    copy = ProjectQuery.__table__.alias("copy")

    def is_copied(document: FromClause) -> Exists:
        return exists().where(
            QueryCandidate.query_id == copy.c.id, QueryCandidate.item == document.c.item
        )

    rows = connection.execute(
        select(ProjectQuery.name, left.c.item, right.c.item, Gold.outcome)
        .join(Gold, Gold.query_id == ProjectQuery.id)
        .join(left, (left.c.query_id == Gold.query_id) & (left.c.position == Gold.left))
        .join(right, (right.c.query_id == Gold.query_id) & (right.c.position == Gold.right))
        .join(copy, (copy.c.project_id == copy_id) & (copy.c.name == ProjectQuery.name))
        .where(ProjectQuery.project_id == project_id, is_copied(left), is_copied(right))
        .order_by(Gold.id)
    )
    return [GoldPair(*row) for row in rows]


def _page(connection: Connection, project_id: int, after: int) -> list[tuple[int, ImportedQuery]]:
    statement = (
        select(ProjectQuery.__table__)
        .where(
            ProjectQuery.project_id == project_id,
            ProjectQuery.id > after,
            ProjectQuery.withdrawn.is_(False),
        )
        .order_by(ProjectQuery.id)
        .limit(_PAGE)
    )
    project = project_row(connection, project_id)
    queries = fetch_all(connection, statement, ProjectQueryRow)
    withdrawn = {
        query.id: load_judged_query(connection, project, query).state.withdrawn_documents
        if query.entries
        else set()
        for query in queries
    }
    return [(query.id, _copied(connection, query, withdrawn[query.id])) for query in queries]


def _copied(connection: Connection, query: ProjectQueryRow, withdrawn: set[int]) -> ImportedQuery:
    rows = connection.execute(
        select(QueryCandidate.__table__)
        .where(QueryCandidate.query_id == query.id)
        .order_by(QueryCandidate.position)
    ).all()
    items = {row.position: row.item for row in rows if row.position not in withdrawn}
    candidates = tuple(
        Candidate(
            row.item, title=row.title, text=row.text, html=row.html, url=row.url,
            score=row.score, metadata=row.extra,
        )
        for row in rows
        if row.position in items
    )  # fmt: skip
    rankings = connection.execute(
        select(Ranking.name, Ranking.items)
        .where(Ranking.query_id == query.id)
        .order_by(Ranking.position)
    ).all()
    entry = CandidateList(query.name, query.text, candidates, query.description)
    return ImportedQuery(
        entry, {name: [items[at] for at in ranked if at in items] for name, ranked in rankings}
    )

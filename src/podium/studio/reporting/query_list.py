"""The queries of a project with their figures; the database filters, sorts and pages them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, exists, func, or_, select

from podium.studio.store.rows import fetch_all
from podium.studio.store.tables import (
    JudgmentCount,
    ModelAssessor,
    ProjectQuery,
    QueryFigures,
    User,
)

PAGE = 50
"""How many queries a page shows."""
QueryState = Literal[
    "", "open", "not-started", "done", "withdrawn", "contradictions", "skips", "disagreement"
]
SortKey = Literal["id", "name", "judgments", "left", "agreement", "contradictions", "skips"]


class QueryFilter(BaseModel):
    """Which queries to list, and in which order.

    Example:
        >>> QueryFilter(state="open", sort="judgments").page
        1
    """

    model_config = ConfigDict(extra="forbid")

    search: Annotated[str, Field(max_length=200)] = ""
    """Part of the query's id or text."""
    state: QueryState = ""
    """Only those that are open, done and so on; by default all that are not withdrawn."""
    person: Annotated[int, Field(ge=0, lt=2**62)] = 0
    """Only those that this account has judged; 0 for everyone's."""
    sort: SortKey = "id"
    descending: bool = False
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


class QueryListRow(NamedTuple):
    """A query and its figures. Agreement, contradictions and skips are those of the last report."""

    id: int
    name: str
    text: str
    judgments: int
    expected_left: float
    done: bool
    withdrawn: bool
    agreement: float | None
    contradictions: int
    skips: int

    @property
    def state(self) -> str:
        """The state in a word.

        Example:
            >>> QueryListRow(1, "q1", "", 0, 9.0, False, False, None, 0, 0).state
            'not started'
        """
        if self.withdrawn:
            return "withdrawn"
        if self.done:
            return "done"
        return "open" if self.judgments else "not started"


@dataclass(frozen=True)
class QueryListPage:
    """A page of queries.

    Attributes:
        rows: The queries of the page.
        people: To each query the names and judgments of those who judged it.
        total: How many queries meet the filter.
        pages: How many pages they fill.
    """

    rows: list[QueryListRow]
    people: dict[int, list[tuple[int, str, int]]]
    total: int

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(-(-self.total // PAGE), 1)


_COLUMNS = (
    ProjectQuery.id,
    ProjectQuery.name,
    ProjectQuery.text,
    ProjectQuery.judgments,
    ProjectQuery.expected_left,
    ProjectQuery.done,
    ProjectQuery.withdrawn,
    QueryFigures.agreement,
    func.coalesce(QueryFigures.contradictions, 0),
    func.coalesce(QueryFigures.skips, 0),
)
_SORTS: dict[SortKey, ColumnElement[Any]] = {
    "id": ProjectQuery.id.expression,
    "name": ProjectQuery.name.expression,
    "judgments": ProjectQuery.judgments.expression,
    "left": ProjectQuery.expected_left.expression,
    "agreement": QueryFigures.agreement.expression,
    "contradictions": func.coalesce(QueryFigures.contradictions, 0),
    "skips": func.coalesce(QueryFigures.skips, 0),
}


def list_queries(connection: Connection, project_id: int, chosen: QueryFilter) -> QueryListPage:
    """A page of a project's queries."""
    conditions = [ProjectQuery.project_id == project_id, *_conditions(chosen)]
    figures = QueryFigures.query_id == ProjectQuery.id
    total = connection.scalar(
        select(func.count())
        .select_from(ProjectQuery)
        .outerjoin(QueryFigures, figures)
        .where(*conditions)
    )
    key = _SORTS[chosen.sort]
    statement = (
        select(*_COLUMNS)
        .select_from(ProjectQuery)
        .outerjoin(QueryFigures, figures)
        .where(*conditions)
        # Queries without a figure come last in both directions.
        .order_by(key.is_(None), key.desc() if chosen.descending else key.asc(), ProjectQuery.id)
        .limit(PAGE)
        .offset((chosen.page - 1) * PAGE)
    )
    rows = fetch_all(connection, statement, QueryListRow)
    return QueryListPage(rows, _people(connection, [row.id for row in rows]), int(total or 0))


def _conditions(chosen: QueryFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [
        ProjectQuery.withdrawn.is_(chosen.state == "withdrawn")
    ]
    states: dict[str, list[ColumnElement[bool]]] = {
        "open": [ProjectQuery.done.is_(False), ProjectQuery.judgments > 0],
        "not-started": [ProjectQuery.done.is_(False), ProjectQuery.judgments == 0],
        "done": [ProjectQuery.done.is_(True)],
        "contradictions": [QueryFigures.contradictions > 0],
        "skips": [QueryFigures.skips > 0],
        "disagreement": [QueryFigures.agreement < 1],
    }
    conditions += states.get(chosen.state, [])
    if chosen.search.strip():
        words = chosen.search.strip()
        conditions.append(
            or_(
                ProjectQuery.name.icontains(words, autoescape=True),
                ProjectQuery.text.icontains(words, autoescape=True),
            )
        )
    if chosen.person:
        conditions.append(
            exists().where(
                JudgmentCount.query_id == ProjectQuery.id,
                JudgmentCount.user_id == chosen.person,
                JudgmentCount.judgments > 0,
            )
        )
    return conditions


def _people(connection: Connection, queries: list[int]) -> dict[int, list[tuple[int, str, int]]]:
    people: dict[int, list[tuple[int, str, int]]] = {query: [] for query in queries}
    is_model = exists().where(ModelAssessor.user_id == User.id)  # people come first
    rows = connection.execute(
        select(JudgmentCount.query_id, User.id, User.name, JudgmentCount.judgments)
        .join(User, User.id == JudgmentCount.user_id)
        .where(JudgmentCount.query_id.in_(queries), JudgmentCount.judgments > 0)
        .order_by(is_model, JudgmentCount.judgments.desc(), User.id)
    )
    for query, user, name, judgments in rows:
        people[query].append((user, name, judgments))
    return people

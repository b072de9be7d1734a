"""API routes for results: queries, their judgments, people, and what managers correct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection, select

from podium.studio.accounts.identity import Member
from podium.studio.json_types import JsonObject
from podium.studio.judging import bulk_discards, corrections
from podium.studio.judging.bulk_discards import DiscardRequest
from podium.studio.reporting.log_rows import LogRow, log_rows
from podium.studio.reporting.person_results import PersonResults, person_results
from podium.studio.reporting.query_list import (
    QueryFilter,
    QueryListPage,
    QueryListRow,
    list_queries,
)
from podium.studio.reporting.query_results import (
    DocumentResult,
    QueryResults,
    query_results,
    query_row,
)
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.rows import JobRow
from podium.studio.store.tables import Job, LogEntry
from podium.studio.store.text import storable
from podium.studio.web.access import AManager, wake_workers
from podium.studio.web.routes.dashboard import present
from podium.studio.web.routes.jobs import JobOut, job_out
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1/projects/{project}", tags=["results"])

LOG_PAGE = 100
"""How many judgments a page shows."""
Reason = Annotated[str, AfterValidator(lambda text: storable(text).strip()), Field(max_length=2000)]
Before = Annotated[
    int | None, Parameter(ge=1, lt=2**62, description="Only entries with a lower `id`.")
]


class QueryAssessor(BaseModel):
    """Someone who judged a query, and how much of it."""

    id: int
    name: str
    judgments: int


class ListedQuery(BaseModel):
    """A query and its figures. Agreement, contradictions and skips are as of the last report."""

    id: int
    query_id: str
    query: str
    state: str
    judgments: int
    expected_left: float
    agreement: float | None
    contradictions: int
    skips: int
    people: list[QueryAssessor]


class ResultsOut(BaseModel):
    """A page of queries, and how many there are."""

    total: int
    pages: int
    queries: list[ListedQuery]


class RankingTotals(BaseModel):
    """How often each of five answers was given on two rankings, from first much better on."""

    first: str
    second: str
    counts: list[int]


class QueryResultsOut(BaseModel):
    """A query's results so far."""

    id: int
    query_id: str
    query: str
    description: str
    complete: bool
    withdrawn: bool
    judgments: int
    expected_left: float
    documents: list[DocumentResult]
    contradictions: list[list[int]]
    totals: list[RankingTotals]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DiscardOne(_Body):
    """Why a judgment is discarded."""

    reason: Reason = ""


class Withdrawal(_Body):
    """What to withdraw: a document by its `position`, or the query if there is none; and why."""

    document: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    reason: Reason = ""


class Readmission(_Body):
    """What to take back in: a document by its `position`, or the query if there is none."""

    document: Annotated[int, Field(ge=0, lt=2**31)] | None = None


@router.get("/results", operation_id="list_results")
def results(
    request: Request, who: AManager, chosen: Annotated[QueryFilter, Parameter()]
) -> ResultsOut:
    """The project's queries with their figures: filtered, sorted, a page of 50 at a time."""
    page = queries_page(request, who, chosen)
    return ResultsOut(
        total=page.total,
        pages=page.pages,
        queries=[_listed(row, page) for row in page.rows],
    )


@router.get("/queries/{query}/results", operation_id="get_query_results")
def one_query(request: Request, who: AManager, query: Number) -> QueryResultsOut:
    """A query's documents in order with the certainty of that order, and contradictions."""
    reached = reading(request.app.state.engine, lambda c: query_results(c, who.project, query))
    return _results_out(reached)


@router.get("/queries/{query}/log", operation_id="list_query_log")
def query_log(
    request: Request, who: AManager, query: Number, before: Before = None
) -> list[LogRow]:
    """A query's answers, newest first, 100 at a time: those that stand, and those undone."""
    reading(request.app.state.engine, lambda c: query_row(c, who.project.id, query))
    return entries_of_query(request, who, query, before)


@router.get("/people/{user}/results", operation_id="get_person_results")
def person(request: Request, who: AManager, user: Number) -> PersonResults:
    """How much someone judged, how fast, how far others agree, and flags."""
    return results_of_person(request, who, user)


@router.get("/people/{user}/log", operation_id="list_person_log")
def person_log(
    request: Request, who: AManager, user: Number, before: Before = None
) -> list[LogRow]:
    """Someone's answers in the project, newest first, 100 at a time."""
    reading(request.app.state.engine, lambda c: person_results(c, who.project.id, user, {}))
    return entries_of_person(request, who, user, before)


@router.post("/queries/{query}/log/{position}/discard", operation_id="discard_judgment")
def discard(
    request: Request, who: AManager, query: Number, position: int, body: DiscardOne
) -> QueryResultsOut:
    """Discard one judgment, by the `position` of its entry in the query's log."""

    def work(connection: Connection) -> QueryResults:
        corrections.discard(connection, who, query, position, body.reason or None)
        return query_results(connection, who.project, query)

    return _results_out(in_transaction(request.app.state.engine, work))


@router.post("/queries/{query}/log/{position}/restore", operation_id="restore_judgment")
def restore(request: Request, who: AManager, query: Number, position: int) -> QueryResultsOut:
    """Restore a judgment that a manager discarded."""

    def work(connection: Connection) -> QueryResults:
        corrections.restore(connection, who, query, position)
        return query_results(connection, who.project, query)

    return _results_out(in_transaction(request.app.state.engine, work))


@router.post("/queries/{query}/withdraw", operation_id="withdraw")
def withdraw(request: Request, who: AManager, query: Number, body: Withdrawal) -> QueryResultsOut:
    """Withdraw a query or one of its documents: it is asked no more, and not exported."""

    def work(connection: Connection) -> QueryResults:
        corrections.withdraw(connection, who, query, body.document, body.reason or None)
        return query_results(connection, who.project, query)

    return _results_out(in_transaction(request.app.state.engine, work))


@router.post("/queries/{query}/readmit", operation_id="readmit")
def readmit(request: Request, who: AManager, query: Number, body: Readmission) -> QueryResultsOut:
    """Take a withdrawn query or document back in."""

    def work(connection: Connection) -> QueryResults:
        corrections.readmit(connection, who, query, body.document)
        return query_results(connection, who.project, query)

    return _results_out(in_transaction(request.app.state.engine, work))


@router.post("/people/{user}/discard", status_code=202, operation_id="discard_judgments")
def discard_all(request: Request, who: AManager, user: Number, body: DiscardRequest) -> JobOut:
    """Discard all that someone judged in the project since some time, in the background."""
    return _queued(request, lambda c: bulk_discards.request_discard(c, who, user, body))


@router.post("/discards/{job}/restore", status_code=202, operation_id="restore_judgments")
def restore_all(request: Request, who: AManager, job: Number) -> JobOut:
    """Restore what a job discarded, in the background."""
    return _queued(request, lambda c: bulk_discards.request_restoration(c, who, job))


def queries_page(request: Request, who: Member, chosen: QueryFilter) -> QueryListPage:
    """A page of queries; newer figures are asked for if there is need."""
    present(request, who)
    return reading(request.app.state.engine, lambda c: list_queries(c, who.project.id, chosen))


def entries_of_query(request: Request, who: Member, query: int, before: int | None) -> list[LogRow]:
    """A query's answers, newest first."""
    return _entries(request, who, LogEntry.query_id == query, before)


def entries_of_person(request: Request, who: Member, user: int, before: int | None) -> list[LogRow]:
    """Someone's answers, newest first."""
    return _entries(request, who, LogEntry.user_id == user, before)


def results_of_person(request: Request, who: Member, user: int) -> PersonResults:
    """Someone's work in the project."""
    _, row = present(request, who)
    content: JsonObject = {} if row is None else row.content
    return reading(
        request.app.state.engine, lambda c: person_results(c, who.project.id, user, content)
    )


def _entries(
    request: Request, who: Member, condition: ColumnElement[bool], before: int | None
) -> list[LogRow]:
    return reading(
        request.app.state.engine,
        lambda c: log_rows(c, who.project, condition, limit=LOG_PAGE, before=before),
    )


def _queued(request: Request, enqueue: Callable[[Connection], int]) -> JobOut:
    def work(connection: Connection) -> JobRow:
        number = enqueue(connection)
        return JobRow(*connection.execute(select(Job.__table__).where(Job.id == number)).one())

    row = in_transaction(request.app.state.engine, work)
    wake_workers(request)
    return job_out(row)


def _listed(row: QueryListRow, page: QueryListPage) -> ListedQuery:
    return ListedQuery(
        id=row.id,
        query_id=row.name,
        query=row.text,
        state=row.state,
        judgments=row.judgments,
        expected_left=row.expected_left,
        agreement=row.agreement,
        contradictions=row.contradictions,
        skips=row.skips,
        people=[
            QueryAssessor(id=user, name=name, judgments=count)
            for user, name, count in page.people[row.id]
        ],
    )


def _results_out(each: QueryResults) -> QueryResultsOut:
    return QueryResultsOut(
        id=each.query.id,
        query_id=each.query.name,
        query=each.query.text,
        description=each.query.description,
        complete=each.complete,
        withdrawn=each.query.withdrawn,
        judgments=each.query.judgments,
        expected_left=each.query.expected_left,
        documents=each.documents,
        contradictions=each.contradictions,
        totals=[
            RankingTotals(first=first, second=second, counts=counts)
            for (first, second), counts in each.totals.items()
        ],
    )

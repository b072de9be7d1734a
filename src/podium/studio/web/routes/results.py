"""Results: all queries, one query, one person; and what managers correct."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, Connection
from starlette.datastructures import FormData

from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import UNDER_WAY
from podium.studio.json_types import JsonObject
from podium.studio.judging import bulk_discards, corrections
from podium.studio.judging.bulk_discards import RESTORE, DiscardRequest, bulk_jobs
from podium.studio.judging.scales import grade_names
from podium.studio.reporting.log_rows import LOG_PAGE, LogRow, log_rows
from podium.studio.reporting.model_results import ModelResult, model_results
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
from podium.studio.store.database import storable
from podium.studio.store.enums import Purpose
from podium.studio.store.rows import JobRow
from podium.studio.store.tables import LogEntry
from podium.studio.web.access import Before, Number, RequiresManager
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.pages import render_project
from podium.studio.web.routes.dashboard import present
from podium.studio.web.routes.transfers import JobOut, queued

routes = Routes("results", api="/projects/{project}", pages="/projects/{project}")

Reason = Annotated[str, AfterValidator(lambda text: storable(text).strip()), Field(max_length=2000)]
Position = Annotated[int, Field(ge=0, lt=2**31)]
_QUERY = "/projects/{project}/queries/{query}"
_PERSON = "/projects/{project}/people/{user}"
_GOLD_SHOWN = 200
"""How many of someone's latest gold pairs are looked at for wrong answers."""


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

    document: Position | None = None
    reason: Reason = ""


class Readmission(_Body):
    """What to take back in: a document by its `position`, or the query if there is none."""

    document: Position | None = None


@routes.page("/queries")
def queries_page(
    request: Request, who: RequiresManager, chosen: Annotated[QueryFilter, Parameter()]
) -> Response:
    """All queries, filtered and sorted."""
    page = _listed_queries(request, who, chosen)
    people = read(request, lambda c: members_of(c, who.project.id))
    unchanged = chosen.model_dump(exclude_defaults=True)

    def link(**changes: str | int | bool) -> str:
        """The address of this page with something else chosen."""
        return "?" + urlencode({**unchanged, **changes})

    values = {"page": page, "chosen": chosen, "people": people, "link": link}
    return render_project(request, who, "queries.html", values)


@routes.page("/queries/{query}")
def query_page(
    request: Request, who: RequiresManager, query: Number, before: Before = None
) -> Response:
    """One query: its results so far, and every judgment."""

    def work(connection: Connection) -> tuple[QueryResults, list[ModelResult]]:
        results = query_results(connection, who.project, query)
        return results, model_results(connection, who.project, results.query)

    results, models = read(request, work)
    values = {
        "results": results,
        "models": models,
        "grades": grade_names(who.project.scale),
        "titles": {each.position: each for each in results.documents},
        **_log_page(request, who, LogEntry.query_id == query, before),
    }
    return render_project(request, who, "query.html", values)


@routes.page("/people/{user}")
def person_page(
    request: Request, who: RequiresManager, user: Number, before: Before = None
) -> Response:
    """One person: their figures, and their judgments."""
    person = get_person_results(request, who, user)

    def work(connection: Connection) -> tuple[dict[int, str], list[JobRow]]:
        names = {each.id: each.name for each in members_of(connection, who.project.id)}
        return names, bulk_jobs(connection, who.project.id, user)

    names, jobs = read(request, work)
    checks = (LogEntry.user_id == user, LogEntry.purpose == Purpose.GOLD.value)
    gold = read(request, lambda c: log_rows(c, who.project, *checks, limit=_GOLD_SHOWN))
    values = {
        "shown": person,
        "wrong_gold": [entry for entry in gold if entry.expected and entry.stands],
        "names": names,
        "jobs": jobs,
        "restored": {job.parameters.get("job") for job in jobs if job.kind == RESTORE},
        **_log_page(request, who, LogEntry.user_id == user, before),
    }
    page = render_project(request, who, "person.html", values)
    if "hx-request" in request.headers and not any(job.state in UNDER_WAY for job in jobs):
        page.headers["HX-Refresh"] = "true"  # what was discarded is all over the page
    return page


@routes.action("GET", "/results")
def list_results(
    request: Request, who: RequiresManager, chosen: Annotated[QueryFilter, Parameter()]
) -> ResultsOut:
    """The project's queries with their figures: filtered, sorted, a page of 50 at a time."""
    page = _listed_queries(request, who, chosen)
    rows = [_listed(row, page) for row in page.rows]
    return ResultsOut(total=page.total, pages=page.pages, queries=rows)


@routes.action("GET", "/queries/{query}/results")
def get_query_results(request: Request, who: RequiresManager, query: Number) -> QueryResultsOut:
    """A query's documents in order with the certainty of that order, and contradictions."""
    return _results_out(read(request, lambda c: query_results(c, who.project, query)))


@routes.action("GET", "/queries/{query}/log")
def list_query_log(
    request: Request, who: RequiresManager, query: Number, before: Before = None
) -> list[LogRow]:
    """A query's answers, newest first, 100 at a time: those that stand, and those undone."""
    read(request, lambda c: query_row(c, who.project.id, query))
    return _entries(request, who, LogEntry.query_id == query, before)


@routes.action("GET", "/people/{user}/results")
def get_person_results(request: Request, who: RequiresManager, user: Number) -> PersonResults:
    """How much someone judged, how fast, how far others agree, and flags."""
    _, row = present(request, who)
    content: JsonObject = {} if row is None else row.content
    return read(request, lambda c: person_results(c, who.project.id, user, content))


@routes.action("GET", "/people/{user}/log")
def list_person_log(
    request: Request, who: RequiresManager, user: Number, before: Before = None
) -> list[LogRow]:
    """Someone's answers in the project, newest first, 100 at a time."""
    read(request, lambda c: person_results(c, who.project.id, user, {}))
    return _entries(request, who, LogEntry.user_id == user, before)


@routes.action(
    "POST",
    "/queries/{query}/log/{position}/discard",
    form="/queries/{query}/log/{position}/discard",
    to=_QUERY,
    back=True,
)
def discard_judgment(
    request: Request, who: RequiresManager, query: Number, position: int, body: DiscardOne
) -> QueryResultsOut:
    """Discard one judgment, by the `position` of its entry in the query's log."""
    reason = body.reason or None
    return _corrected(
        request, who, query, lambda c: corrections.discard(c, who, query, position, reason)
    )


@routes.action(
    "POST",
    "/queries/{query}/log/{position}/restore",
    form="/queries/{query}/log/{position}/restore",
    to=_QUERY,
    back=True,
)
def restore_judgment(
    request: Request, who: RequiresManager, query: Number, position: int
) -> QueryResultsOut:
    """Restore a judgment that a manager discarded."""
    return _corrected(request, who, query, lambda c: corrections.restore(c, who, query, position))


@routes.action(
    "POST", "/queries/{query}/withdraw", form="/queries/{query}/withdraw", to=_QUERY, back=True
)
def withdraw(
    request: Request, who: RequiresManager, query: Number, body: Withdrawal
) -> QueryResultsOut:
    """Withdraw a query or one of its documents: it is asked no more, and not exported."""
    reason = body.reason or None
    return _corrected(
        request, who, query, lambda c: corrections.withdraw(c, who, query, body.document, reason)
    )


@routes.action(
    "POST", "/queries/{query}/readmit", form="/queries/{query}/readmit", to=_QUERY, back=True
)
def readmit(
    request: Request, who: RequiresManager, query: Number, body: Readmission
) -> QueryResultsOut:
    """Take a withdrawn query or document back in."""
    return _corrected(
        request, who, query, lambda c: corrections.readmit(c, who, query, body.document)
    )


def _discard_values(form: FormData) -> JsonObject:
    since = str(form.get("since", "")).strip()
    try:
        seconds = calendar.timegm(time.strptime(since, "%Y-%m-%dT%H:%M")) if since else 0
    except ValueError as error:
        raise RefusedError(422, "since: Give a date and time.") from error
    return {"since": seconds, "reason": str(form.get("reason", ""))}


@routes.action(
    "POST",
    "/people/{user}/discard",
    form="/people/{user}/discard",
    to=_PERSON,
    values=_discard_values,
    status_code=202,
)
def discard_judgments(
    request: Request, who: RequiresManager, user: Number, body: DiscardRequest
) -> JobOut:
    """Discard all that someone judged in the project since some time, in the background."""
    return queued(request, lambda c: bulk_discards.request_discard(c, who, user, body))


@routes.action(
    "POST",
    "/discards/{job}/restore",
    form="/discards/{job}/restore",
    to="/projects/{project}/people",
    back=True,
    status_code=202,
)
def restore_judgments(request: Request, who: RequiresManager, job: Number) -> JobOut:
    """Restore what a job discarded, in the background."""
    return queued(request, lambda c: bulk_discards.request_restoration(c, who, job))


def _corrected(
    request: Request, who: Member, query: int, correct: Callable[[Connection], None]
) -> QueryResultsOut:
    """Correct something, and return the query's results after it."""

    def work(connection: Connection) -> QueryResults:
        correct(connection)
        return query_results(connection, who.project, query)

    return _results_out(write(request, work))


def _listed_queries(request: Request, who: Member, chosen: QueryFilter) -> QueryListPage:
    """A page of queries; newer figures are asked for if there is need."""
    present(request, who)
    return read(request, lambda c: list_queries(c, who.project.id, chosen))


def _log_page(
    request: Request, who: Member, condition: ColumnElement[bool], before: int | None
) -> JsonObject:
    entries = _entries(request, who, condition, before)
    return {"entries": entries, "before": before, "log_page": LOG_PAGE}


def _entries(
    request: Request, who: Member, condition: ColumnElement[bool], before: int | None
) -> list[LogRow]:
    return read(
        request, lambda c: log_rows(c, who.project, condition, limit=LOG_PAGE, before=before)
    )


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

"""Pages of results: all queries, one query, one person; and the buttons that correct them."""

from __future__ import annotations

import calendar
import time
from typing import Annotated, TypeVar
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi import Query as Parameter
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ValidationError
from sqlalchemy import Connection

from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.judging.bulk_discards import RESTORE, DiscardRequest, bulk_jobs
from podium.studio.judging.scales import grade_names
from podium.studio.reporting.model_results import ModelResult, model_results
from podium.studio.reporting.query_list import QueryFilter
from podium.studio.reporting.query_results import QueryResults, query_results
from podium.studio.store.database import reading
from podium.studio.store.rows import JobRow
from podium.studio.web.access import AManager
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import results
from podium.studio.web.routes.dashboard import AskAgain, ask_again
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.project_pages import render_project
from podium.studio.web.routes.results import Before

_Model = TypeVar("_Model", bound=BaseModel)

router = APIRouter(
    prefix="/projects/{project}", dependencies=[Depends(read_csrf)], include_in_schema=False
)


@router.get("/queries")
def queries(
    request: Request, who: AManager, chosen: Annotated[QueryFilter, Parameter()]
) -> Response:
    """All queries, filtered and sorted."""
    page = results.queries_page(request, who, chosen)
    people = reading(request.app.state.engine, lambda c: members_of(c, who.project.id))
    unchanged = chosen.model_dump(exclude_defaults=True)

    def link(**changes: str | int | bool) -> str:
        """The address of this page with something else chosen."""
        return "?" + urlencode({**unchanged, **changes})

    values = {"page": page, "chosen": chosen, "people": people, "link": link}
    return render_project(request, who, "queries.html", values)


@router.get("/queries/{query}")
def query_page(request: Request, who: AManager, query: Number, before: Before = None) -> Response:
    """One query: its results so far, and every judgment."""

    def work(connection: Connection) -> tuple[QueryResults, list[ModelResult]]:
        results = query_results(connection, who.project, query)
        return results, model_results(connection, who.project, results.query)

    reached, models = reading(request.app.state.engine, work)
    values = {
        "results": reached,
        "models": models,
        "entries": results.entries_of_query(request, who, query, before),
        "grades": grade_names(who.project.scale),
        "titles": {each.position: each for each in reached.documents},
        "before": before,
        "log_page": results.LOG_PAGE,
    }
    return render_project(request, who, "query.html", values)


@router.get("/people/{user}")
def person_page(request: Request, who: AManager, user: Number, before: Before = None) -> Response:
    """One person: their figures, and their judgments."""
    person = results.results_of_person(request, who, user)

    def work(connection: Connection) -> tuple[dict[int, str], list[JobRow]]:
        names = {each.id: each.name for each in members_of(connection, who.project.id)}
        return names, bulk_jobs(connection, who.project.id, user)

    names, jobs = reading(request.app.state.engine, work)
    restored = {job.parameters.get("job") for job in jobs if job.kind == RESTORE}
    values = {
        "shown": person,
        "entries": results.entries_of_person(request, who, user, before),
        "names": names,
        "jobs": jobs,
        "restored": restored,
        "before": before,
        "log_page": results.LOG_PAGE,
    }
    return render_project(request, who, "person.html", values)


@router.post("/queries/{query}/log/{position}/discard")
def discard(
    request: Request, who: AManager, query: Number, position: int, form: FormValues
) -> Response:
    """Discard one judgment."""
    body = _read(results.DiscardOne, {"reason": form.get("reason", "")})
    results.discard(request, who, query, position, body)
    return _back(request, who, query)


@router.post("/queries/{query}/log/{position}/restore")
def restore(request: Request, who: AManager, query: Number, position: int) -> Response:
    """Restore one judgment."""
    results.restore(request, who, query, position)
    return _back(request, who, query)


@router.post("/queries/{query}/ask-again")
def ask(request: Request, who: AManager, query: Number, form: FormValues) -> Response:
    """Have a pair, or the verdicts of a loop, asked again."""
    body = _read(AskAgain, {"query": query, "loop": form.get("loop", "").split(",")})
    ask_again(request, who, body)
    return _back(request, who, query)


@router.post("/queries/{query}/withdraw")
def withdraw(request: Request, who: AManager, query: Number, form: FormValues) -> Response:
    """Withdraw the query or a document."""
    body = _read(results.Withdrawal, _filled(form))
    results.withdraw(request, who, query, body)
    return _back(request, who, query)


@router.post("/queries/{query}/readmit")
def readmit(request: Request, who: AManager, query: Number, form: FormValues) -> Response:
    """Take the query or a document back in."""
    results.readmit(request, who, query, _read(results.Readmission, _filled(form)))
    return _back(request, who, query)


@router.post("/people/{user}/discard")
def discard_all(request: Request, who: AManager, user: Number, form: FormValues) -> Response:
    """Discard someone's judgments since a day."""
    since = form.get("since", "").strip()
    try:
        seconds = calendar.timegm(time.strptime(since, "%Y-%m-%dT%H:%M")) if since else 0
    except ValueError as error:
        raise RefusedError(422, "since: Give a date and time.") from error
    body = _read(DiscardRequest, {"since": seconds, "reason": form.get("reason", "")})
    results.discard_all(request, who, user, body)
    return RedirectResponse(f"/projects/{who.project.id}/people/{user}", 303)


@router.post("/people/{user}/discards/{job}/restore")
def restore_all(request: Request, who: AManager, user: Number, job: Number) -> Response:
    """Restore what a job discarded."""
    results.restore_all(request, who, job)
    return RedirectResponse(f"/projects/{who.project.id}/people/{user}", 303)


def _filled(form: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if value.strip()}


def _read(model: type[_Model], values: JsonObject) -> _Model:
    """A form as the API takes it."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error


def _back(request: Request, who: Member, query: int) -> Response:
    """To the page that the button was on, if it was of this project."""
    base = f"/projects/{who.project.id}"
    origin = urlsplit(request.headers.get("referer", "")).path
    path = origin if origin.startswith(f"{base}/") else f"{base}/queries/{query}"
    return RedirectResponse(path, 303)

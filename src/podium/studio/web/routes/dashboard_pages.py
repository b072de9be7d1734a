"""The dashboard: its page, and the fragment that it fetches again and again."""

from __future__ import annotations

import time

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup
from pydantic import ValidationError
from sqlalchemy import Connection, select

from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.reporting.agreement_words import agreement_words
from podium.studio.reporting.flags import shown_flags
from podium.studio.reporting.history import history_chart
from podium.studio.reporting.pace import Pace, pace_of
from podium.studio.store.database import reading
from podium.studio.store.rows import ReportRow
from podium.studio.store.tables import QueryCandidate
from podium.studio.translations import Language
from podium.studio.web.access import AManager
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.languages import language_of
from podium.studio.web.routes.dashboard import AskAgain, ask_again, blocked_now, present
from podium.studio.web.routes.project_pages import render_project

router = APIRouter(
    prefix="/projects/{project}/dashboard",
    dependencies=[Depends(read_csrf)],
    include_in_schema=False,
)


@router.get("")
def dashboard(request: Request, who: AManager) -> Response:
    """The dashboard."""
    return render_project(request, who, "dashboard.html", _values(request, who))


@router.get("/figures")
def figures(request: Request, who: AManager) -> Response:
    """What changes on the dashboard."""
    return render_project(request, who, "dashboard_figures.html", _values(request, who))


@router.post("/ask-again")
def ask(request: Request, who: AManager, form: FormValues) -> Response:
    """Have the verdicts of a loop asked again."""
    positions = form.get("loop", "").split(",")
    try:
        body = AskAgain.model_validate({"query": form.get("query"), "loop": positions})
        ask_again(request, who, body)
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error
    return RedirectResponse(f"/projects/{who.project.id}/dashboard", 303)


def _values(request: Request, who: Member) -> JsonObject:
    progress, row = present(request, who)
    content: JsonObject = row.content if row is not None else {}
    loops = content.get("loops", [])

    def work(connection: Connection) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
        names = {each.id: each.name for each in members_of(connection, who.project.id)}
        names |= {each["user"]: each["name"] for each in content.get("times", [])}
        return names, _titles(connection, loops)

    names, titles = reading(request.app.state.engine, work)
    now = time.time()
    # By the minute: a forecast that moves with every refresh would flicker.
    pace: Pace = pace_of(progress, content, now - now % 60)
    return {
        "progress": progress,
        "report": content,
        "made_at": row.made_at if row is not None else None,
        "chart": _chart(content, row, language_of(request)),
        "flags": shown_flags,
        "agreement_words": agreement_words(content["agreement"])
        if content.get("agreement")
        else "",
        "names": names,
        "titles": titles,
        "pace": pace,
        "blocked": blocked_now(request, who),
    }


def _chart(content: JsonObject, row: ReportRow | None, language: Language) -> Markup | None:
    """The chart up to the report: the same until there is another, so that nothing flickers."""
    history = content.get("history")
    if row is None or not history:
        return None
    times = content.get("times", [])
    judgments = sum(each["judgments"] for each in times)
    return history_chart(history, row.made_at, judgments, language.translate)


def _titles(connection: Connection, loops: list[JsonObject]) -> dict[tuple[int, int], str]:
    """What the documents of contradictions are called."""
    queries = {loop["query"] for loop in loops}
    if not queries:
        return {}
    body = {(loop["query"], position) for loop in loops for position in loop["loop"]}
    rows = connection.execute(
        select(
            QueryCandidate.query_id,
            QueryCandidate.position,
            QueryCandidate.item,
            QueryCandidate.title,
        ).where(
            QueryCandidate.query_id.in_(queries),
            QueryCandidate.position.in_({position for _, position in body}),
        )
    ).all()
    return {(row.query_id, row.position): row.title or row.item for row in rows}

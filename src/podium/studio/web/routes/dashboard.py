"""The dashboard: a project's report, and pairs that are to be judged again."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import Response
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.datastructures import FormData

from podium.studio.accounts.identity import Member
from podium.studio.accounts.members import members_of
from podium.studio.json_types import JsonObject
from podium.studio.judging.blocked import BlockedQueries, blocked_work
from podium.studio.judging.corrections import rejudge
from podium.studio.judging.training import count_failed
from podium.studio.projects.progress import ProjectProgress, project_progress
from podium.studio.reporting import reports
from podium.studio.reporting.dashboard import (
    agreement_words,
    duration,
    history_chart,
    is_low,
    pace_of,
)
from podium.studio.reporting.log_rows import named_documents
from podium.studio.reporting.person_results import AssessorFigures, Share, assessor_figures
from podium.studio.store.rows import ReportRow
from podium.studio.translations import Language
from podium.studio.web.access import RequiresManager, wake_workers
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render_project

routes = Routes("dashboard", api="/projects/{project}", pages="/projects/{project}")


class ReportOut(BaseModel):
    """A project's report. It is made in the background: ask again for a newer one."""

    made_at: float | None
    """When it was made; null if there is none yet."""
    judgments: int
    """Up to how many entries of the logs it goes: judgments, what was taken back, and skips."""
    blocked: list[str]
    """What nobody can judge, why, and what would unblock it."""
    content: JsonObject
    """Agreement, kappas, care, times, contradictions and the history of the count."""


class AskAgain(BaseModel):
    """What to ask again: a pair of documents, or a loop of verdicts, by positions."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[int, Field(ge=1, lt=2**62)]
    loop: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=2, max_length=1000)


class AskedAgain(BaseModel):
    """How many verdicts were taken back."""

    verdicts: int


class AssessorOrder(BaseModel):
    """How the table of assessors is sorted."""

    sort: Literal["name", "judgments", "seconds", "peers", "gold", "again", "left", "last"] = (
        "judgments"
    )
    descending: bool = True

    def sorted(self, rows: list[AssessorFigures]) -> list[AssessorFigures]:
        """The rows in this order; those without the figure come last."""

        def figure(row: AssessorFigures) -> tuple[str | float, ...]:
            if self.sort == "name":
                return (row.name.casefold(),)
            if self.sort == "left":
                left, _, right = row.sides
                return (left / (left + right),) if left + right else ()
            value = row.last_at if self.sort == "last" else getattr(row, self.sort)
            if isinstance(value, Share):
                return (value.hits / value.total,)
            return () if value is None else (value,)

        known = [row for row in rows if figure(row)]
        rest = [row for row in rows if not figure(row)]
        return sorted(known, key=figure, reverse=self.descending) + rest


@routes.page("/dashboard")
def dashboard(
    request: Request, who: RequiresManager, order: Annotated[AssessorOrder, Parameter()]
) -> Response:
    """The overview of a project."""
    return render_project(request, who, "dashboard.html", _figures(request, who, order))


@routes.page("/dashboard/figures")
def figures(
    request: Request, who: RequiresManager, order: Annotated[AssessorOrder, Parameter()]
) -> Response:
    """What changes on the overview."""
    return render_project(request, who, "dashboard_figures.html", _figures(request, who, order))


@routes.action("GET", "/report")
def get_report(request: Request, who: RequiresManager) -> ReportOut:
    """Agreement, self-consistency, gold accuracy, speed and contradictions, as of a moment ago."""
    _, row = present(request, who)
    translate = language_of(request).translate
    blocked = [translate(each.message) for each in _blocked_now(request, who)]
    if row is None:
        return ReportOut(made_at=None, judgments=0, blocked=blocked, content={})
    return ReportOut(
        made_at=row.made_at, judgments=row.entries, blocked=blocked, content=row.content
    )


def _loop(form: FormData) -> JsonObject:
    return {"query": form.get("query"), "loop": str(form.get("loop", "")).split(",")}


@routes.action(
    "POST",
    "/ask-again",
    form="/ask-again",
    to="/projects/{project}/dashboard",
    back=True,
    values=_loop,
)
def ask_again(request: Request, who: RequiresManager, body: AskAgain) -> AskedAgain:
    """Take back everyone's verdicts on a pair, or of a loop, so that they are asked again."""
    return AskedAgain(verdicts=write(request, lambda c: rejudge(c, who, body.query, body.loop)))


def present(request: Request, who: Member) -> tuple[ProjectProgress, ReportRow | None]:
    """How far a project is, and its last report; a newer one is asked for if there is need."""

    def work(connection: Connection) -> tuple[ProjectProgress, ReportRow | None]:
        project_id = who.project.id
        return project_progress(connection, project_id), reports.report_of(connection, project_id)

    progress, row = read(request, work)
    stale = reports.is_stale(row, progress.entries, time.time())
    engine = request.app.state.engine
    if stale and reports.request_report(engine, who.project.id, who.person.id):
        wake_workers(request)
    return progress, row


def _blocked_now(request: Request, who: Member) -> list[BlockedQueries]:
    """What nobody can judge; a project that is paused hands nothing out anyway."""
    return [] if who.project.paused else read(request, lambda c: blocked_work(c, who.project))


def _figures(request: Request, who: Member, order: AssessorOrder) -> JsonObject:
    progress, row = present(request, who)
    content: JsonObject = row.content if row is not None else {}
    loops = content.get("loops", [])

    def work(
        connection: Connection,
    ) -> tuple[dict[int, str], dict[tuple[int, int], str], str | None]:
        names = {each.id: each.name for each in members_of(connection, who.project.id)}
        return names, _titles(connection, loops), reports.problem_of(connection, who.project.id)

    members, titles, problem = read(request, work)
    now = time.time()
    agreement = content.get("agreement")
    assessors = order.sorted(assessor_figures(content))
    return {
        "progress": progress,
        "finished": bool(progress.queries) and progress.done == progress.queries,
        "report": content,
        "made_at": row.made_at if row is not None else None,
        "behind": row is not None and row.entries != progress.entries,
        "failure": problem,
        "chart": _chart(content, row, language_of(request)),
        "assessors": assessors,
        "order": order,
        "agreement_words": agreement_words(agreement) if agreement else "",
        "low_agreement": is_low(agreement) if agreement else False,
        "duration": duration,
        "members": len(members),
        "names": members | {each.id: each.name for each in assessors},
        "titles": titles,
        # By the minute: a forecast that moves with every refresh would flicker.
        "pace": pace_of(progress, content, now - now % 60),
        "blocked": _blocked_now(request, who),
        "failed_training": read(request, lambda c: count_failed(c, who.project.id)),
    }


def _chart(content: JsonObject, row: ReportRow | None, language: Language) -> Markup | None:
    """The chart up to the report: the same until there is another, so that nothing flickers."""
    history = content.get("history")
    if row is None or not history:
        return None
    judgments = sum(each["judgments"] for each in content.get("times", []))
    return history_chart(history, row.made_at, judgments, language.translate)


def _titles(connection: Connection, loops: list[JsonObject]) -> dict[tuple[int, int], str]:
    """What the documents of contradictions are called."""
    keys = {(loop["query"], position) for loop in loops for position in loop["loop"]}
    names = named_documents(connection, keys) if keys else {}
    return {(query, position or 0): each.title for (query, position), each in names.items()}

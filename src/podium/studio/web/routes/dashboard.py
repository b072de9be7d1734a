"""API routes for a project's report, and for rejudging pairs."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts.identity import Member
from podium.studio.json_types import JsonObject
from podium.studio.judging.blocked import BlockedQueries, blocked_work
from podium.studio.judging.corrections import rejudge
from podium.studio.projects.progress import ProjectProgress, project_progress
from podium.studio.reporting import reports
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.rows import ReportRow
from podium.studio.web.access import AManager, wake_workers
from podium.studio.web.languages import language_of

router = APIRouter(prefix="/api/v1/projects/{project}", tags=["dashboard"])

Position = Annotated[int, Field(ge=0, lt=2**31)]


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
    loop: list[Position] = Field(min_length=2, max_length=1000)


class AskedAgain(BaseModel):
    """How many verdicts were taken back."""

    verdicts: int


@router.get("/report", operation_id="get_report")
def report(request: Request, who: AManager) -> ReportOut:
    """Agreement, self-consistency, gold accuracy, speed and contradictions, as of a moment ago."""
    _, row = present(request, who)
    translate = language_of(request).translate
    blocked = [translate(each.message) for each in blocked_now(request, who)]
    if row is None:
        return ReportOut(made_at=None, judgments=0, blocked=blocked, content={})
    return ReportOut(
        made_at=row.made_at, judgments=row.entries, blocked=blocked, content=row.content
    )


@router.post("/ask-again", operation_id="ask_again")
def ask_again(request: Request, who: AManager, body: AskAgain) -> AskedAgain:
    """Take back everyone's verdicts on a pair, or of a loop, so that they are asked again."""
    count = in_transaction(
        request.app.state.engine, lambda c: rejudge(c, who, body.query, body.loop)
    )
    return AskedAgain(verdicts=count)


def blocked_now(request: Request, who: Member) -> list[BlockedQueries]:
    """What nobody can judge; a project that is paused hands nothing out anyway."""
    if who.project.paused:
        return []
    return reading(request.app.state.engine, lambda c: blocked_work(c, who.project))


def present(request: Request, who: Member) -> tuple[ProjectProgress, ReportRow | None]:
    """How far a project is, and its last report; a newer one is asked for if there is need."""
    engine = request.app.state.engine

    def work(connection: Connection) -> tuple[ProjectProgress, ReportRow | None]:
        return project_progress(connection, who.project.id), reports.report_of(
            connection, who.project.id
        )

    progress, row = reading(engine, work)
    stale = reports.is_stale(row, progress.entries, time.time())
    if stale and reports.request_report(engine, who.project.id, who.person.id):
        wake_workers(request)
    return progress, row

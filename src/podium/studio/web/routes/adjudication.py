"""API routes for adjudication: who decides, what waits for a decision, and deciding it."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.judging import adjudication
from podium.studio.judging.answer_choices import SKIP, choices
from podium.studio.judging.modes import NO_ITEM
from podium.studio.judging.scales import LONGEST_GRADE, grade_names
from podium.studio.projects.progress import project_progress
from podium.studio.reporting import reports
from podium.studio.reporting.log_rows import relation
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectRow
from podium.studio.store.text import storable
from podium.studio.web.access import AManager, AnyMember, wake_workers
from podium.studio.web.routes.judging import Side, side_of

router = APIRouter(prefix="/api/v1/projects/{project}/adjudication", tags=["adjudication"])

_Id = Annotated[int, Field(ge=1, lt=2**62)]


class AdjudicationOut(BaseModel):
    """Who decides, and how much waits for them."""

    adjudicator: int | None
    disputes: int
    """Disagreements without a decision, as of the last report."""


class AdjudicatorIn(BaseModel):
    """Who is to decide; null for nobody."""

    model_config = ConfigDict(extra="forbid")

    user: _Id | None


class VoteOut(BaseModel):
    """An earlier answer; its author is not named."""

    answer: str
    """How left compares with right, or the grade."""
    reason: str | None


class DisputeOut(BaseModel):
    """What people disagree on."""

    query_id: int
    query: str
    description: str
    left: int
    right: int
    """The positions of the documents, to be sent back; the second is -1 if there is one alone."""
    sides: list[Side]
    votes: list[VoteOut]
    choices: list[str]


class NextDisputeOut(BaseModel):
    """A disagreement, if one waits."""

    dispute: DisputeOut | None
    left: int
    """How many wait, as of the last report."""
    checking: bool
    """Whether there are answers since the last report: more may be found."""


class DecisionIn(BaseModel):
    """A decision."""

    model_config = ConfigDict(extra="forbid")

    query_id: _Id
    left: Annotated[int, Field(ge=0, lt=2**31)]
    right: Annotated[int, Field(ge=NO_ITEM, lt=2**31)] = NO_ITEM
    choice: str = Field(max_length=LONGEST_GRADE)
    reason: Annotated[str, AfterValidator(storable)] | None = Field(default=None, max_length=2000)


@router.get("", operation_id="get_adjudication")
def get_adjudication(request: Request, who: AManager) -> AdjudicationOut:
    """Who decides where people disagree, and how much waits for them."""
    return reading(request.app.state.engine, lambda c: _out(c, who.project.id))


@router.put("/adjudicator", operation_id="set_adjudicator")
def set_adjudicator(request: Request, who: AManager, body: AdjudicatorIn) -> AdjudicationOut:
    """Choose who decides where people disagree."""

    def work(connection: Connection) -> AdjudicationOut:
        adjudication.set_adjudicator(connection, who, body.user)
        return _out(connection, who.project.id)

    return in_transaction(request.app.state.engine, work)


@router.get("/next", operation_id="next_dispute")
def next_dispute(request: Request, who: AnyMember) -> NextDisputeOut:
    """The next disagreement, with the earlier answers; for the adjudicator alone."""
    checking = refresh(request, who)

    def work(connection: Connection) -> NextDisputeOut:
        if adjudication.adjudicator_of(connection, who.project.id) != who.person.id:
            raise RefusedError(403, "Only the project's adjudicator may do this.")
        dispute = adjudication.next_dispute(connection, who.project)
        left = adjudication.count_disputes(connection, who.project.id)
        shown = None if dispute is None else _dispute(who, dispute)
        return NextDisputeOut(dispute=shown, left=left, checking=checking)

    return reading(request.app.state.engine, work)


@router.post("/decisions", status_code=201, operation_id="decide")
def decide(request: Request, who: AnyMember, body: DecisionIn) -> AdjudicationOut:
    """Decide a disagreement; the decision replaces the answers."""

    def work(connection: Connection) -> AdjudicationOut:
        adjudication.decide(
            connection, who, body.query_id, (body.left, body.right), body.choice, body.reason
        )
        return _out(connection, who.project.id)

    return in_transaction(request.app.state.engine, work)


def refresh(request: Request, who: Member) -> bool:
    """Ask for a newer report if there is need: disagreements are found by it.

    Returns whether there are answers that the last report does not know.
    """
    engine = request.app.state.engine
    progress = reading(engine, lambda c: project_progress(c, who.project.id))
    report = reading(engine, lambda c: reports.report_of(c, who.project.id))
    stale = reports.is_stale(report, progress.entries, time.time())
    if stale and reports.request_report(engine, who.project.id, who.person.id):
        wake_workers(request)
    return report is None or report.entries != progress.entries


def decision_choices(project: ProjectRow) -> list[str]:
    """What an adjudicator may answer."""
    mode = Mode(project.mode)
    possible = choices(mode, grade_names(project.scale))
    return [each for each in possible if each != SKIP and not each.startswith("bad-")]


def _out(connection: Connection, project_id: int) -> AdjudicationOut:
    return AdjudicationOut(
        adjudicator=adjudication.adjudicator_of(connection, project_id),
        disputes=adjudication.count_disputes(connection, project_id),
    )


def _dispute(who: Member, dispute: adjudication.Dispute) -> DisputeOut:
    query, task = dispute.judged.query, dispute.task
    return DisputeOut(
        query_id=query.id,
        query=query.text,
        description=query.description,
        left=task.left,
        right=task.right,
        sides=[side_of(who.project, side) for side in dispute.judged.state.documents_shown(task)],
        votes=[
            VoteOut(
                answer=relation(
                    vote.kind,
                    vote.value or 0 if vote.left == task.left else -(vote.value or 0),
                    grade_names(who.project.scale),
                ),
                reason=vote.reason,
            )
            for vote in dispute.votes
        ],
        choices=decision_choices(who.project),
    )

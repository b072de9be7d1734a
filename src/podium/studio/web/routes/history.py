"""API routes for one's own answers: see them, comment on them, change them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from podium.studio.accounts.identity import Member
from podium.studio.judging.leases import LeaseHolder
from podium.studio.judging.scales import LONGEST_GRADE
from podium.studio.judging.service import AnswerChange, JudgingService
from podium.studio.judging.unit_of_work import UnitOfWork
from podium.studio.projects.display import FieldRole, shows
from podium.studio.reporting.log_rows import LogRow, NamedDocument, log_rows
from podium.studio.store.database import reading
from podium.studio.store.tables import LogEntry
from podium.studio.store.text import storable
from podium.studio.web.access import AnyMember
from podium.studio.web.routes.results import LOG_PAGE, Before

router = APIRouter(prefix="/api/v1/projects/{project}/history", tags=["history"])


class OwnAnswer(BaseModel):
    """An answer of yours. Whether it was a check is not told."""

    id: int
    answer: UUID
    """Names the answer; two entries of one answer have the same."""
    query_id: int
    query: str
    left: str | None
    right: str | None
    relation: str
    """How left compares with right, the grade, ``bad`` or ``skipped``."""
    comment: str | None
    replies: dict[str, str]
    """The replies to the project's questions, by the questions' texts."""
    at: float
    stands: bool


class ChangeRequest(BaseModel):
    """What to change an earlier answer to."""

    model_config = ConfigDict(extra="forbid")

    token: UUID
    """Names the change: sending it twice changes nothing."""
    choice: str | None = Field(default=None, max_length=LONGEST_GRADE)
    """A choice of the project's judging mode, or ``keep``; null takes the answer back."""
    comment: Annotated[str, AfterValidator(storable)] = Field(default="", max_length=2000)


@router.get("", operation_id="list_history")
def history(request: Request, who: AnyMember, before: Before = None) -> list[OwnAnswer]:
    """Your answers in the project, newest first, 100 at a time."""
    return [
        OwnAnswer(
            id=row.id,
            answer=row.token,
            query_id=row.query_id,
            query=row.query,
            left=None if row.left is None else row.left.title,
            right=None if row.right is None else row.right.title,
            relation=row.relation,
            comment=row.reason,
            replies=row.replies,
            at=row.at,
            stands=row.undone is None,
        )
        for row in own_answers(request, who, before)
    ]


@router.post("/{answer}", status_code=204, operation_id="change_answer")
def change(request: Request, who: AnyMember, answer: UUID, body: ChangeRequest) -> None:
    """Change an earlier answer of yours, comment on it, or take it back."""
    service: JudgingService = request.app.state.service
    wish = AnswerChange(body.token, body.choice, body.comment.strip() or None)

    def work(unit: UnitOfWork) -> None:
        service.assessor(unit, who.project, LeaseHolder(who.person.id)).change(answer, wish)

    service.transact(work)


def own_answers(
    request: Request, who: Member, before: int | None = None, answer: UUID | None = None
) -> list[LogRow]:
    """Someone's own answers, newest first; or the entries of one of them."""
    conditions = [LogEntry.user_id == who.person.id]
    if answer is not None:
        conditions.append(LogEntry.token == answer)
    rows = reading(
        request.app.state.engine,
        lambda c: log_rows(c, who.project, *conditions, limit=LOG_PAGE, before=before),
    )
    if shows(who.project.display, "title", FieldRole.TITLE):
        return rows
    return [replace(row, left=_unnamed(row.left), right=_unnamed(row.right)) for row in rows]


def _unnamed(document: NamedDocument | None) -> NamedDocument | None:
    """A document without its title, where the project hides titles from those who judge."""
    if document is None or document.reference is None:
        return document
    return replace(document, title=f"Document {document.reference % 10_000}")

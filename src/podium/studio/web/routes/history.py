"""One's own answers: the list, and one answer to comment on, to change or to take back."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.judging.answer_choices import SAME
from podium.studio.judging.scales import LONGEST_GRADE
from podium.studio.judging.service import AnswerChange, JudgingService
from podium.studio.judging.unit_of_work import LeaseHolder, UnitOfWork
from podium.studio.projects.display import FieldRole, shows
from podium.studio.reporting.log_rows import LOG_PAGE, LogRow, NamedDocument, log_rows
from podium.studio.store.database import storable
from podium.studio.store.enums import Kind
from podium.studio.store.tables import LogEntry
from podium.studio.store.tokens import new_token
from podium.studio.web.access import Before, RequiresMember
from podium.studio.web.actions import Routes, read
from podium.studio.web.pages import render_project
from podium.studio.web.routes.judging import answer_buttons

routes = Routes("history", api="/projects/{project}/history", pages="/projects/{project}/history")


def _title(document: NamedDocument | None) -> str | None:
    return None if document is None else document.title


class OwnAnswer(BaseModel):
    """An answer of yours. It does not say whether it was a check."""

    id: int
    answer: UUID = Field(validation_alias="token")
    """Identifies the answer; two entries of one answer have the same."""
    query_id: int
    query: str
    left: Annotated[str | None, BeforeValidator(_title)]
    right: Annotated[str | None, BeforeValidator(_title)]
    relation: str
    """How left compares with right, the grade, ``bad`` or ``skipped``."""
    comment: str | None = Field(validation_alias="reason")
    replies: dict[str, str]
    """The replies to the project's questions, by the questions' texts."""
    at: float
    stands: bool


class ChangeRequest(BaseModel):
    """What to change an earlier answer to."""

    model_config = ConfigDict(extra="forbid")

    token: UUID
    """Identifies the change: sending it twice changes nothing."""
    choice: str | None = Field(default=None, max_length=LONGEST_GRADE)
    """A choice of the project's judging mode, or ``keep``; null takes the answer back."""
    comment: Annotated[str, AfterValidator(lambda text: storable(text).strip())] = Field(
        default="", max_length=2000
    )


@routes.page("")
def history_page(request: Request, who: RequiresMember, before: Before = None) -> Response:
    """Your answers."""
    values = {
        "entries": _own_answers(request, who, before),
        "before": before,
        "log_page": LOG_PAGE,
    }
    return render_project(request, who, "history.html", values)


@routes.page("/{answer}")
def answer_page(request: Request, who: RequiresMember, answer: str) -> Response:
    """One of your answers."""
    entries = _own_answers(request, who, answer=_token(answer))
    if not entries:
        raise RefusedError(404, "The answer does not exist.")
    entries.sort(key=lambda each: each.position)
    one_mark = len(entries) == 1 and entries[0].kind is Kind.BAD
    values = {
        "entries": entries,
        "choices": () if one_mark else answer_buttons(who.project),
        "keep": SAME,
        "token": new_token(),
    }
    return render_project(request, who, "history_answer.html", values)


@routes.action("GET", "")
def list_history(request: Request, who: RequiresMember, before: Before = None) -> list[OwnAnswer]:
    """Your answers in the project, newest first, 100 at a time."""
    rows = _own_answers(request, who, before)
    return [OwnAnswer.model_validate(row, from_attributes=True) for row in rows]


@routes.action(
    "POST",
    "/{answer}",
    form="/{answer}",
    page=answer_page,
    to="/projects/{project}/history",
    status_code=204,
)
def change_answer(request: Request, who: RequiresMember, answer: str, body: ChangeRequest) -> None:
    """Change an earlier answer of yours, comment on it, or take it back."""
    service: JudgingService = request.app.state.service
    token, change = _token(answer), AnswerChange(body.token, body.choice, body.comment or None)

    def work(unit: UnitOfWork) -> None:
        service.assessor(unit, who.project, LeaseHolder(who.person.id)).change(token, change)

    service.transact(work)


def _token(answer: str) -> UUID:
    try:
        return UUID(answer)
    except ValueError as error:
        raise RefusedError(404, "The answer does not exist.") from error


def _own_answers(
    request: Request, who: Member, before: int | None = None, answer: UUID | None = None
) -> list[LogRow]:
    """Someone's own answers, newest first; or the entries of one of them."""
    conditions = [LogEntry.user_id == who.person.id]
    if answer is not None:
        conditions.append(LogEntry.token == answer)
    rows = read(
        request, lambda c: log_rows(c, who.project, *conditions, limit=LOG_PAGE, before=before)
    )
    if shows(who.project.display, "title", FieldRole.TITLE):
        return rows
    return [replace(row, left=_unnamed(row.left), right=_unnamed(row.right)) for row in rows]


def _unnamed(document: NamedDocument | None) -> NamedDocument | None:
    """A document without its title, where the project hides titles from those who judge."""
    if document is None or document.reference is None:
        return document
    return replace(document, title=f"Document {document.reference % 10_000}")

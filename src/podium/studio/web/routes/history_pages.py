"""Pages of one's own answers: the list, and one answer to comment on or change."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError, first_problem
from podium.studio.judging.answer_choices import SAME
from podium.studio.store.enums import Kind
from podium.studio.store.tokens import new_token
from podium.studio.web.access import AnyMember
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import history
from podium.studio.web.routes.history import ChangeRequest
from podium.studio.web.routes.judging_pages import answer_buttons
from podium.studio.web.routes.project_pages import render_project
from podium.studio.web.routes.results import LOG_PAGE, Before

router = APIRouter(
    prefix="/projects/{project}/history", dependencies=[Depends(read_csrf)], include_in_schema=False
)


@router.get("")
def history_page(request: Request, who: AnyMember, before: Before = None) -> Response:
    """Your answers."""
    values = {
        "entries": history.own_answers(request, who, before),
        "before": before,
        "log_page": LOG_PAGE,
    }
    return render_project(request, who, "history.html", values)


@router.get("/{answer}")
def answer_page(request: Request, who: AnyMember, answer: str) -> Response:
    """One of your answers."""
    return _answer_page(request, who, _token(answer))


@router.post("/{answer}")
def change(request: Request, who: AnyMember, answer: str, form: FormValues) -> Response:
    """Change one of your answers."""
    token = _token(answer)
    values = {name: form[name] for name in ("token", "choice", "comment") if form.get(name)}
    try:
        history.change(request, who, token, ChangeRequest.model_validate(values))
    except ValidationError as error:
        return _answer_page(request, who, token, first_problem(error), 422)
    except RefusedError as error:
        return _answer_page(request, who, token, error.problem, error.status)
    return RedirectResponse(f"/projects/{who.project.id}/history", 303)


def _token(answer: str) -> UUID:
    try:
        return UUID(answer)
    except ValueError as error:
        raise RefusedError(404, "The answer does not exist.") from error


def _answer_page(
    request: Request, who: Member, answer: UUID, problem: str = "", status: int = 200
) -> Response:
    entries = history.own_answers(request, who, answer=answer)
    if not entries:
        raise RefusedError(404, "The answer does not exist.")
    entries.sort(key=lambda each: each.position)
    one_mark = len(entries) == 1 and entries[0].kind is Kind.BAD
    values = {
        "entries": entries,
        "stands": entries[0].undone is None,
        "choices": () if one_mark else answer_buttons(who.project),
        "keep": SAME,
        "token": new_token(),
        "problem": problem,
    }
    return render_project(request, who, "history_answer.html", values, status=status)

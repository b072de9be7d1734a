"""The page on which managers choose what the judging page shows and asks."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.judging.entries import MOST_GRADES
from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.judging.scales import COLOURS, MOST_QUESTIONS, scale_of
from podium.studio.messages import Message
from podium.studio.projects.changes import ProjectChange, change_project, has_answers
from podium.studio.projects.display import FieldRole, display_of
from podium.studio.projects.document_fields import document_fields
from podium.studio.store.database import in_transaction, reading
from podium.studio.web.access import AManager
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes.project_pages import render_project

router = APIRouter(
    prefix="/projects/{project}/settings/screen",
    dependencies=[Depends(read_csrf)],
    include_in_schema=False,
)
_ROLES = {
    FieldRole.TITLE: Message("Heading"),
    FieldRole.IMAGE: Message("Picture"),
    FieldRole.PRICE: Message("Price"),
    FieldRole.TAG: Message("Tag"),
    FieldRole.SNIPPET: Message("Snippet"),
    FieldRole.VALUE: Message("Value with label"),
    FieldRole.LINK: Message("Link to the source"),
    FieldRole.TEXT: Message("Text to read"),
}
_MOST_ROWS = 100
_NO_GRADE: JsonObject = {"name": "", "description": "", "colour": ""}
_NO_QUESTION: JsonObject = {"name": "", "text": "", "options": [], "required": False}
_BLANK_QUESTIONS = 2


@router.get("")
def screen(request: Request, who: AManager) -> Response:
    """Show what the judging page shows and asks."""
    return _page(request, who)


@router.post("/fields")
def change_fields(request: Request, who: AManager, form: FormValues) -> Response:
    """Change which fields of a document assessors see."""
    rows = [row for row in _rows(form, ("field", "role", "label", "position")) if row["role"]]
    rows.sort(key=lambda row: int(row["position"]) if row["position"].isdecimal() else _MOST_ROWS)
    display = [{name: row[name] for name in ("field", "role", "label")} for row in rows]
    return _change(request, who, {"display": display})


@router.post("/grades")
def change_grades(request: Request, who: AManager, form: FormValues) -> Response:
    """Change the grades."""
    rows = _rows(form, ("name", "description", "colour"))
    return _change(request, who, {"scale": [row for row in rows if row["name"]]})


@router.post("/questions")
def change_questions(request: Request, who: AManager, form: FormValues) -> Response:
    """Change the questions."""
    questions = [
        {
            "name": row["name"],
            "text": row["text"],
            "options": [line.strip() for line in row["options"].splitlines() if line.strip()],
            "required": bool(row["required"]),
        }
        for row in _rows(form, ("name", "text", "options", "required"))
        if row["name"] or row["text"]
    ]
    return _change(request, who, {"questions": questions})


def _rows(form: dict[str, str], names: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a form, whose fields are numbered: ``name-0``, ``name-1`` and so on."""
    return [
        {name: form.get(f"{name}-{number}", "").strip() for name in names}
        for number in range(_MOST_ROWS)
        if any(f"{name}-{number}" in form for name in names)
    ]


def _change(request: Request, who: Member, typed: JsonObject) -> Response:
    try:
        changes = ProjectChange.model_validate(typed).model_dump(mode="json", exclude_unset=True)
        in_transaction(
            request.app.state.engine,
            lambda c: change_project(c, who.person.id, who.project.id, changes),
        )
    except ValidationError as error:
        return _page(request, who, typed, first_problem(error), 422)
    except RefusedError as error:
        return _page(request, who, typed, error.problem, error.status)
    return RedirectResponse(f"/projects/{who.project.id}/settings/screen?saved=yes", 303)


def _page(
    request: Request,
    who: Member,
    typed: JsonObject | None = None,
    problem: str = "",
    status: int = 200,
) -> Response:
    typed = typed or {}
    project = who.project
    fields, fixed = reading(
        request.app.state.engine,
        lambda c: (document_fields(c, project.id), has_answers(c, project.id)),
    )
    display = typed.get("display")
    if display is None:
        display = [each.model_dump(mode="json") for each in display_of(project.display)]
    scale = typed.get("scale")
    if scale is None:
        scale = [each.model_dump() for each in scale_of(project.scale)]
    questions = typed.get("questions", project.questions)
    examples = {field.name: field.example for field in fields}
    shown = [{**row, "example": examples.get(row["field"], "")} for row in display]
    names = {row["field"] for row in display}
    rest = [
        {"field": field.name, "role": "", "label": "", "example": field.example}
        for field in fields
        if field.name not in names
    ]
    rows = len(scale) if fixed else MOST_GRADES
    blank = min(len(questions) + _BLANK_QUESTIONS, MOST_QUESTIONS) - len(questions)
    values = {
        "fields": shown + rest,
        "roles": {role.value: label for role, label in _ROLES.items()},
        "grades": [*scale, *[_NO_GRADE] * (rows - len(scale))],
        "colours": COLOURS,
        "questions": [*questions, *[_NO_QUESTION] * max(blank, 0)],
        "fixed": fixed,
        "hosts": request.app.state.settings.image_hosts,
        "problem": problem,
        "saved": not problem and "saved" in request.query_params,
    }
    return render_project(request, who, "project_screen.html", values, status=status)

"""The page on which managers choose what the judging page shows and asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import Request
from fastapi.responses import Response
from starlette.datastructures import FormData

from podium.judging.entries import MOST_GRADES
from podium.studio.json_types import JsonObject
from podium.studio.judging.scales import COLOURS, MOST_QUESTIONS, scale_of
from podium.studio.messages import Message
from podium.studio.projects.changes import has_answers
from podium.studio.projects.display import FieldRole, display_of, document_fields
from podium.studio.web.access import RequiresManager
from podium.studio.web.actions import Routes, outcome_of, read
from podium.studio.web.pages import render_project
from podium.studio.web.routes.projects import change

routes = Routes(pages="/projects/{project}/settings/screen")

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


def display_fields(typed: Mapping[str, str]) -> list[JsonObject]:
    """The fields of a document that assessors see, in the order in which the form has them."""
    return [dict(row) for row in _rows(typed, ("field", "role", "label")) if row["role"]]


def _scale(typed: Mapping[str, str]) -> list[JsonObject]:
    """The grades, as the form has them."""
    rows = _rows(typed, ("name", "description", "colour"))
    return [dict(row) for row in rows if row["name"]]


def _questions(typed: Mapping[str, str]) -> list[JsonObject]:
    """The questions, as the form has them."""
    return [
        {
            "name": row["name"],
            "text": row["text"],
            "options": [line.strip() for line in row["options"].splitlines() if line.strip()],
            "required": bool(row["required"]),
        }
        for row in _rows(typed, ("name", "text", "options", "required"))
        if row["name"] or row["text"]
    ]


def _rows(typed: Mapping[str, str], names: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a form, in its order; the fields of a row have its number: ``name-3``."""
    numbered = (field.rpartition("-") for field in typed)
    numbers = dict.fromkeys(number for name, _, number in numbered if name in names)
    return [
        {name: typed.get(f"{name}-{number}", "").strip() for name in names}
        for number in list(numbers)[:_MOST_ROWS]
    ]


@routes.page("")
def screen(request: Request, who: RequiresManager) -> Response:
    """Show what the judging page shows and asks, or what was typed and refused."""
    project, outcome = who.project, outcome_of(request)
    typed = outcome.typed
    fields, fixed = read(
        request, lambda c: (document_fields(c, project.id), has_answers(c, project.id))
    )
    if "field-0" in typed:
        display = display_fields(typed)
    else:
        display = [each.model_dump(mode="json") for each in display_of(project.display)]
    if "colour-0" in typed:
        scale = _scale(typed)
    else:
        scale = [each.model_dump() for each in scale_of(project.scale)]
    questions = _questions(typed) if "text-0" in typed else project.questions
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
        "starting": not fixed and not project.archived,
        "saved": not outcome.problem and "saved" in request.query_params,
    }
    return render_project(request, who, "project_screen.html", values)


def _after(typed: Mapping[str, str], **_: object) -> str:
    return "/projects/{project}/settings" + ("" if "next" in typed else "/screen?saved=yes")


def _form(path: str, setting: str, parse: Callable[[Mapping[str, str]], list[JsonObject]]) -> None:
    """Declare one of the page's forms, which changes a setting of the project."""

    def values(form: FormData) -> JsonObject:
        typed = {name: value for name, value in form.items() if isinstance(value, str)}
        return {setting: parse(typed)}

    routes.action("PATCH", None, form=path, page=screen, to=_after, values=values)(change)


_form("/fields", "display", display_fields)
_form("/grades", "scale", _scale)
_form("/questions", "questions", _questions)

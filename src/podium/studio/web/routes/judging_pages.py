"""The page to judge on: one for each way of judging, over the same scripts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from podium.studio.errors import RefusedError, first_problem
from podium.studio.judging.scales import LONGEST_REPLY, AssessorQuestion, scale_of
from podium.studio.messages import Message
from podium.studio.projects.display import shown_document
from podium.studio.projects.guidelines import guidelines_html
from podium.studio.store.enums import Mode, Role
from podium.studio.store.rows import ProjectRow
from podium.studio.web.access import AnyMember
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.pages import render
from podium.studio.web.routes.judging import Number, ReleaseRequest, document_row, released
from podium.studio.web.routes.project_pages import render_project
from podium.studio.web.words import SKIP_REASONS

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Button:
    """Something to press, by pointer or by key.

    Attributes:
        name: The answer or the command.
        label: What the button says; a `Message` if it is not the project's own word.
        key: The key as browsers name it.
        key_label: The key as people read it.
        style: Its class.
        other_key: A second key, for where the first one scrolls.
        description: When to press it.
    """

    name: str
    label: str
    key: str
    key_label: str
    style: str = ""
    other_key: str = ""
    description: str = ""


_ANSWERS: dict[Mode, tuple[Button, ...]] = {
    Mode.PAIRS: (
        Button("left", Message("Left is better"), "ArrowLeft", "←", "prefer"),
        Button("tie", Message("Equally good"), "ArrowDown", "↓", other_key="0"),
        Button("right", Message("Right is better"), "ArrowRight", "→", "prefer"),
        Button("bad-left", Message("Left is bad"), "1", "1", "bad"),
        Button("bad-both", Message("Both are bad"), "2", "2", "bad"),
        Button("bad-right", Message("Right is bad"), "3", "3", "bad"),
    ),
    Mode.RANKINGS: (
        Button("left-much", Message("Left is much better"), "1", "1"),
        Button("left", Message("Left is better"), "2", "2"),
        Button("same", Message("About the same"), "3", "3"),
        Button("right", Message("Right is better"), "4", "4"),
        Button("right-much", Message("Right is much better"), "5", "5"),
    ),
}
"""To each way of judging its buttons, apart from grades; skipping has its own."""
_GRADES = {
    "bad": Message("Bad"),
    "fair": Message("Fair"),
    "good": Message("Good"),
    "excellent": Message("Excellent"),
    "perfect": Message("Perfect"),
}


def answer_buttons(project: ProjectRow) -> tuple[Button, ...]:
    """The buttons of a project: those of its mode, or one for each of its grades."""
    mode = Mode(project.mode)
    if mode is not Mode.GRADES:
        return _ANSWERS[mode]
    buttons = []
    for number, grade in enumerate(scale_of(project.scale), start=1):
        key = str(number % 10)  # the tenth is 0, as on the keyboard
        label = grade.name if project.scale else _GRADES[grade.name]
        style = f"colour-{grade.colour}" if grade.colour else ""
        buttons.append(Button(grade.name, label, key, key, style, description=grade.description))
    return tuple(buttons)


COMMANDS = (
    Button("undo", Message("Undo"), "u", "U"),
    Button("skip", Message("Skip"), "s", "S"),
    Button("comment", Message("Comment"), "c", "C"),
    Button("pause", Message("Pause"), "p", "P"),
    Button("guidelines", Message("Guidelines"), "g", "G"),
    Button("help", Message("Help"), "?", "?"),
)
SCROLLING = (
    Button("down", Message("Scroll documents down"), "j", "J"),
    Button("up", Message("Scroll documents up"), "k", "K"),
)
_SIDES = {
    Mode.PAIRS: (Message("Left"), Message("Right")),
    Mode.GRADES: (Message("Document"),),
    Mode.RANKINGS: (Message("Left"), Message("Right")),
}


@router.get("/projects/{project}/judge")
def judge(request: Request, who: AnyMember) -> HTMLResponse:
    """The page to judge on; its script asks for tasks."""
    mode = Mode(who.project.mode)
    return render(
        request,
        "judge.html",
        {
            "project": who.project,
            "mode": mode.value,
            "sides": _SIDES[mode],
            "answers": answer_buttons(who.project),
            "questions": [AssessorQuestion(**question) for question in who.project.questions],
            "longest_reply": LONGEST_REPLY,
            "commands": COMMANDS,
            "scrolling": SCROLLING,
            "reasons": SKIP_REASONS,
            "guidelines": guidelines_html(who.project.guidelines),
        },
        person=who.person,
    )


@router.get("/projects/{project}/queries/{query}/documents/{reference}")
def document(request: Request, who: AnyMember, query: Number, reference: int) -> Response:
    """A document by itself."""
    row = document_row(request, who, query, reference)
    shown = shown_document(who.project.display, row.content)
    if who.may(Role.MANAGER):
        shown = replace(
            shown, title=row.content.title or row.content.item, url=row.content.url,
            text=row.content.text, html=row.content.html,
        )  # fmt: skip
    frame = f"/api/v1/projects/{who.project.id}/queries/{query}/documents/{reference}"
    values = {
        "document": shown,
        "query_text": row.query_text,
        "extra": row.content.extra if who.may(Role.MANAGER) else {},
        "frame": f"{frame}/page" if shown.html else "",
        "image": f"{frame}/image",
    }
    return render_project(request, who, "document.html", values)


@router.post("/projects/{project}/judge/leave", dependencies=[Depends(read_csrf)])
def leave(request: Request, project: Number, form: FormValues) -> Response:
    """Give the page's task up: the browser sends this while the page goes away."""
    try:
        body = ReleaseRequest.model_validate(
            {name: form.get(name) for name in ReleaseRequest.model_fields}
        )
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error
    released(request, project, body)
    return Response(status_code=204)

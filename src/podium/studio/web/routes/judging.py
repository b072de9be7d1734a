"""Judging: the page, and what it and programs that judge ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection, select

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError, first_problem
from podium.studio.jobs.queue import UNDER_WAY
from podium.studio.judging.answer_choices import SKIP, choices
from podium.studio.judging.crowd_work import crowd_work
from podium.studio.judging.judged import load_judged_query
from podium.studio.judging.judgment_counts import user_judgments
from podium.studio.judging.modes import JudgingTask
from podium.studio.judging.next_task import NextTask
from podium.studio.judging.query_state import Document
from podium.studio.judging.scales import (
    LONGEST_GRADE,
    LONGEST_REPLY,
    MOST_QUESTIONS,
    AssessorQuestion,
    grade_names,
    scale_of,
)
from podium.studio.judging.service import Answer, AnswerResult, JudgingService
from podium.studio.judging.unit_of_work import RENEW_EVERY, LeasedTask, LeaseHolder, UnitOfWork
from podium.studio.messages import Message
from podium.studio.projects.changes import ProjectChange
from podium.studio.projects.display import FieldRole, shows
from podium.studio.store.database import storable
from podium.studio.store.enums import Mode
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_one
from podium.studio.store.tables import Job, ProjectQuery
from podium.studio.store.tokens import new_token
from podium.studio.transfer import imports
from podium.studio.web.access import Number, RequiresManager, RequiresMember, member_in
from podium.studio.web.actions import Form, Routes, form_values, read
from podium.studio.web.documents import guidelines_html
from podium.studio.web.languages import language_of
from podium.studio.web.middleware import FRAMED_POLICY
from podium.studio.web.pages import SKIP_REASONS, render
from podium.studio.web.routes.documents import DocumentOut, document_out, document_rows
from podium.studio.web.routes.screen import display_fields

routes = Routes("judging", api="/projects/{project}", pages="/projects/{project}")

Tab = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
QuestionName = Annotated[str, Field(max_length=40)]
Reply = Annotated[str, Field(max_length=LONGEST_REPLY), AfterValidator(storable)]


Surface = Literal["judging", "training", "adjudication", "preview"]
"""What the judging page is used for."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class _TabRequest(_Body):
    tab: Tab
    renews: bool = False
    """Whether this tab will renew the task every `renew_seconds`: then the lease is short, and
    ends soon after the last renewal. Without, the task is held for the project's `lease_seconds`.
    """

    def holder(self, user_id: int) -> LeaseHolder:
        """Whose tab it is."""
        return LeaseHolder(user_id, self.tab, self.renews)


Held = Annotated[list[UUID], Field(max_length=9)]


class NextRequest(_TabRequest):
    """Ask for a task, or for one to show after others."""

    after: Held = []
    """The tasks that this tab holds already, the one that it shows first: then another one is
    given, which the answers to these cannot change, or none if there is none (``wait``)."""


class AnswerRequest(_TabRequest):
    """Answer a task."""

    token: UUID
    choice: str = Field(max_length=LONGEST_GRADE)
    seconds: float = Field(ge=0, le=1e7)
    reason: Annotated[str, AfterValidator(storable)] | None = Field(default=None, max_length=2000)
    replies: dict[QuestionName, Reply] = Field(default={}, max_length=2 * MOST_QUESTIONS)
    """To the name of each of the task's questions the reply."""
    more: bool = True
    after: Held = []
    """The other tasks that this tab holds, as in a request for a task."""

    @property
    def content(self) -> Answer:
        """The answer itself."""
        return Answer(self.choice, self.seconds, self.reason, self.replies)


class UndoRequest(_TabRequest):
    """Take an answer back, by default the last."""

    token: UUID
    answer: UUID | None = None


class RenewalRequest(_TabRequest):
    """Keep a task: someone is still at it."""

    token: UUID
    after: Held = []
    """Tasks that were fetched to be shown after it, to be kept as well."""


class ReleaseRequest(_Body):
    """Give a task up unanswered."""

    token: UUID
    expires_at: float | None = None
    """When the task ends, as it was last returned: if it was asked for again since, it stays."""


class DocumentRef(BaseModel):
    """A document to show: `reference` identifies it, at random, and `format` is how to show it.

    Title and address are empty where the project hides them.
    """

    reference: int
    title: str
    url: str
    format: Literal["text", "html"]
    length: int


class Side(BaseModel):
    """One side of a task: a document, or the documents of a whole ranking."""

    documents: list[DocumentRef]


class TaskOut(BaseModel):
    """Something to judge. It does not say whether it is a check."""

    token: UUID
    mode: Mode
    query_id: int
    query: str
    description: str
    sides: list[Side]
    choices: list[str]
    questions: list[AssessorQuestion]
    """What is asked besides the verdict."""
    expires_at: float
    renew_seconds: float = RENEW_EVERY
    """How often to renew it, for tabs that do."""


class Progress(BaseModel):
    """How far one is, and the query is."""

    judged: int
    seconds: float
    query_judged: int
    query_left: float


class NextOut(BaseModel):
    """A task, or why there is none."""

    state: Literal["task", "wait", "paused", "yours-done", "done", "blocked", "training"]
    """``wait``: ask again after `wait_seconds`, for what others do may open something for you.
    ``blocked``: work is left that nobody can do; `problems` say why, and what would help.
    ``training``: the project's training comes first, or was failed.
    """
    wait_seconds: float = 0.0
    problems: list[str] = []
    task: TaskOut | None = None
    progress: Progress | None = None


class PreviewedTask(NextOut):
    """A task as people would see it, with its documents."""

    documents: list[DocumentOut] = []


class AnswerOut(BaseModel):
    """What became of an answer, and what comes next."""

    repeated: bool
    late: bool
    counts: bool
    finished: bool
    """Whether nothing is left to judge in its query since."""
    next: NextOut | None


class RenewalOut(BaseModel):
    """Until when a task is kept; null if it has gone to someone else, or was answered."""

    expires_at: float | None
    lost: list[UUID] = []
    """Those of the tasks to be shown after it that are not kept any more; the others are kept for
    as long as it is."""


class ReleaseOut(BaseModel):
    """Whether the task is free for others now: it was held until now, and not by another tab."""

    released: bool


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


@routes.page("/judge")
def judge_page(request: Request, who: RequiresMember) -> Response:
    """The page to judge on; its script asks for tasks."""
    return judging_surface(request, who, "judging")


@routes.page("/preview")
def preview_page(request: Request, who: RequiresManager) -> Response:
    """The page to judge on, with nothing recorded: for managers who choose what is shown.

    With ``embedded`` it is for a frame in another page of ours.
    """
    embedded = "embedded" in request.query_params
    response = judging_surface(request, who, "preview", embedded=embedded)
    if embedded:
        response.headers["Content-Security-Policy"] = FRAMED_POLICY
    return response


def judging_surface(
    request: Request, who: Member, kind: Surface, *, embedded: bool = False
) -> Response:
    """The one page on which documents are judged, for what it is used."""
    mode = Mode(who.project.mode)
    answers, questions = answer_buttons(who.project), who.project.questions
    commands: tuple[Button, ...] = COMMANDS
    if kind in ("training", "adjudication"):
        answers = tuple(each for each in answers if each.name in decision_choices(who.project))
        questions = []
    if kind != "judging":
        left_out = {"undo", "skip", "pause"} | ({"comment"} if kind != "adjudication" else set())
        commands = tuple(each for each in COMMANDS if each.name not in left_out)
    any_query = select(ProjectQuery.id).where(ProjectQuery.project_id == who.project.id).limit(1)
    any_import = (
        select(Job.id)
        .where(Job.project_id == who.project.id, Job.kind == imports.KIND, Job.state.in_(UNDER_WAY))
        .limit(1)
    )
    values = {
        "project": who.project,
        "kind": kind,
        "embedded": embedded,
        "mode": mode.value,
        "sides": _SIDES[mode],
        "answers": answers,
        "questions": [AssessorQuestion(**question) for question in questions],
        "longest_reply": LONGEST_REPLY,
        "commands": commands,
        "scrolling": SCROLLING,
        "reasons": SKIP_REASONS,
        "guidelines": guidelines_html(who.project.guidelines),
        "is_empty": read(request, lambda c: c.scalar(any_query)) is None,
        "importing": read(request, lambda c: c.scalar(any_import)) is not None,
        "crowd": read(request, lambda c: crowd_work(c, who.project, who.person.id)),
    }
    return render(request, "judge.html", values, person=who.person)


def decision_choices(project: ProjectRow) -> list[str]:
    """The answers to an example, or to a disagreement: documents cannot be marked as bad there."""
    possible = choices(Mode(project.mode), grade_names(project.scale))
    return [each for each in possible if each != SKIP and not each.startswith("bad-")]


@routes.action("GET", "/preview")
def preview(
    request: Request, who: RequiresManager, after: Annotated[int, Parameter(ge=0, lt=2**62)] = 0
) -> PreviewedTask:
    """A task as people see it, of the query that comes after another; nothing is recorded.

    With the parameters of the form in which fields are chosen (``field-0``, ``role-0``, …) it is
    as people would see it with these.
    """
    chosen = None
    try:
        if any(name.startswith("field-") for name in request.query_params):
            fields = ProjectChange.model_validate({"display": display_fields(request.query_params)})
            chosen = fields.model_dump(mode="json")["display"]
    except ValidationError as error:
        return PreviewedTask(state="blocked", problems=[first_problem(error)])
    previewed = who.project if chosen is None else who.project._replace(display=chosen)

    def work(connection: Connection) -> PreviewedTask:
        queries = select(ProjectQuery.__table__).where(
            ProjectQuery.project_id == who.project.id,
            ProjectQuery.withdrawn.is_(False),
            ProjectQuery.id > after,
        )
        query = fetch_one(connection, queries.order_by(ProjectQuery.id).limit(1), ProjectQueryRow)
        if query is None:
            return PreviewedTask(state="done")
        state = load_judged_query(connection, who.project, query).state
        if who.project.mode == Mode.RANKINGS:
            sides = state.documents_shown(JudgingTask(0, 1))
        else:
            hidden = state.withdrawn_documents
            shown = [each for each in enumerate(state.documents) if each[0] not in hidden]
            sides = [[each] for each in shown[: len(_SIDES[Mode(who.project.mode)])]]
        return PreviewedTask(
            state="task", task=_task_out(previewed, new_token(), query, sides, 0.0)
        )

    result = read(request, work)
    if result.task is not None:
        query = result.task.query_id
        references = [each.reference for side in result.task.sides for each in side.documents]
        rows = document_rows(request, who, query, references)
        result.documents = [
            document_out(request, who, query, rows[each], chosen) for each in references
        ]
    return result


def task_preview(
    who: Member, query: str, description: str, documents: list[DocumentOut]
) -> PreviewedTask:
    """A task of documents that are not imported yet, one on each side."""
    task = TaskOut(
        token=new_token(),
        mode=Mode(who.project.mode),
        query_id=0,
        query=query,
        description=description,
        sides=[
            Side(
                documents=[
                    DocumentRef(
                        reference=each.reference,
                        title=each.title,
                        url=each.url,
                        format=each.format,
                        length=len(each.text),
                    )
                ]
            )
            for each in documents
        ],
        choices=list(choices(Mode(who.project.mode), grade_names(who.project.scale))),
        questions=[AssessorQuestion(**question) for question in who.project.questions],
        expires_at=0.0,
    )
    return PreviewedTask(state="task", task=task, documents=documents)


def _service(request: Request) -> JudgingService:
    service: JudgingService = request.app.state.service
    return service


# The three that people wait for look up who asks in the transaction that does the work: apart, the
# way to another thread and another connection would take longer than the lookup.


@routes.action("POST", "/next", response_model=NextOut)
def next_task(request: Request, project: Number, body: NextRequest) -> Response:
    """A task for a browser tab: the one that it holds, or a new one."""
    service = _service(request)

    def work(unit: UnitOfWork) -> NextOut:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, body.holder(who.person.id))
        return _next_out(unit.connection, request, who, assessor.next(body.after))

    return _json(service.transact(work))


@routes.action("POST", "/answers", response_model=AnswerOut)
def answer(request: Request, project: Number, answer_request: AnswerRequest) -> Response:
    """Answer a task. The same answer sent again is one answer, and not an error."""
    service = _service(request)

    def work(unit: UnitOfWork) -> tuple[str, AnswerResult, NextOut | None]:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, answer_request.holder(who.person.id))
        result = assessor.answer(answer_request.token, answer_request.content)
        outcome = assessor.following(answer_request.after) if answer_request.more else None
        next_out = None if outcome is None else _next_out(unit.connection, request, who, outcome)
        return who.project.mode, result, next_out

    mode, result, next_out = service.transact(work)
    request.app.state.metrics.judged(mode, repeated=result.repeated, late=result.late)
    return _json(
        AnswerOut(
            repeated=result.repeated,
            late=result.late,
            counts=result.counts,
            finished=result.finished,
            next=next_out,
        )
    )


@routes.action("POST", "/undo", response_model=NextOut)
def undo(request: Request, project: Number, body: UndoRequest) -> Response:
    """Take back an answer; the same is asked again, if it can be."""
    service = _service(request)

    def work(unit: UnitOfWork) -> NextOut:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, body.holder(who.person.id))
        outcome = assessor.undo(body.token, body.answer)
        return _next_out(unit.connection, request, who, outcome)

    return _json(service.transact(work))


@routes.action("POST", "/renew", response_model=RenewalOut)
def renew(request: Request, project: Number, body: RenewalRequest) -> Response:
    """Keep a task for a while, because someone is at it."""
    service = _service(request)

    def work(unit: UnitOfWork) -> RenewalOut:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, body.holder(who.person.id))
        renewed = assessor.renew((body.token, *body.after))
        lost = [token for token in body.after if renewed[token] is None]
        return RenewalOut(expires_at=renewed[body.token], lost=lost)

    return _json(service.transact(work))


@routes.action("POST", "/release", response_model=ReleaseOut)
def release(request: Request, project: Number, body: ReleaseRequest) -> Response:
    """Give a task up unanswered, so that others need not wait for it."""
    service = _service(request)

    def work(unit: UnitOfWork) -> bool:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, LeaseHolder(who.person.id))
        return assessor.release(body.token, body.expires_at)

    return _json(ReleaseOut(released=service.transact(work)))


@routes.pages.post("/judge/leave")
def leave(request: Request, project: Number, form: Form) -> Response:
    """Give the page's task up: the browser sends this while the page goes away."""
    try:
        body = ReleaseRequest.model_validate(form_values(ReleaseRequest, form))
    except ValidationError as error:
        raise RefusedError(422, first_problem(error)) from error
    release(request, project, body)
    return Response(status_code=204)


def _next_out(connection: Connection, request: Request, who: Member, outcome: NextTask) -> NextOut:
    if not isinstance(outcome, LeasedTask):
        translate = language_of(request).translate
        return NextOut(
            state=outcome.why,
            wait_seconds=outcome.seconds,
            problems=[translate(problem) for problem in outcome.problems],
        )
    judged, seconds = user_judgments(connection, who.project.id, who.person.id)
    task = _task_out(who.project, outcome.token, outcome.query, outcome.sides, outcome.expires_at)
    return NextOut(
        state="task",
        task=task,
        progress=Progress(
            judged=judged,
            seconds=seconds,
            query_judged=outcome.judged,
            query_left=outcome.left,
        ),
    )


def _task_out(
    project: ProjectRow,
    token: UUID,
    query: ProjectQueryRow,
    sides: list[list[tuple[int, Document]]],
    expires_at: float,
) -> TaskOut:
    mode = Mode(project.mode)
    return TaskOut(
        token=token,
        mode=mode,
        query_id=query.id,
        query=query.text,
        description=query.description,
        sides=[side_of(project, side) for side in sides],
        choices=list(choices(mode, grade_names(project.scale))),
        questions=[AssessorQuestion(**question) for question in project.questions],
        expires_at=expires_at,
    )


def side_of(project: ProjectRow, documents: list[tuple[int, Document]]) -> Side:
    """One side of a task, as pages show it."""
    return Side(documents=[_ref(project, document) for _, document in documents])


def _ref(project: ProjectRow, document: Document) -> DocumentRef:
    """What a page knows of a document before it loads it: nothing that the project hides."""
    display = project.display
    body = shows(display, "text", FieldRole.TEXT)
    markup = document.markup if body else 0
    return DocumentRef(
        reference=document.reference,
        title=document.title if shows(display, "title", FieldRole.TITLE) else "",
        url=document.url if shows(display, "url", FieldRole.LINK) else "",
        format="html" if markup else "text",
        length=markup or (document.length if body else 0),
    )


def _json(model: BaseModel) -> Response:
    """A response at once: FastAPI would check once more what is checked already."""
    return Response(model.model_dump_json(), media_type="application/json")

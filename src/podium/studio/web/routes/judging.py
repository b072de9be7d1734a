"""What the judging screens and programs that judge ask for."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Path, Request
from fastapi import Query as Parameter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.judging.answer_choices import choices
from podium.studio.judging.judgment_counts import user_judgments
from podium.studio.judging.leases import RENEW_EVERY, LeaseHolder
from podium.studio.judging.next_task import NextTask
from podium.studio.judging.query_state import Document
from podium.studio.judging.scales import (
    LONGEST_GRADE,
    LONGEST_REPLY,
    MOST_QUESTIONS,
    AssessorQuestion,
    grade_names,
)
from podium.studio.judging.service import Answer, AnswerResult, JudgingService
from podium.studio.judging.unit_of_work import LeasedTask, UnitOfWork
from podium.studio.projects.display import DocumentContent, FieldRole, shown_document, shows
from podium.studio.store.database import reading
from podium.studio.store.enums import Mode, Role
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import ProjectQuery, QueryCandidate
from podium.studio.store.text import storable
from podium.studio.transfer.images import ImageStore
from podium.studio.web.access import AnyMember, member, member_in
from podium.studio.web.documents import document_page, terms_in
from podium.studio.web.languages import language_of

router = APIRouter(prefix="/api/v1/projects/{project}", tags=["judging"])

Tab = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Number = Annotated[int, Path(ge=1, lt=2**62)]
QuestionName = Annotated[str, Field(max_length=40)]
Reply = Annotated[str, Field(max_length=LONGEST_REPLY), AfterValidator(storable)]
_MOST_DOCUMENTS = 100
"""How many documents are asked for at once."""


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
    """When the task ends, as it was told last: if it was asked for again since, it stays."""


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
    """Something to judge. Whether it is a check is not told."""

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
    ``blocked``: work is left that nobody can do; `problems` tell why, and what would help.
    ``training``: the project's training comes first, or was failed.
    """
    wait_seconds: float = 0.0
    problems: list[str] = []
    task: TaskOut | None = None
    progress: Progress | None = None


class AnswerOut(BaseModel):
    """What became of an answer, and what comes next."""

    repeated: bool
    late: bool
    counts: bool
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


class FieldOut(BaseModel):
    """A field of a document, and how to show it."""

    role: FieldRole
    label: str
    text: str
    image: str | None = None
    """Where this server has the picture, if the field is one."""


class DocumentOut(BaseModel):
    """A document as the project shows it, with the words to highlight; what it hides is empty."""

    reference: int
    title: str
    url: str
    text: str
    format: Literal["text", "html"]
    """Whether the text is shown, or the document's page of HTML."""
    fields: list[FieldOut]
    """What is shown besides, in order."""
    terms: list[str]
    """The words in it that are forms of the query's words."""


def _service(request: Request) -> JudgingService:
    service: JudgingService = request.app.state.service
    return service


# The three that people wait for look up who asks in the transaction that does the work: apart, the
# way to another thread and another connection would take longer than the lookup.


@router.post("/next", response_model=NextOut)
def next_task(request: Request, project: Number, body: NextRequest) -> Response:
    """A task for a browser tab: the one that it holds, or a new one."""
    service = _service(request)

    def work(unit: UnitOfWork) -> NextOut:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, body.holder(who.person.id))
        return _next_out(unit.connection, request, who, assessor.next(body.after))

    return _json(service.transact(work))


@router.post("/answers", response_model=AnswerOut)
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
        AnswerOut(repeated=result.repeated, late=result.late, counts=result.counts, next=next_out)
    )


@router.post("/undo", response_model=NextOut)
def undo(request: Request, project: Number, body: UndoRequest) -> Response:
    """Take back an answer; the same is asked again, if it can be."""
    service = _service(request)

    def work(unit: UnitOfWork) -> NextOut:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, body.holder(who.person.id))
        outcome = assessor.undo(body.token, body.answer)
        return _next_out(unit.connection, request, who, outcome)

    return _json(service.transact(work))


@router.post("/renew", response_model=RenewalOut)
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


@router.post("/release", response_model=ReleaseOut)
def release(request: Request, project: Number, body: ReleaseRequest) -> Response:
    """Give a task up unanswered, so that others need not wait for it."""
    return _json(ReleaseOut(released=released(request, project, body)))


def released(request: Request, project: int, body: ReleaseRequest) -> bool:
    """Give a task up; returns whether it is free for others now."""
    service = _service(request)

    def work(unit: UnitOfWork) -> bool:
        who = member_in(unit.connection, request, project)
        assessor = service.assessor(unit, who.project, LeaseHolder(who.person.id))
        return assessor.release(body.token, body.expires_at)

    return service.transact(work)


@router.get("/queries/{query}/documents", operation_id="list_documents")
def documents(
    request: Request,
    who: AnyMember,
    query: Number,
    reference: Annotated[list[int], Parameter(max_length=_MOST_DOCUMENTS)],
    text: Annotated[bool, Parameter(description="Whether their texts are needed.")] = True,
) -> list[DocumentOut]:
    """Some documents of a query, by their `reference`, as the project shows them."""
    rows = document_rows(request, who, query, reference)
    if not rows:
        raise RefusedError(404, "The documents do not exist.")
    shown = [document_out(request, who, query, rows[each]) for each in reference if each in rows]
    return shown if text else [each.model_copy(update={"text": ""}) for each in shown]


@router.get("/queries/{query}/documents/{reference}")
def document(request: Request, who: AnyMember, query: Number, reference: int) -> DocumentOut:
    """A document as the project shows it."""
    return document_out(request, who, query, document_row(request, who, query, reference))


@router.get("/queries/{query}/documents/{reference}/page", response_class=HTMLResponse)
def document_html(request: Request, who: AnyMember, query: Number, reference: int) -> HTMLResponse:
    """A document's HTML, sanitised, with the query's words marked; scripts run nowhere in it."""
    row = document_row(request, who, query, reference)
    shown = shown_document(who.project.display, row.content)
    # Managers see on other pages what assessors do not.
    markup = row.content.html if who.may(Role.MANAGER) else shown.html
    title = row.content.title if who.may(Role.MANAGER) else shown.title
    return document_page(title, markup, terms_in(row.query_text, markup))


@router.get("/queries/{query}/documents/{reference}/image", response_class=Response)
async def document_image(
    request: Request, query: Number, reference: int, project: Number
) -> Response:
    """The picture of a document, from this server: browsers call no other."""
    url = await run_in_threadpool(_image_url, request, project, query, reference)
    images: ImageStore = request.app.state.images
    # In threads of their own: a slow host keeps nobody from judging.
    picture = await anyio.to_thread.run_sync(
        images.picture, url, limiter=request.app.state.fetching_images
    )
    headers = {
        "Cache-Control": "private, max-age=86400",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(picture.content, media_type=picture.media_type, headers=headers)


def _image_url(request: Request, project: int, query: int, reference: int) -> str:
    who = member(request, project)
    row = document_row(request, who, query, reference)
    for field in shown_document(who.project.display, row.content).fields:
        if field.role is FieldRole.IMAGE:
            return field.text
    raise RefusedError(404, "The document has no picture.")


class DocumentRow(NamedTuple):
    """A document with the text of its query."""

    reference: int
    content: DocumentContent
    query_text: str


def document_row(request: Request, who: Member, query: int, reference: int) -> DocumentRow:
    """A document of the project, by the number that names it to browsers."""
    row = document_rows(request, who, query, [reference]).get(reference)
    if row is None:
        raise RefusedError(404, "The document does not exist.")
    return row


def document_rows(
    request: Request, who: Member, query: int, references: list[int]
) -> dict[int, DocumentRow]:
    """Documents of the project, by the numbers that name them to browsers."""
    statement = (
        select(
            QueryCandidate.reference,
            ProjectQuery.text,
            QueryCandidate.item,
            QueryCandidate.title,
            QueryCandidate.url,
            QueryCandidate.text,
            QueryCandidate.html,
            QueryCandidate.extra,
        )
        .join(ProjectQuery, ProjectQuery.id == QueryCandidate.query_id)
        .where(
            ProjectQuery.project_id == who.project.id,
            QueryCandidate.query_id == query,
            QueryCandidate.reference.in_([each for each in references if 0 <= each < 2**31]),
        )
    )
    rows = reading(request.app.state.engine, lambda c: c.execute(statement).all())
    return {
        reference: DocumentRow(
            reference, DocumentContent(item, title, url, text, html, extra), query_text
        )
        for reference, query_text, item, title, url, text, html, extra in rows
    }


def document_out(request: Request, who: Member, query: int, row: DocumentRow) -> DocumentOut:
    """A document as the project shows it."""
    shown = shown_document(who.project.display, row.content)
    images: ImageStore = request.app.state.images
    path = f"/api/v1/projects/{who.project.id}/queries/{query}/documents/{row.reference}/image"
    texts = [field.text for field in shown.fields if field.role is not FieldRole.IMAGE]
    return DocumentOut(
        reference=row.reference,
        title=shown.title,
        url=shown.url,
        text=shown.text,
        format="html" if shown.html else "text",
        fields=[
            FieldOut(
                role=field.role,
                label=field.label,
                text=field.text if field.role is not FieldRole.IMAGE else "",
                image=path if field.role is FieldRole.IMAGE else None,
            )
            for field in shown.fields
            if field.role is not FieldRole.IMAGE or images.allows(field.text)
        ],
        terms=terms_in(row.query_text, shown.title, shown.text, *texts),
    )


def _next_out(connection: Connection, request: Request, who: Member, outcome: NextTask) -> NextOut:
    if not isinstance(outcome, LeasedTask):
        translate = language_of(request).translate
        return NextOut(
            state=outcome.why,
            wait_seconds=outcome.seconds,
            problems=[translate(problem) for problem in outcome.problems],
        )
    judged, seconds = user_judgments(connection, who.project.id, who.person.id)
    query, mode = outcome.query, Mode(who.project.mode)
    return NextOut(
        state="task",
        task=TaskOut(
            token=outcome.token,
            mode=mode,
            query_id=query.id,
            query=query.text,
            description=query.description,
            sides=[side_of(who.project, side) for side in outcome.sides],
            choices=list(choices(mode, grade_names(who.project.scale))),
            questions=[AssessorQuestion(**question) for question in who.project.questions],
            expires_at=outcome.expires_at,
        ),
        progress=Progress(
            judged=judged,
            seconds=seconds,
            query_judged=outcome.judged,
            query_left=outcome.left,
        ),
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
        title=(document.title or document.item) if shows(display, "title", FieldRole.TITLE) else "",
        url=document.url if shows(display, "url", FieldRole.LINK) else "",
        format="html" if markup else "text",
        length=markup or (document.length if body else 0),
    )


def _json(model: BaseModel) -> Response:
    """A response at once: FastAPI would check once more what is checked already."""
    return Response(model.model_dump_json(), media_type="application/json")

"""What the judging screens and programs that judge ask for."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.judging.answer_choices import CHOICES
from podium.studio.judging.judgment_counts import user_judgments
from podium.studio.judging.leases import RENEW_EVERY, LeaseHolder
from podium.studio.judging.next_task import LeasedTask, NextTask, UsedStates
from podium.studio.judging.query_state import Document
from podium.studio.judging.service import AnswerResult, JudgingService
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode
from podium.studio.store.rows import fetch_one
from podium.studio.store.tables import ProjectQuery, QueryCandidate
from podium.studio.store.text import storable
from podium.studio.web.access import AnyMember, member_in
from podium.studio.web.documents import document_page, terms_of

router = APIRouter(prefix="/api/v1/projects/{project}", tags=["judging"])

Tab = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Number = Annotated[int, Path(ge=1, lt=2**62)]


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


class NextRequest(_TabRequest):
    """Ask for a task."""


class AnswerRequest(_TabRequest):
    """Answer a task."""

    token: UUID
    choice: str = Field(max_length=20)
    seconds: float = Field(ge=0, le=1e7)
    reason: Annotated[str, AfterValidator(storable)] | None = Field(default=None, max_length=2000)
    more: bool = True


class UndoRequest(_TabRequest):
    """Take an answer back, by default the last."""

    token: UUID
    answer: UUID | None = None


class RenewalRequest(_TabRequest):
    """Keep a task: someone is still at it."""

    token: UUID


class ReleaseRequest(_Body):
    """Give a task up unanswered."""

    token: UUID
    expires_at: float | None = None
    """When the task ends, as it was told last: if it was asked for again since, it stays."""


class DocumentRef(BaseModel):
    """A document to show: `place` names it, at random, and its format tells how to show it."""

    place: int
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


class ReleaseOut(BaseModel):
    """Whether the task is free for others now: it was held until now, and not by another tab."""

    released: bool


class DocumentOut(BaseModel):
    """A document's text, with the words of the query to highlight."""

    title: str
    url: str
    text: str
    terms: list[str]


def _service(request: Request) -> JudgingService:
    service: JudgingService = request.app.state.service
    return service


# The three that people wait for look up who asks in the transaction that does the work: apart, the
# way to another thread and another connection would take longer than the lookup.


@router.post("/next", response_model=NextOut)
def next_task(request: Request, project: Number, body: NextRequest) -> Response:
    """A task for a browser tab: the one that it holds, or a new one."""
    service = _service(request)

    def work(connection: Connection) -> tuple[NextOut, UsedStates]:
        who = member_in(connection, request, project)
        outcome, states = service.next_in(connection, who.project, body.holder(who.person.id))
        return _next_out(connection, who, outcome), states

    return _json(service.transact(work))


@router.post("/answers", response_model=AnswerOut)
def answer(request: Request, project: Number, answer_request: AnswerRequest) -> Response:
    """Answer a task. The same answer sent again is one answer, and not an error."""
    service = _service(request)

    def work(connection: Connection) -> tuple[tuple[str, AnswerResult, NextOut | None], UsedStates]:
        who = member_in(connection, request, project)
        (result, outcome), states = service.answer_in(
            connection,
            who.project,
            answer_request.holder(who.person.id),
            answer_request.token,
            answer_request.choice,
            seconds=answer_request.seconds,
            reason=answer_request.reason,
            more=answer_request.more,
        )
        next_out = None if outcome is None else _next_out(connection, who, outcome)
        return (who.project.mode, result, next_out), states

    mode, result, next_out = service.transact(work)
    request.app.state.metrics.judged(mode, repeated=result.repeated, late=result.late)
    return _json(
        AnswerOut(repeated=result.repeated, late=result.late, counts=result.counts, next=next_out)
    )


@router.post("/undo", response_model=NextOut)
def undo(request: Request, project: Number, body: UndoRequest) -> Response:
    """Take back an answer; the same is asked again, if it can be."""
    service = _service(request)

    def work(connection: Connection) -> tuple[NextOut, UsedStates]:
        who = member_in(connection, request, project)
        outcome, states = service.undo_in(
            connection, who.project, body.holder(who.person.id), body.token, body.answer
        )
        return _next_out(connection, who, outcome), states

    return _json(service.transact(work))


@router.post("/renew", response_model=RenewalOut)
def renew(request: Request, project: Number, body: RenewalRequest) -> Response:
    """Keep a task for a while, because someone is at it."""
    service = _service(request)

    def work(connection: Connection) -> RenewalOut:
        who = member_in(connection, request, project)
        holder = body.holder(who.person.id)
        until = service.renew_in(connection, who.project, holder, body.token)
        return RenewalOut(expires_at=until)

    return _json(in_transaction(request.app.state.engine, work))


@router.post("/release", response_model=ReleaseOut)
def release(request: Request, project: Number, body: ReleaseRequest) -> Response:
    """Give a task up unanswered, so that others need not wait for it."""
    return _json(ReleaseOut(released=released(request, project, body)))


def released(request: Request, project: int, body: ReleaseRequest) -> bool:
    """Give a task up; returns whether it is free for others now."""
    service = _service(request)

    def work(connection: Connection) -> tuple[bool, UsedStates]:
        who = member_in(connection, request, project)
        return service.release_in(
            connection, who.project, who.person.id, body.token, body.expires_at
        )

    return service.transact(work)


@router.get("/queries/{query}/documents/{place}")
def document(request: Request, who: AnyMember, query: Number, place: int) -> DocumentOut:
    """A document's text."""
    row = document_row(request, who, query, place)
    return DocumentOut(title=row.title, url=row.url, text=row.text, terms=terms_of(row.query_text))


@router.get("/queries/{query}/documents/{place}/page", response_class=HTMLResponse)
def document_html(request: Request, who: AnyMember, query: Number, place: int) -> HTMLResponse:
    """A document's HTML, sanitised, with the query's words marked; scripts run nowhere in it."""
    row = document_row(request, who, query, place)
    return document_page(row.title, row.html, terms_of(row.query_text))


class DocumentRow(NamedTuple):
    """A document with the text of its query."""

    title: str
    url: str
    text: str
    html: str
    query_text: str


def document_row(request: Request, who: Member, query: int, place: int) -> DocumentRow:
    """A document of the project, by the number that names it to browsers."""
    statement = (
        select(
            QueryCandidate.title,
            QueryCandidate.url,
            QueryCandidate.text,
            QueryCandidate.html,
            ProjectQuery.text,
        )
        .join(ProjectQuery, ProjectQuery.id == QueryCandidate.query_id)
        .where(
            ProjectQuery.project_id == who.project.id,
            QueryCandidate.query_id == query,
            QueryCandidate.reference == place,
        )
    )
    row = None
    if 0 <= place < 2**31:
        row = reading(request.app.state.engine, lambda c: fetch_one(c, statement, DocumentRow))
    if row is None:
        raise RefusedError(404, "The document does not exist.")
    return row


def _next_out(connection: Connection, who: Member, outcome: NextTask) -> NextOut:
    if not isinstance(outcome, LeasedTask):
        return NextOut(
            state=outcome.why,
            wait_seconds=outcome.seconds,
            problems=list(outcome.problems),
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
            sides=[side_of(side) for side in outcome.sides],
            choices=list(CHOICES[mode]),
            expires_at=outcome.expires_at,
        ),
        progress=Progress(
            judged=judged,
            seconds=seconds,
            query_judged=outcome.judged,
            query_left=outcome.left,
        ),
    )


def side_of(documents: list[tuple[int, Document]]) -> Side:
    """One side of a task, as pages show it."""
    return Side(documents=[_ref(document) for _, document in documents])


def _ref(document: Document) -> DocumentRef:
    return DocumentRef(
        place=document.reference,
        title=document.title or document.item,
        url=document.url,
        format="html" if document.markup else "text",
        length=document.markup or document.length,
    )


def _json(model: BaseModel) -> Response:
    """A response at once: FastAPI would check once more what is checked already."""
    return Response(model.model_dump_json(), media_type="application/json")

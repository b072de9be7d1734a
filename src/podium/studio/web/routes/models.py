"""Language models that judge: add one, run it, stop it, audit it."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel
from sqlalchemy import Connection
from starlette.datastructures import FormData

from podium.judging.auditing.report import FIGURE_MEANINGS
from podium.studio.accounts.identity import record
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import State, cancel
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.models import assessors, audits
from podium.studio.models.assessors import endpoint_choices
from podium.studio.projects.display import FieldRole, display_of
from podium.studio.store.enums import Mode
from podium.studio.store.rows import JobRow
from podium.studio.web.access import Number, RequiresManager, wake_workers
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.pages import render_project

routes = Routes(
    "language models", api="/projects/{project}/models", pages="/projects/{project}/models"
)

_LONGEST_FILE = 2**20
_TO_MODEL = "/projects/{project}/models/{model}"


class RunOut(BaseModel):
    """A run of a model."""

    state: State
    progress: float
    result: JsonObject
    error: str | None
    created_at: float


class ModelOut(BaseModel):
    """A model assessor: what it is asked, what it may spend, what it has spent."""

    id: int
    user_id: int
    """Its account, by which the log and exports name it."""
    endpoint: str
    """Empty if its labels are those of a file."""
    model: str
    rubric: str
    """The rubric's name and version."""
    rubric_hash: str
    scope: str
    repeats: int
    max_requests: int | None
    max_tokens: int | None
    max_money: float | None
    answers: int
    unusable: int
    """Answers without a label."""
    requests: int
    tokens: int
    money: float
    run: RunOut | None
    """The last run."""


class ModelsOut(BaseModel):
    """The model assessors of a project, and the endpoints that may be called."""

    endpoints: list[str]
    models: list[ModelOut]


class ModelAuditOut(BaseModel):
    """The last audit of a model: figures with the ends of their intervals, and a plain answer."""

    made_at: float | None
    content: JsonObject


@routes.page("")
def models_page(request: Request, who: RequiresManager) -> Response:
    """All models of the project, and a form that adds one."""
    listed = list_models(request, who)
    values = {
        "models": listed.models,
        "endpoints": listed.endpoints,
        "rankings": who.project.mode == Mode.RANKINGS,
    }
    return render_project(request, who, "models.html", values)


@routes.page("/{model}")
def model_page(request: Request, who: RequiresManager, model: Number) -> Response:
    """One model: its run, what it cost, and its audit."""
    row = read(request, lambda c: assessors.model_row(c, who.project.id, model))
    shown_fields = display_of(who.project.display)
    values = {
        "shown": get_model(request, who, model),
        "row": row,
        "sent": [
            # A price's label is its currency.
            (each.label if each.role is not FieldRole.PRICE else "") or each.field
            for each in shown_fields
            if each.role is not FieldRole.IMAGE
        ],
    }
    return render_project(request, who, "model.html", values)


@routes.page("/{model}/status")
def status_fragment(request: Request, who: RequiresManager, model: Number) -> Response:
    """What changes on a model's page while it judges."""
    values = {"shown": get_model(request, who, model)}
    return render_project(request, who, "model_status.html", values)


@routes.page("/{model}/audit")
def audit_page(request: Request, who: RequiresManager, model: Number) -> Response:
    """The last audit of a model."""
    audit = get_model_audit(request, who, model)
    conclusion = audit.content.get("conclusion", {})
    values = {
        "shown": get_model(request, who, model),
        "audit": audit,
        "sentence": Message(conclusion.get("sentence", "")),
        "uses": [Message(each) for each in conclusion.get("uses", [])],
        "busy": read(request, lambda c: audits.is_being_audited(c, who.project.id, model)),
        "meanings": FIGURE_MEANINGS,
    }
    return render_project(request, who, "model_audit.html", values)


@routes.action("GET", "")
def list_models(request: Request, who: RequiresManager) -> ModelsOut:
    """The language models that judge in the project."""

    def work(connection: Connection) -> list[ModelOut]:
        return [_out(connection, row) for row in assessors.models_of(connection, who.project.id)]

    endpoints = endpoint_choices(request.app.state.settings.models)
    return ModelsOut(endpoints=endpoints, models=read(request, work))


def _filled(form: FormData) -> JsonObject:
    """What was filled in: the rest has its default."""
    return {
        name: value
        for name, value in form.items()
        if name != "csrf" and isinstance(value, str) and value.strip()
    }


def _with_rubric(form: FormData) -> JsonObject:
    text = _text_of(form, "rubric_file")
    return _filled(form) | ({"rubric": text} if text else {})


def _with_labels(form: FormData) -> JsonObject:
    files = [_text_of(form, name) for name in ("labels_file", "undecided_file")]
    return _filled(form) | {"labels": "\n".join(files)}


def _text_of(form: FormData, name: str) -> str:
    """The text of a file of a form; empty if none was chosen."""
    file = form.get(name)
    if file is None or isinstance(file, str) or not file.filename:
        return ""
    content = file.file.read(_LONGEST_FILE + 1)
    if len(content) > _LONGEST_FILE:
        raise RefusedError(413, "The file is too large: give at most 1 MiB.")
    try:
        return content.decode()
    except UnicodeError as error:
        raise RefusedError(422, "The file is not UTF-8 text.") from error


@routes.action(
    "POST",
    "",
    form="",
    page=models_page,
    to="/projects/{project}/models/{result.id}",
    values=_with_rubric,
    uploads=True,
    status_code=201,
)
def add_model(request: Request, who: RequiresManager, body: assessors.ModelSettings) -> ModelOut:
    """Add a language model as an assessor; it judges nothing before it is started."""
    settings = request.app.state.settings
    return write(request, lambda c: _out(c, assessors.add_model(c, who, settings, body)))


@routes.action(
    "POST",
    "/labels",
    form="/labels",
    page=models_page,
    to="/projects/{project}/models/{result.id}",
    values=_with_labels,
    uploads=True,
    status_code=201,
)
def add_labels(request: Request, who: RequiresManager, body: assessors.LabelSettings) -> ModelOut:
    """Add labels, such as those of clicks, as an assessor; it judges at once, in the background."""
    settings = request.app.state.settings

    def work(connection: Connection) -> ModelOut:
        row = assessors.add_labels(connection, who, body)
        assessors.start_run(connection, who, settings, row.id)
        return _out(connection, row)

    added = write(request, work)
    wake_workers(request)
    return added


@routes.action("GET", "/{model}")
def get_model(request: Request, who: RequiresManager, model: Number) -> ModelOut:
    """A model assessor, and how far its last run is."""
    return read(request, lambda c: _out(c, assessors.model_row(c, who.project.id, model)))


@routes.action(
    "PUT", "/{model}/budget", form="/{model}/budget", page=model_page, to=_TO_MODEL, values=_filled
)
def change_model_budget(
    request: Request, who: RequiresManager, model: Number, body: assessors.ModelBudget
) -> ModelOut:
    """Give a model another budget, also for a run under way."""
    return write(request, lambda c: _out(c, assessors.change_budget(c, who, model, body)))


@routes.action(
    "POST", "/{model}/run", form="/{model}/run", page=model_page, to=_TO_MODEL, status_code=202
)
def run_model(request: Request, who: RequiresManager, model: Number) -> ModelOut:
    """Let a model judge what it has not judged yet, in the background."""

    def work(connection: Connection) -> ModelOut:
        assessors.start_run(connection, who, request.app.state.settings, model)
        return _out(connection, assessors.model_row(connection, who.project.id, model))

    started = write(request, work)
    wake_workers(request)
    return started


@routes.action("POST", "/{model}/stop", form="/{model}/stop", page=model_page, to=_TO_MODEL)
def stop_model(request: Request, who: RequiresManager, model: Number) -> ModelOut:
    """Stop a model that is judging; what it has judged stays."""

    def work(connection: Connection) -> ModelOut:
        row = assessors.model_row(connection, who.project.id, model)
        run = assessors.last_run(connection, row)
        if run is None:
            raise RefusedError(409, "The model has not been started.")
        cancel(connection, run)
        record(connection, who.person.id, who.project.id, "stopped a model", model=row.model)
        return _out(connection, row)

    return write(request, work)


@routes.action(
    "POST",
    "/{model}/audit",
    form="/{model}/audit",
    to=_TO_MODEL + "/audit",
    status_code=202,
)
def request_model_audit(request: Request, who: RequiresManager, model: Number) -> ModelAuditOut:
    """Hold a model's judgments against people's, in the background; returns the last audit."""
    write(request, lambda c: audits.request_audit(c, who, model))
    wake_workers(request)
    return get_model_audit(request, who, model)


@routes.action("GET", "/{model}/audit")
def get_model_audit(request: Request, who: RequiresManager, model: Number) -> ModelAuditOut:
    """The last audit of a model; `made_at` is null if there is none."""

    def work(connection: Connection) -> ModelAuditOut:
        report = audits.audit_of(connection, assessors.model_row(connection, who.project.id, model))
        if report is None:
            return ModelAuditOut(made_at=None, content={})
        return ModelAuditOut(made_at=report.made_at, content=report.content)

    return read(request, work)


def _out(connection: Connection, row: assessors.ModelRow) -> ModelOut:
    spent = assessors.spending_of(connection, row)
    run = assessors.last_run(connection, row)
    return ModelOut(
        id=row.id,
        user_id=row.user_id,
        endpoint=row.endpoint,
        model=row.model,
        rubric=row.rubric_name,
        rubric_hash=row.rubric_hash,
        scope=row.scope,
        repeats=row.repeats,
        max_requests=row.max_requests,
        max_tokens=row.max_tokens,
        max_money=row.max_money,
        answers=spent.answers,
        unusable=spent.unusable,
        requests=spent.requests,
        tokens=spent.prompt_tokens + spent.answer_tokens,
        money=spent.money,
        run=None if run is None else _run_out(run),
    )


def _run_out(run: JobRow) -> RunOut:
    return RunOut(
        state=State(run.state),
        progress=run.progress,
        result=run.result,
        error=run.error,
        created_at=run.created_at,
    )

"""API routes for language models that judge: add one, run it, stop it, audit it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from podium.studio.accounts.audit import record
from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError
from podium.studio.jobs.queue import State, cancel
from podium.studio.json_types import JsonObject
from podium.studio.models import assessors, audits
from podium.studio.models.endpoints import endpoint_choices
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.rows import JobRow
from podium.studio.web.access import AManager, wake_workers
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1/projects/{project}/models", tags=["language models"])


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


@router.get("", operation_id="list_models")
def list_models(request: Request, who: AManager) -> ModelsOut:
    """The language models that judge in the project."""
    return ModelsOut(
        endpoints=endpoint_choices(request.app.state.settings.models),
        models=reading(request.app.state.engine, lambda c: models_out(c, who)),
    )


@router.post("", status_code=201, operation_id="add_model")
def add_model(request: Request, who: AManager, body: assessors.ModelSettings) -> ModelOut:
    """Add a language model as an assessor; it judges nothing before it is started."""

    def work(connection: Connection) -> ModelOut:
        settings = request.app.state.settings
        return _out(connection, assessors.add_model(connection, who, settings, body))

    return in_transaction(request.app.state.engine, work)


@router.get("/{model}", operation_id="get_model")
def get_model(request: Request, who: AManager, model: Number) -> ModelOut:
    """A model assessor, and how far its last run is."""
    return reading(
        request.app.state.engine,
        lambda c: _out(c, assessors.model_row(c, who.project.id, model)),
    )


@router.put("/{model}/budget", operation_id="change_model_budget")
def change_budget(
    request: Request, who: AManager, model: Number, body: assessors.ModelBudget
) -> ModelOut:
    """Give a model another budget, also for a run under way."""
    return in_transaction(
        request.app.state.engine,
        lambda c: _out(c, assessors.change_budget(c, who, model, body)),
    )


@router.post("/{model}/run", status_code=202, operation_id="run_model")
def run_model(request: Request, who: AManager, model: Number) -> ModelOut:
    """Let a model judge what it has not judged yet, in the background."""

    def work(connection: Connection) -> ModelOut:
        assessors.start_run(connection, who, request.app.state.settings, model)
        return _out(connection, assessors.model_row(connection, who.project.id, model))

    started = in_transaction(request.app.state.engine, work)
    wake_workers(request)
    return started


@router.post("/{model}/stop", operation_id="stop_model")
def stop_model(request: Request, who: AManager, model: Number) -> ModelOut:
    """Stop a model that is judging; what it has judged stays."""

    def work(connection: Connection) -> ModelOut:
        row = assessors.model_row(connection, who.project.id, model)
        run = assessors.last_run(connection, row)
        if run is None:
            raise RefusedError(409, "The model has not been started.")
        cancel(connection, run)
        record(connection, who.person.id, who.project.id, "stopped a model", model=row.model)
        return _out(connection, row)

    return in_transaction(request.app.state.engine, work)


@router.post("/{model}/audit", status_code=202, operation_id="request_model_audit")
def request_audit(request: Request, who: AManager, model: Number) -> ModelAuditOut:
    """Hold a model's judgments against people's, in the background; returns the last audit."""
    in_transaction(request.app.state.engine, lambda c: audits.request_audit(c, who, model))
    wake_workers(request)
    return get_audit(request, who, model)


@router.get("/{model}/audit", operation_id="get_model_audit")
def get_audit(request: Request, who: AManager, model: Number) -> ModelAuditOut:
    """The last audit of a model; `made_at` is null if there is none."""

    def work(connection: Connection) -> ModelAuditOut:
        report = audits.audit_of(connection, assessors.model_row(connection, who.project.id, model))
        if report is None:
            return ModelAuditOut(made_at=None, content={})
        return ModelAuditOut(made_at=report.made_at, content=report.content)

    return reading(request.app.state.engine, work)


def models_out(connection: Connection, who: Member) -> list[ModelOut]:
    """The model assessors of a project."""
    return [_out(connection, row) for row in assessors.models_of(connection, who.project.id)]


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

"""Pages about language models that judge: all of a project, and one with its audit."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, UploadFile
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from podium.judging.auditing.report import FIGURE_MEANINGS
from podium.studio.accounts.identity import Member
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.models import assessors
from podium.studio.models.assessors import ModelBudget, ModelSettings
from podium.studio.models.audits import is_being_audited
from podium.studio.models.endpoints import endpoint_choices
from podium.studio.store.database import reading
from podium.studio.store.enums import Mode
from podium.studio.web.access import AManager, UploadRoute
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.routes import models
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.project_pages import render_project

_PLACE: JsonObject = {
    "prefix": "/projects/{project}/models",
    "dependencies": [Depends(read_csrf)],
    "include_in_schema": False,
}
router = APIRouter(**_PLACE)
uploads = APIRouter(**_PLACE, route_class=UploadRoute)

_LONGEST_RUBRIC = 2**20


@router.get("")
def models_page(request: Request, who: AManager) -> Response:
    """All models of the project, and a form that adds one."""
    return _models_page(request, who)


@uploads.post("")
def add(
    request: Request, who: AManager, form: FormValues, rubric_file: UploadFile | None = None
) -> Response:
    """Add a model."""
    values: JsonObject = _filled(form)
    try:
        if rubric_file is not None and rubric_file.filename:
            values["rubric"] = _uploaded(rubric_file)
        row = models.add_model(request, who, ModelSettings.model_validate(values))
    except (ValidationError, RefusedError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error.problem
        return _models_page(request, who, problem, form)
    return RedirectResponse(f"/projects/{who.project.id}/models/{row.id}", 303)


@router.get("/{model}")
def model_page(request: Request, who: AManager, model: Number) -> Response:
    """One model: its run, what it cost, and its audit."""
    return _model_page(request, who, model)


@router.get("/{model}/status")
def status(request: Request, who: AManager, model: Number) -> Response:
    """What changes on a model's page while it judges."""
    values = {"shown": models.get_model(request, who, model)}
    return render_project(request, who, "model_status.html", values)


@router.post("/{model}/budget")
def change_budget(request: Request, who: AManager, model: Number, form: FormValues) -> Response:
    """Change what a model may spend."""
    try:
        models.change_budget(request, who, model, ModelBudget.model_validate(_filled(form)))
    except ValidationError as error:
        return _model_page(request, who, model, first_problem(error))
    return _to(who, model)


@router.post("/{model}/run")
def run(request: Request, who: AManager, model: Number) -> Response:
    """Let a model judge."""
    try:
        models.run_model(request, who, model)
    except RefusedError as error:
        return _model_page(request, who, model, error.problem, error.status)
    return _to(who, model)


@router.post("/{model}/stop")
def stop(request: Request, who: AManager, model: Number) -> Response:
    """Stop a model."""
    try:
        models.stop_model(request, who, model)
    except RefusedError as error:
        return _model_page(request, who, model, error.problem, error.status)
    return _to(who, model)


@router.post("/{model}/audit")
def request_audit(request: Request, who: AManager, model: Number) -> Response:
    """Audit a model."""
    models.request_audit(request, who, model)
    return RedirectResponse(f"/projects/{who.project.id}/models/{model}/audit", 303)


@router.get("/{model}/audit")
def audit_page(request: Request, who: AManager, model: Number) -> Response:
    """The last audit of a model."""
    values = {
        "shown": models.get_model(request, who, model),
        "audit": models.get_audit(request, who, model),
        "busy": reading(
            request.app.state.engine, lambda c: is_being_audited(c, who.project.id, model)
        ),
        "meanings": FIGURE_MEANINGS,
    }
    return render_project(request, who, "model_audit.html", values)


def _uploaded(file: UploadFile) -> str:
    content = file.file.read(_LONGEST_RUBRIC + 1)
    if len(content) > _LONGEST_RUBRIC:
        raise RefusedError(413, "The rubric is too large: give at most 1 MiB.")
    try:
        return content.decode()
    except UnicodeError as error:
        raise RefusedError(422, "The rubric is not UTF-8 text.") from error


def _filled(form: dict[str, str]) -> JsonObject:
    return {name: value for name, value in form.items() if value.strip()}


def _to(who: Member, model: int) -> Response:
    return RedirectResponse(f"/projects/{who.project.id}/models/{model}", 303)


def _models_page(
    request: Request, who: Member, problem: str = "", form: dict[str, str] | None = None
) -> Response:
    values = {
        "problem": problem,
        "form": form or {},
        "models": reading(request.app.state.engine, lambda c: models.models_out(c, who)),
        "endpoints": endpoint_choices(request.app.state.settings.models),
        "rankings": who.project.mode == Mode.RANKINGS,
    }
    return render_project(request, who, "models.html", values, status=422 if problem else 200)


def _model_page(
    request: Request, who: Member, model: int, problem: str = "", status: int = 422
) -> Response:
    row = reading(request.app.state.engine, lambda c: assessors.model_row(c, who.project.id, model))
    values = {"problem": problem, "shown": models.get_model(request, who, model), "row": row}
    return render_project(request, who, "model.html", values, status=status if problem else 200)

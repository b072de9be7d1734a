"""Pages of projects: the list, one's home, its settings."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError
from sqlalchemy import Connection

from podium.judging.algorithms import ALGORITHMS, CAREFUL
from podium.studio.accounts.crowd import note_completion
from podium.studio.accounts.identity import Member, Person
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.judging.adjudication import adjudicator_of, count_disputes
from podium.studio.judging.crowd_work import crowd_work
from podium.studio.projects.changes import (
    ProjectChange,
    change_project,
    delete_project,
    has_answers,
    settings_of,
)
from podium.studio.projects.guidelines import guidelines_html
from podium.studio.projects.progress import project_progress, projects_of
from podium.studio.projects.service import ProjectSettings, create_project
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode, Role
from podium.studio.web.access import AManager, AnAdmin, AnOwner, AnyMember, AnyPerson
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.pages import render
from podium.studio.web.routes import projects

router = APIRouter(dependencies=[Depends(read_csrf)], include_in_schema=False)

_BOXES = ("assigned_only",)
_BLANK = ("budget",)


def render_project(
    request: Request, who: Member, template: str, values: JsonObject, *, status: int = 200
) -> Response:
    """A page inside a project, with the links that a role has."""
    return render(
        request,
        template,
        {"project": who.project, "role": who.role, "manages": who.may(Role.MANAGER), **values},
        person=who.person,
        status=status,
    )


@router.get("/")
def home(request: Request, who: AnyPerson) -> Response:
    """One's projects."""
    rows = reading(request.app.state.engine, lambda c: projects_of(c, who.id, every=who.is_admin))
    return render(request, "projects.html", {"projects": rows}, person=who)


@router.get("/help")
def help_page(request: Request, who: AnyPerson) -> Response:
    """What the studio does, in short."""
    return render(request, "help.html", {}, person=who)


@router.get("/projects/new")
def new_page(request: Request, who: AnAdmin) -> Response:
    """Ask how a new project is to be judged."""
    return _new_page(request, who, ProjectSettings(name="New").model_dump() | {"name": ""})


@router.post("/projects")
def create(request: Request, who: AnAdmin, form: FormValues) -> Response:
    """Make a project."""
    try:
        settings = ProjectSettings.model_validate(_read(form, ProjectSettings.model_fields))
    except ValidationError as error:
        values = ProjectSettings(name="New").model_dump() | form
        return _new_page(request, who, values, first_problem(error), 422)
    project_id = in_transaction(
        request.app.state.engine, lambda c: create_project(c, who.id, settings)
    )
    return RedirectResponse(f"/projects/{project_id}/import", 303)


@router.get("/projects/{project}")
def project_home(request: Request, who: AnyMember) -> Response:
    """An assessor's start: what to look for, and where to begin. Managers see the figures."""
    if who.may(Role.MANAGER):
        return RedirectResponse(f"/projects/{who.project.id}/dashboard", 303)

    def work(connection: Connection) -> JsonObject:
        adjudicator = adjudicator_of(connection, who.project.id)
        return {
            "progress": project_progress(connection, who.project.id),
            "disputes": count_disputes(connection, who.project.id)
            if adjudicator == who.person.id
            else None,
            "crowd": crowd_work(connection, who.project, who.person.id),
        }

    values = reading(request.app.state.engine, work)
    if values["crowd"] is not None and values["crowd"].code is not None:
        in_transaction(request.app.state.engine, lambda c: note_completion(c, who.person.id))
    values["guidelines"] = guidelines_html(who.project.guidelines)
    return render_project(request, who, "project_home.html", values)


@router.get("/projects/{project}/settings")
def settings_page(request: Request, who: AManager) -> Response:
    """Show the settings."""
    return _settings_page(request, who, settings_of(who.project).model_dump())


@router.post("/projects/{project}/settings")
def change(request: Request, who: AManager, form: FormValues) -> Response:
    """Change the settings."""
    try:
        read = _read(form, ProjectChange.model_fields.keys() - {"paused", "archived"})
        changes = ProjectChange.model_validate(read).model_dump(mode="json", exclude_unset=True)
        in_transaction(
            request.app.state.engine,
            lambda c: change_project(c, who.person.id, who.project.id, changes),
        )
    except (ValidationError, RefusedError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error.problem
        status = 422 if isinstance(error, ValidationError) else error.status
        values = settings_of(who.project).model_dump() | form
        return _settings_page(request, who, values, problem, status)
    return RedirectResponse(f"/projects/{who.project.id}/settings", 303)


@router.post("/projects/{project}/pause")
def pause(request: Request, who: AManager) -> Response:
    """Hand nothing out for now."""
    return _change(request, who, {"paused": True})


@router.post("/projects/{project}/resume")
def resume(request: Request, who: AManager) -> Response:
    """Hand out again."""
    return _change(request, who, {"paused": False})


@router.post("/projects/{project}/archive")
def archive(request: Request, who: AManager) -> Response:
    """Put the project away."""
    return _change(request, who, {"archived": True})


@router.post("/projects/{project}/unarchive")
def unarchive(request: Request, who: AManager) -> Response:
    """Bring an archived project back; it stays paused."""
    return _change(request, who, {"archived": False})


@router.post("/projects/{project}/copy")
def copy(request: Request, who: AManager, form: FormValues) -> Response:
    """Copy the project, and go to the copy."""
    try:
        body = projects.CopyRequest.model_validate({"name": form.get("name", "")})
        copied = projects.copy(request, who, body)
    except (ValidationError, RefusedError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error.problem
        status = 422 if isinstance(error, ValidationError) else error.status
        values = settings_of(who.project).model_dump()
        return _settings_page(request, who, values, problem, status)
    return RedirectResponse(f"/projects/{copied.id}/import", 303)


@router.post("/projects/{project}/delete")
def delete(request: Request, who: AnOwner, form: FormValues) -> Response:
    """Delete the project for good."""
    name = form.get("name", "")
    try:
        in_transaction(
            request.app.state.engine,
            lambda c: delete_project(c, who.person.id, who.project, name),
        )
    except RefusedError as error:
        values = settings_of(who.project).model_dump()
        return _settings_page(request, who, values, error.problem, error.status)
    return RedirectResponse("/", 303)


def _change(request: Request, who: Member, changes: JsonObject) -> Response:
    in_transaction(
        request.app.state.engine,
        lambda c: change_project(c, who.person.id, who.project.id, changes),
    )
    return RedirectResponse(f"/projects/{who.project.id}/settings", 303)


def _read(form: dict[str, str], names: Collection[str]) -> JsonObject:
    """A form's fields as a model takes them: a box that is not ticked is not sent at all."""
    values: JsonObject = {name: form[name] for name in form if name in names}
    for name in _BLANK:
        if name in values and not values[name].strip():
            values[name] = None
    for name in _BOXES:
        values[name] = name in form
    return values


def _choices() -> JsonObject:
    return {"modes": list(Mode), "algorithms": [*ALGORITHMS, CAREFUL]}


def _new_page(
    request: Request, who: Person, values: JsonObject, problem: str = "", status: int = 200
) -> Response:
    shown = {"values": values, "problem": problem, "fixed": False, "has_queries": False}
    return render(request, "project_new.html", shown | _choices(), person=who, status=status)


def _settings_page(
    request: Request, who: Member, values: JsonObject, problem: str = "", status: int = 200
) -> Response:
    def work(connection: Connection) -> tuple[bool, bool]:
        queries = project_progress(connection, who.project.id).queries
        return has_answers(connection, who.project.id), queries > 0

    fixed, has_queries = reading(request.app.state.engine, work)
    shown = {
        "values": values,
        "problem": problem,
        "fixed": fixed,
        "has_queries": has_queries,
        "owns": who.may(Role.OWNER),
        **_choices(),
    }
    return render_project(request, who, "project_settings.html", shown, status=status)

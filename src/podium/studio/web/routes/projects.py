"""Projects: the list, one's home, and its settings; making, changing, copying and deleting one.

As long as nothing is judged, the pages of the import, of the judging page and of the settings are
the three steps of a start: each has a list of them, and a button that goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.judging.algorithms import ALGORITHMS, CAREFUL
from podium.studio.accounts.crowd import note_completion
from podium.studio.errors import RefusedError
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
from podium.studio.projects.progress import ProjectProgress, project_progress, projects_of
from podium.studio.projects.service import ProjectSettings, create_project, project_row
from podium.studio.reporting.dashboard import duration
from podium.studio.reporting.workload import (
    Effort,
    effort_of,
    effort_settings,
    request_workload,
    workload_of,
)
from podium.studio.store.database import storable
from podium.studio.store.enums import Mode, Role
from podium.studio.store.rows import ProjectRow
from podium.studio.transfer.project_copies import copy_project as copy
from podium.studio.web.access import (
    RequiresAdmin,
    RequiresManager,
    RequiresMember,
    RequiresOwner,
    RequiresPerson,
    wake_workers,
)
from podium.studio.web.actions import Routes, outcome_of, read, write
from podium.studio.web.documents import guidelines_html
from podium.studio.web.pages import render, render_project

routes = Routes("projects")

_PROJECT = "/projects/{project}"
_CHOICES: JsonObject = {
    "modes": list(Mode),
    "algorithms": [*ALGORITHMS, CAREFUL],
    "efforts": get_args(Effort),
    "duration": duration,
}

TopK = Annotated[int | None, Parameter(ge=1, le=1000)]


class ProjectProgressOut(BaseModel):
    """How far a project is."""

    queries: int
    done: int
    judgments: int
    expected_left: float
    share: float


class AssessorSettings(BaseModel):
    """What assessors may know of how a project is judged; checks are to come unannounced."""

    name: str
    mode: Mode
    k: int
    guidelines: str


class ProjectOut(BaseModel):
    """A project of yours. Its managers see all settings, assessors those that concern them."""

    id: int
    role: Role
    paused: bool
    archived: bool
    created_at: float
    settings: ProjectSettings | AssessorSettings
    progress: ProjectProgressOut


class CopyRequest(BaseModel):
    """The name of a project's copy."""

    name: Annotated[
        str,
        Field(max_length=200),
        AfterValidator(lambda text: storable(text).strip()),
        Field(min_length=1),
    ]


class EffortIn(BaseModel):
    """How sure the results are to be, and how many documents are put in order."""

    model_config = ConfigDict(extra="forbid")

    effort: Effort
    k: Annotated[int, Field(ge=1, le=1000)]


class CostOut(BaseModel):
    """What an effort takes if one person does all of it."""

    judgments: float
    hours: float


class WorkloadOut(BaseModel):
    """What judging the project costs, simulated for as many queries and documents as it has."""

    queries: int
    documents: int
    k: int
    assumed: bool
    """Whether queries and documents are a guess, because there are none yet."""
    costs: dict[Effort, CostOut]


class Confirmation(BaseModel):
    """What deleting a project needs: its name."""

    name: Annotated[str, Field(max_length=200)]


@routes.page("/")
def home(request: Request, who: RequiresPerson) -> Response:
    """One's projects."""
    rows = read(request, lambda c: projects_of(c, who.id, every=who.is_admin))
    return render(request, "projects.html", {"projects": rows}, person=who)


@routes.page("/help")
def help_page(request: Request, who: RequiresPerson) -> Response:
    """What the studio does, in short."""
    return render(request, "help.html", {}, person=who)


@routes.page("/projects/new")
def new_page(request: Request, who: RequiresAdmin) -> Response:
    """Ask how a new project is to be judged."""
    values = {"name": "", "mode": Mode.PAIRS.value, **outcome_of(request).typed}
    return render(request, "project_new.html", {"values": values}, person=who)


@routes.page(_PROJECT)
def project_home(request: Request, who: RequiresMember) -> Response:
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

    values = read(request, work)
    if values["crowd"] is not None and values["crowd"].code is not None:
        write(request, lambda c: note_completion(c, who.person.id))
    values["guidelines"] = guidelines_html(who.project.guidelines)
    return render_project(request, who, "project_home.html", values)


@routes.page(_PROJECT + "/settings")
def settings_page(request: Request, who: RequiresManager) -> Response:
    """Show the settings."""

    def work(connection: Connection) -> tuple[bool, bool]:
        queries = project_progress(connection, who.project.id).queries
        return has_answers(connection, who.project.id), queries > 0

    fixed, has_queries = read(request, work)
    settings, typed = settings_of(who.project).model_dump(mode="json"), outcome_of(request).typed
    values = {
        "effort": typed.get("effort") or effort_of(settings),
        "workload": get_workload(request, who),
        "values": settings | (dict(typed) if "guidelines" in typed else {}),
        "fixed": fixed,
        "has_queries": has_queries,
        "owns": who.may(Role.OWNER),
        **_CHOICES,
    }
    return render_project(request, who, "project_settings.html", values)


@routes.page(_PROJECT + "/settings/costs")
def costs(request: Request, who: RequiresManager, k: TopK = None) -> Response:
    """What each effort costs, which the settings fetch until it is known."""
    values = {"workload": get_workload(request, who, k), "project": who.project, **_CHOICES}
    return render(request, "effort_costs.html", values, person=who.person)


@routes.action("GET", _PROJECT + "/workload")
def get_workload(request: Request, who: RequiresManager, k: TopK = None) -> WorkloadOut | None:
    """What judging the project costs by how sure its results are to be.

    It is for the project's k, or for the k that is asked for, and simulated in the background:
    null until it is known.
    """
    k = k or who.project.k
    content = read(request, lambda c: workload_of(c, who.project, k))
    if content is not None:
        return WorkloadOut.model_validate(content["extent"] | {"costs": content["costs"]})
    if not who.project.archived and write(request, lambda c: request_workload(c, who, k)):
        wake_workers(request)
    return None


def _after_effort(typed: Mapping[str, str], **_: object) -> str:
    return "/projects/{project}/" + ("dashboard" if "next" in typed else "settings")


@routes.action(
    "PUT",
    _PROJECT + "/effort",
    form=_PROJECT + "/settings/effort",
    page=settings_page,
    to=_after_effort,
)
def set_effort(request: Request, who: RequiresManager, body: EffortIn) -> ProjectOut:
    """Choose how sure the results are to be, by the settings that decide it."""
    values = effort_settings(who.project.mode, body.effort) | {"k": body.k}
    return change(request, who, ProjectChange.model_validate(values))


@routes.action("GET", "/projects")
def list_projects(request: Request, who: RequiresPerson) -> list[ProjectOut]:
    """Your projects, newest first."""
    rows = read(request, lambda c: projects_of(c, who.id, every=who.is_admin))
    return [_project_out(row, role, progress) for row, role, progress in rows]


@routes.action(
    "POST",
    "/projects",
    form="/projects",
    page=new_page,
    to="/projects/{result.id}/import",
    status_code=201,
    operation_id="create_project",
)
def create(request: Request, who: RequiresAdmin, settings: ProjectSettings) -> ProjectOut:
    """Make a project, which is then yours. Only administrators of the server can."""

    def work(connection: Connection) -> ProjectOut:
        return _own(connection, create_project(connection, who.id, settings))

    return write(request, work)


@routes.action("GET", _PROJECT)
def get_project(request: Request, who: RequiresMember) -> ProjectOut:
    """A project of yours."""
    progress = read(request, lambda c: project_progress(c, who.project.id))
    return _project_out(who.project, who.role, progress)


@routes.action(
    "PATCH",
    _PROJECT,
    form=_PROJECT + "/settings",
    page=settings_page,
    to=_PROJECT + "/settings",
    operation_id="change_project",
)
def change(request: Request, who: RequiresManager, changes: ProjectChange) -> ProjectOut:
    """Change settings, pause or resume. How pairs are chosen is fixed once there are judgments."""
    values = changes.model_dump(mode="json", exclude_unset=True)

    def work(connection: Connection) -> ProjectOut:
        row = change_project(connection, who.person.id, who.project.id, values)
        return _project_out(row, who.role, project_progress(connection, who.project.id))

    return write(request, work)


@routes.action(
    "DELETE",
    _PROJECT,
    form=_PROJECT + "/delete",
    page=settings_page,
    to="/",
    status_code=204,
    operation_id="delete_project",
)
def delete(request: Request, who: RequiresOwner, confirmation: Confirmation) -> None:
    """Delete a project with all its judgments. It has to be named."""
    write(request, lambda c: delete_project(c, who.person.id, who.project, confirmation.name))


@routes.action(
    "POST",
    _PROJECT + "/copy",
    form=_PROJECT + "/copy",
    page=settings_page,
    to="/projects/{result.id}/import",
    status_code=201,
)
def copy_project(request: Request, who: RequiresManager, body: CopyRequest) -> ProjectOut:
    """Copy a project's settings, queries and gold pairs, without judgments and members.

    The queries follow in the background, as an import of the new project. Only administrators of
    the server can, as they create projects.
    """
    if not who.person.is_admin:
        raise RefusedError(403, "Only administrators of this server may copy projects.")
    copied = write(request, lambda c: _own(c, copy(c, who, body.name)))
    wake_workers(request)
    return copied


def _own(connection: Connection, project_id: int) -> ProjectOut:
    """A project that its owner has just made."""
    row = project_row(connection, project_id)
    return _project_out(row, Role.OWNER, project_progress(connection, project_id))


def _settings(row: ProjectRow, role: Role) -> ProjectSettings | AssessorSettings:
    if role is Role.ASSESSOR:
        return AssessorSettings(
            name=row.name, mode=Mode(row.mode), k=row.k, guidelines=row.guidelines
        )
    return settings_of(row)


def _project_out(row: ProjectRow, role: str, progress: ProjectProgress) -> ProjectOut:
    return ProjectOut(
        id=row.id,
        role=Role(role),
        paused=row.paused,
        archived=row.archived,
        created_at=row.created_at,
        settings=_settings(row, Role(role)),
        progress=ProjectProgressOut.model_validate(progress, from_attributes=True),
    )

"""Projects for programs: list, make, change and delete them, and see how far their queries are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import Connection, select

from podium.studio.errors import RefusedError
from podium.studio.projects.changes import (
    ProjectChange,
    change_project,
    delete_project,
    settings_of,
)
from podium.studio.projects.progress import ProjectProgress, project_progress, projects_of
from podium.studio.projects.service import ProjectSettings, create_project, project_row
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Mode, Role
from podium.studio.store.rows import ProjectQueryRow, ProjectRow, fetch_all
from podium.studio.store.tables import ProjectQuery
from podium.studio.store.text import storable
from podium.studio.transfer.project_copies import copy_project
from podium.studio.web.access import AManager, AnAdmin, AnOwner, AnyMember, AnyPerson, wake_workers

router = APIRouter(prefix="/api/v1", tags=["projects"])

_PAGE = 1000


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


class QueryOut(BaseModel):
    """A query, and how far its judging is."""

    id: int
    query_id: str
    query: str
    judgments: int
    expected_left: float
    done: bool


class CopyRequest(BaseModel):
    """The name of a project's copy."""

    name: Annotated[
        str,
        Field(max_length=200),
        AfterValidator(lambda text: storable(text).strip()),
        Field(min_length=1),
    ]


class Confirmation(BaseModel):
    """What deleting a project needs: its name."""

    name: Annotated[str, Field(max_length=200)]


@router.get("/projects", operation_id="list_projects")
def list_projects(request: Request, who: AnyPerson) -> list[ProjectOut]:
    """Your projects, newest first."""
    rows = reading(request.app.state.engine, lambda c: projects_of(c, who.id, every=who.is_admin))
    return [_project_out(row, role, progress) for row, role, progress in rows]


@router.post("/projects", status_code=201, operation_id="create_project")
def create(request: Request, who: AnAdmin, settings: ProjectSettings) -> ProjectOut:
    """Make a project, which is then yours. Only administrators of the server can."""

    def work(connection: Connection) -> ProjectOut:
        project_id = create_project(connection, who.id, settings)
        row = project_row(connection, project_id)
        return _project_out(row, Role.OWNER, project_progress(connection, project_id))

    return in_transaction(request.app.state.engine, work)


@router.get("/projects/{project}", operation_id="get_project")
def get(request: Request, who: AnyMember) -> ProjectOut:
    """A project of yours."""
    progress = reading(request.app.state.engine, lambda c: project_progress(c, who.project.id))
    return _project_out(who.project, who.role, progress)


@router.patch("/projects/{project}", operation_id="change_project")
def change(request: Request, who: AManager, changes: ProjectChange) -> ProjectOut:
    """Change settings, pause or resume. How pairs are chosen is fixed once there are judgments."""
    values = changes.model_dump(mode="json", exclude_unset=True)

    def work(connection: Connection) -> ProjectOut:
        row = change_project(connection, who.person.id, who.project.id, values)
        return _project_out(row, who.role, project_progress(connection, who.project.id))

    return in_transaction(request.app.state.engine, work)


@router.delete("/projects/{project}", status_code=204, operation_id="delete_project")
def delete(request: Request, who: AnOwner, confirmation: Confirmation) -> None:
    """Delete a project with all its judgments. It has to be named."""
    in_transaction(
        request.app.state.engine,
        lambda c: delete_project(c, who.person.id, who.project, confirmation.name),
    )


@router.post("/projects/{project}/copy", status_code=201, operation_id="copy_project")
def copy(request: Request, who: AManager, body: CopyRequest) -> ProjectOut:
    """Copy a project's settings, queries and gold pairs, without judgments and members.

    The queries follow in the background, as an import of the new project. Only administrators of
    the server can, as they create projects.
    """
    if not who.person.is_admin:
        raise RefusedError(403, "Only administrators of this server may copy projects.")

    def work(connection: Connection) -> ProjectOut:
        project_id = copy_project(connection, who, body.name)
        row = project_row(connection, project_id)
        return _project_out(row, Role.OWNER, project_progress(connection, project_id))

    copied = in_transaction(request.app.state.engine, work)
    wake_workers(request)
    return copied


@router.get("/projects/{project}/queries", operation_id="list_queries")
def list_queries(
    request: Request,
    who: AManager,
    after: Annotated[int, Parameter(ge=0, lt=2**62, description="The last id seen.")] = 0,
    limit: Annotated[int, Parameter(ge=1, le=_PAGE)] = _PAGE,
) -> list[QueryOut]:
    """The project's queries in the order of their ids, a page at a time."""
    rows = reading(
        request.app.state.engine,
        lambda c: fetch_all(
            c,
            select(ProjectQuery.__table__)
            .where(ProjectQuery.project_id == who.project.id, ProjectQuery.id > after)
            .order_by(ProjectQuery.id)
            .limit(limit),
            ProjectQueryRow,
        ),
    )
    return [
        QueryOut(
            id=row.id,
            query_id=row.name,
            query=row.text,
            judgments=row.judgments,
            expected_left=row.expected_left,
            done=row.done,
        )
        for row in rows
    ]


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
        progress=ProjectProgressOut(
            queries=progress.queries,
            done=progress.done,
            judgments=progress.judgments,
            expected_left=progress.expected_left,
            share=progress.share,
        ),
    )

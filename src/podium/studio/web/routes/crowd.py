"""Links for crowd workers: for managers, and for the workers who open them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection, select

from podium.studio.accounts import crowd
from podium.studio.accounts.throttling import count_use, network
from podium.studio.store.database import storable
from podium.studio.store.tables import CrowdLink, Project
from podium.studio.store.tokens import digest, new_secret
from podium.studio.web.access import Number, RequiresManager, public_url
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.pages import render, render_project
from podium.studio.web.routes.signing_in import Text, check_form, start_session, with_form_cookie

routes = Routes("crowd workers", api="/projects/{project}/crowd-links")

_FREE = 30
"""How many workers may come from one address before there are delays."""


class CrowdLinkIn(BaseModel):
    """A link to make."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    parameter: str = Field(default="PROLIFIC_PID", pattern=r"^[A-Za-z0-9_-]{1,50}$")
    """The parameter of the URL that has the platform's id of a worker."""
    code: Annotated[str, AfterValidator(storable)] = Field(min_length=1, max_length=100)
    """What workers give the platform when they are done."""
    judgments: int = Field(default=50, ge=1, le=100_000)
    """How many judgments each worker is to make."""
    workers: int = Field(default=10, ge=1, le=100_000)
    """How many workers may take part."""
    days: float = Field(default=14, gt=0, le=365)


class NewCrowdLinkOut(BaseModel):
    """A new link; it is shown once."""

    link: str


@routes.page("/projects/{project}/crowd")
def links_page(request: Request, who: RequiresManager) -> Response:
    """All links, and a form that makes one."""
    values = {"links": list_crowd_links(request, who)}
    return render_project(request, who, "crowd.html", values)


@routes.action("GET", "")
def list_crowd_links(request: Request, who: RequiresManager) -> list[crowd.CrowdLinkRow]:
    """The links for crowd workers, with the number of those who came and who are done."""
    return read(request, lambda c: crowd.links_of(c, who.project.id))


@routes.action("POST", "", form="/projects/{project}/crowd", page=links_page, status_code=201)
def make_crowd_link(request: Request, who: RequiresManager, body: CrowdLinkIn) -> NewCrowdLinkOut:
    """Make a link: the platform adds the parameter with each worker's id to it."""
    secret = write(request, lambda c: crowd.make_link(c, who, **body.model_dump()))
    return NewCrowdLinkOut(link=f"{public_url(request)}/crowd/{secret}")


@routes.action(
    "DELETE",
    "/{link}",
    form="/projects/{project}/crowd/{link}/remove",
    to="/projects/{project}/crowd",
    status_code=204,
)
def remove_crowd_link(request: Request, who: RequiresManager, link: Number) -> None:
    """Remove a link; its workers stay members of the project."""
    write(request, lambda c: crowd.remove_link(c, who, link))


@routes.page("/crowd/{secret}")
def arrive(request: Request, secret: str) -> Response:
    """What a worker sees who opens the link."""

    def work(connection: Connection) -> tuple[str, str]:
        parameter = crowd.parameter_of(connection, secret)
        name = connection.scalar(
            select(Project.name)
            .join(CrowdLink, CrowdLink.project_id == Project.id)
            .where(CrowdLink.key == digest(secret))
        )
        return parameter, str(name)

    parameter, name = read(request, work)
    external_id, form = request.query_params.get(parameter, "")[:200], new_secret()
    values = {"project": name, "secret": secret, "external_id": external_id, "form": form}
    return with_form_cookie(request, render(request, "crowd_arrive.html", values), form)


@routes.pages.post("/crowd/{secret}")
def begin(request: Request, secret: str, external_id: Text = "", form: Text = "") -> Response:
    """Let a worker in, under the account of their id."""
    check_form(request, form)
    address = request.client.host if request.client else ""
    write(request, lambda c: count_use(c, f"crowd:{network(address)}", _FREE))
    user_id, project_id = write(request, lambda c: crowd.worker_account(c, secret, external_id))
    return start_session(request, user_id, f"/projects/{project_id}")

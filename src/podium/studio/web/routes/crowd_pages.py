"""Pages of links for crowd workers: for managers, and for the workers who open them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError
from sqlalchemy import Connection, select

from podium.studio.accounts.crowd import parameter_of, worker_account
from podium.studio.accounts.identity import Member
from podium.studio.accounts.throttling import count_use, network
from podium.studio.errors import RefusedError, first_problem
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import CrowdLink, Project
from podium.studio.store.tokens import digest, new_secret
from podium.studio.web.access import AManager
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.pages import render
from podium.studio.web.routes import crowd
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.project_pages import render_project
from podium.studio.web.routes.signing_in import Text, check_form, start_session, with_form_cookie

router = APIRouter(dependencies=[Depends(read_csrf)], include_in_schema=False)

_FREE = 30
"""How many workers may come from one address before there are delays."""


@router.get("/projects/{project}/crowd")
def links_page(request: Request, who: AManager) -> Response:
    """All links, and a form that makes one."""
    return _links_page(request, who)


@router.post("/projects/{project}/crowd")
def make(request: Request, who: AManager, form: FormValues) -> Response:
    """Make a link; it is shown on the page that answers, and never again."""
    try:
        made = crowd.make_link(request, who, crowd.CrowdLinkIn.model_validate(form))
    except (ValidationError, RefusedError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error.problem
        return _links_page(request, who, problem=problem)
    parameter = form.get("parameter", "")
    return _links_page(request, who, link=f"{made.link}?{parameter}=", parameter=parameter)


@router.post("/projects/{project}/crowd/{link}/remove")
def remove(request: Request, who: AManager, link: Number) -> Response:
    """Remove a link."""
    crowd.remove_link(request, who, link)
    return RedirectResponse(f"/projects/{who.project.id}/crowd", 303)


@router.get("/crowd/{secret}")
def arrive(request: Request, secret: str) -> Response:
    """What a worker sees who opens the link."""

    def work(connection: Connection) -> tuple[str, str]:
        parameter = parameter_of(connection, secret)
        name = connection.scalar(
            select(Project.name)
            .join(CrowdLink, CrowdLink.project_id == Project.id)
            .where(CrowdLink.key == digest(secret))
        )
        return parameter, str(name)

    parameter, name = reading(request.app.state.engine, work)
    external_id, form = request.query_params.get(parameter, "")[:200], new_secret()
    values = {"project": name, "secret": secret, "external_id": external_id, "form": form}
    return with_form_cookie(request, render(request, "crowd_arrive.html", values), form)


@router.post("/crowd/{secret}")
def begin(request: Request, secret: str, external_id: Text = "", form: Text = "") -> Response:
    """Let a worker in, under the account of their id."""
    check_form(request, form)
    engine = request.app.state.engine
    address = request.client.host if request.client else ""
    in_transaction(engine, lambda c: count_use(c, f"crowd:{network(address)}", _FREE))
    user_id, project_id = in_transaction(engine, lambda c: worker_account(c, secret, external_id))
    return start_session(request, user_id, f"/projects/{project_id}")


def _links_page(
    request: Request, who: Member, *, problem: str = "", link: str = "", parameter: str = ""
) -> Response:
    values = {
        "problem": problem,
        "link": link,
        "parameter": parameter,
        "links": crowd.list_links(request, who),
    }
    return render_project(request, who, "crowd.html", values, status=422 if problem else 200)

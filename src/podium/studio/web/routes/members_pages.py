"""Pages about people: members, invitations, assignment, the audit log, one's API tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError
from sqlalchemy import Connection

from podium.studio.accounts import members as people
from podium.studio.accounts.audit import record
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import check_not_crowd_worker, new_api_token
from podium.studio.errors import RefusedError, first_problem
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.projects import assignments as sharing
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.text import storable
from podium.studio.web.access import AManager, AnyPerson, check_browser
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.pages import render
from podium.studio.web.routes.judging import Number
from podium.studio.web.routes.members import AssignmentOptions, InvitationIn, RoleIn
from podium.studio.web.routes.members import invite as make_invitation
from podium.studio.web.routes.project_pages import render_project

router = APIRouter(dependencies=[Depends(read_csrf)], include_in_schema=False)

_AUDIT_PAGE = 100
_TOKEN_DAYS = (1, 7, 30, 90, 365)


@router.get("/projects/{project}/people")
def people_page(request: Request, who: AManager) -> Response:
    """Members and invitations."""
    return _people_page(request, who)


@router.post("/projects/{project}/people/{user}/role")
def set_role(request: Request, who: AManager, user: Number, form: FormValues) -> Response:
    """Give a member another role."""
    try:
        role = RoleIn.model_validate(form).role
        in_transaction(request.app.state.engine, lambda c: people.set_role(c, who, user, role))
    except (ValidationError, RefusedError) as error:
        return _people_page(request, who, **_problem(error))
    return RedirectResponse(f"/projects/{who.project.id}/people", 303)


@router.post("/projects/{project}/people/{user}/remove")
def remove(request: Request, who: AManager, user: Number) -> Response:
    """Take someone out of the project."""
    try:
        in_transaction(request.app.state.engine, lambda c: people.remove_member(c, who, user))
    except RefusedError as error:
        return _people_page(request, who, **_problem(error))
    return RedirectResponse(
        "/" if user == who.person.id else f"/projects/{who.project.id}/people", 303
    )


@router.post("/projects/{project}/invitations")
def invite(request: Request, who: AManager, form: FormValues) -> Response:
    """Make an invitation; its link is shown on the page that answers, and never again."""
    try:
        values = {**form, "email": form.get("email", "").strip() or None}
        body = InvitationIn.model_validate(values)
        made = make_invitation(request, who, body)
    except (ValidationError, RefusedError) as error:
        return _people_page(request, who, **_problem(error))
    return _people_page(request, who, link=made.link, sent_to=body.email or "")


@router.post("/projects/{project}/invitations/{invitation}/revoke")
def revoke(request: Request, who: AManager, invitation: Number) -> Response:
    """End an invitation."""
    in_transaction(request.app.state.engine, lambda c: people.revoke_invitation(c, who, invitation))
    return RedirectResponse(f"/projects/{who.project.id}/people", 303)


@router.get("/projects/{project}/assignment")
def assignment_page(request: Request, who: AManager) -> Response:
    """What everyone was assigned, and how to share anew."""
    return _assignment_page(request, who)


@router.post("/projects/{project}/assignment")
def assign(
    request: Request,
    who: AManager,
    form: FormValues,
    people: Annotated[list[str] | None, Form()] = None,
) -> Response:
    """Share the queries out."""
    values = {name: form[name] for name in ("method", "copies", "seed") if name in form}
    try:
        options = AssignmentOptions.model_validate({**values, "people": people or []})
        in_transaction(
            request.app.state.engine,
            lambda c: sharing.assign_queries(
                c,
                who,
                options.people,
                method=options.method,
                copies=options.copies,
                seed=options.seed,
            ),
        )
    except (ValidationError, RefusedError) as error:
        return _assignment_page(request, who, **_problem(error))
    return RedirectResponse(f"/projects/{who.project.id}/assignment", 303)


@router.post("/projects/{project}/assignment/remove")
def unassign(request: Request, who: AManager, form: FormValues) -> Response:
    """Take assignments back, from one member or from all."""
    user = form.get("user", "")
    person = int(user) if user.isascii() and user.isdigit() and len(user) < 18 else None
    in_transaction(request.app.state.engine, lambda c: sharing.unassign(c, who, person))
    return RedirectResponse(f"/projects/{who.project.id}/assignment", 303)


@router.get("/projects/{project}/audit")
def audit_page(request: Request, who: AManager, before: str = "") -> Response:
    """What was done in the project."""
    newest = int(before) if before.isascii() and before.isdigit() and len(before) < 18 else 2**62
    rows = reading(
        request.app.state.engine,
        lambda c: people.audit_of(c, who.project, newest, _AUDIT_PAGE),
    )
    older = rows[-1].id if len(rows) == _AUDIT_PAGE else None
    return render_project(request, who, "audit.html", {"rows": rows, "older": older})


@router.get("/tokens")
def tokens_page(request: Request, who: AnyPerson) -> Response:
    """One's API tokens."""
    return _tokens_page(request, who)


@router.post("/tokens")
def make_token(request: Request, who: AnyPerson, form: FormValues) -> Response:
    """Make an API token; it is shown on the page that answers, and never again."""
    check_browser(who)
    name = storable(form.get("name", "")).strip()[:200]
    days = form.get("days", "")
    if not name or days not in map(str, _TOKEN_DAYS):
        return _tokens_page(
            request, who, problem=Message("Enter a name and an expiry for the token."), status=422
        )

    def work(connection: Connection) -> str:
        check_not_crowd_worker(connection, who.id)
        record(connection, who.id, None, "created an API token", name=name)
        return new_api_token(connection, who.id, name, int(days))

    secret = in_transaction(request.app.state.engine, work)
    return _tokens_page(request, who, secret=secret)


@router.post("/tokens/{token}/revoke")
def revoke_token(request: Request, who: AnyPerson, token: Number) -> Response:
    """End an API token."""
    in_transaction(request.app.state.engine, lambda c: people.revoke_token(c, who.id, token))
    return RedirectResponse("/tokens", 303)


def _problem(error: ValidationError | RefusedError) -> JsonObject:
    if isinstance(error, ValidationError):
        return {"problem": first_problem(error), "status": 422}
    return {"problem": error.problem, "status": error.status}


def _people_page(
    request: Request,
    who: Member,
    *,
    problem: str = "",
    link: str = "",
    sent_to: str = "",
    status: int = 200,
) -> Response:
    def work(connection: Connection) -> JsonObject:
        return {
            "members": people.members_of(connection, who.project.id),
            "invitations": people.invitations_of(connection, who.project.id),
        }

    values = reading(request.app.state.engine, work)
    values |= {
        "problem": problem,
        "link": link,
        "sent_to": sent_to,
        "mails": bool(request.app.state.settings.smtp),
        "roles": [role.value for role in Role if who.may(role)],
    }
    return render_project(request, who, "people.html", values, status=status)


def _assignment_page(
    request: Request, who: Member, *, problem: str = "", status: int = 200
) -> Response:
    rows = reading(request.app.state.engine, lambda c: sharing.assignment_counts(c, who.project.id))
    values = {"shares": rows, "problem": problem}
    return render_project(request, who, "assignment.html", values, status=status)


def _tokens_page(
    request: Request, who: Person, *, problem: str = "", secret: str = "", status: int = 200
) -> Response:
    rows = reading(request.app.state.engine, lambda c: people.tokens_of(c, who.id))
    values = {"tokens": rows, "problem": problem, "secret": secret, "days": _TOKEN_DAYS}
    return render(request, "tokens.html", values, person=who, status=status)

"""Members of a project, invitations, assignments and the audit log."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.datastructures import FormData

from podium.studio.accounts import members as people
from podium.studio.accounts.mail import mail_invitation
from podium.studio.accounts.service import normal_email
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.projects import assignments as sharing
from podium.studio.store.enums import Role
from podium.studio.web.access import NEWEST, Before, Number, RequiresManager, public_url
from podium.studio.web.actions import Form, Routes, form_values, read, write
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render_project

routes = Routes("people", api="/projects/{project}", pages="/projects/{project}")

_AUDIT_PAGE = 100


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class MemberOut(BaseModel):
    """A member of the project."""

    user: int = Field(validation_alias="id")
    name: str
    email: str
    email_verified: bool
    role: Role


class RoleIn(_Body):
    """A role to give."""

    role: Role


class InvitationIn(_Body):
    """An invitation to make."""

    role: Role = Role.ASSESSOR
    uses: int = Field(default=1, ge=1, le=10_000)
    days: float = Field(default=7, gt=0, le=365)
    email: Annotated[str | None, Field(max_length=320)] = None
    """Where to send the link, if the server sends e-mail."""


class NewInvitationOut(BaseModel):
    """A new invitation's link, which is shown once."""

    link: str


class PeopleIn(_Body):
    """People to add or to invite."""

    addresses: list[str] = Field(min_length=1, max_length=200)
    role: Role = Role.ASSESSOR
    days: float = Field(default=7, gt=0, le=365)


class InvitedOut(BaseModel):
    """What became of an address."""

    email: str
    added: bool
    """Whether there is an account, which is a member now."""
    link: str | None
    """The invitation for those without an account, which is shown once."""
    mailed: bool
    """Whether the link is on its way to them."""


class AssignmentOptions(_Body):
    """How to share the queries out."""

    people: list[Annotated[int, Field(ge=1, lt=2**62)]] = Field(default=[], max_length=1000)
    method: sharing.Method = "balance"
    copies: int = Field(default=1, ge=1, le=100)
    seed: int = Field(default=0, ge=0, lt=2**31)


class ShareOut(BaseModel):
    """How much someone has."""

    user: int = Field(validation_alias="id")
    name: str
    queries: int
    expected_left: float = Field(validation_alias="left")


class AuditOut(BaseModel):
    """Something that was done."""

    id: int
    at: float
    who: str | None = Field(validation_alias="name")
    action: str
    details: JsonObject


@routes.page("/people")
def people_page(request: Request, who: RequiresManager) -> Response:
    """Members and invitations."""
    values = {
        "members": list_members(request, who),
        "invitations": list_invitations(request, who),
        "mails": bool(request.app.state.settings.smtp),
        "roles": [role.value for role in Role if who.may(role)],
    }
    return render_project(request, who, "people.html", values)


@routes.page("/assignment")
def assignment_page(request: Request, who: RequiresManager) -> Response:
    """What everyone was assigned, and how to share anew."""
    return render_project(request, who, "assignment.html", {"shares": get_assignment(request, who)})


@routes.page("/audit")
def audit_page(request: Request, who: RequiresManager, before: Before = None) -> Response:
    """What was done in the project."""
    rows = list_audit(request, who, before or NEWEST, _AUDIT_PAGE)
    older = rows[-1].id if len(rows) == _AUDIT_PAGE else None
    return render_project(request, who, "audit.html", {"rows": rows, "older": older})


@routes.action("GET", "/members", response_model=list[MemberOut])
def list_members(request: Request, who: RequiresManager) -> list[people.MemberRow]:
    """The project's members."""
    return read(request, lambda c: people.members_of(c, who.project.id))


@routes.action(
    "PATCH",
    "/members/{user}",
    form="/people/{user}/role",
    page=people_page,
    to="/projects/{project}/people",
    status_code=204,
)
def set_role(request: Request, who: RequiresManager, user: Number, body: RoleIn) -> None:
    """Give a member another role."""
    write(request, lambda c: people.set_role(c, who, user, body.role))


@routes.action(
    "DELETE",
    "/members/{user}",
    form="/people/{user}/remove",
    page=people_page,
    to=lambda who, user, **_: "/" if user == who.person.id else "/projects/{project}/people",
    status_code=204,
)
def remove_member(request: Request, who: RequiresManager, user: Number) -> None:
    """Take someone out of the project; what they judged stays."""
    write(request, lambda c: people.remove_member(c, who, user))


@routes.action("GET", "/invitations")
def list_invitations(request: Request, who: RequiresManager) -> list[people.ActiveInvitation]:
    """The invitations that still hold."""
    return read(request, lambda c: people.invitations_of(c, who.project.id))


@routes.action("POST", "/invitations", form="/invitations", page=people_page, status_code=201)
def invite(request: Request, who: RequiresManager, body: InvitationIn) -> NewInvitationOut:
    """Make a link that makes people who open it members, and send it if an address is given."""
    email = (body.email or "").strip()
    if email and not request.app.state.settings.smtp:
        raise RefusedError(409, "This server sends no e-mail: send the link yourself.")

    def work(connection: Connection) -> str:
        secret = people.make_invitation(
            connection, who, body.role, body.uses, body.days, normal_email(email) if email else None
        )
        link = f"{public_url(request)}/join/{secret}"
        if email:
            mail_invitation(connection, who, email, link, language_of(request))
        return link

    return NewInvitationOut(link=write(request, work))


def _people(form: FormData) -> JsonObject:
    """Addresses as people write them, one per line or as in e-mails: ``Ann <ann@example.org>``."""
    written = re.split(r"[,;\r\n]+", str(form.get("addresses", "")))
    addresses = [re.sub(r"^.*<(.*)>$", r"\1", each.strip()) for each in written]
    return form_values(PeopleIn, form) | {"addresses": [each for each in addresses if each]}


def _normal(address: str) -> str:
    try:
        return normal_email(address)
    except RefusedError as error:
        raise RefusedError(
            422, "“%(address)s” is not an e-mail address; nobody was added.", address=address[:320]
        ) from error


@routes.action(
    "POST", "/members", form="/people", page=people_page, values=_people, status_code=201
)
def add_people(request: Request, who: RequiresManager, body: PeopleIn) -> list[InvitedOut]:
    """Make people members by their addresses: accounts at once, others by a link for each."""
    mails = bool(request.app.state.settings.smtp)

    def work(connection: Connection) -> list[InvitedOut]:
        invited = []
        for email in dict.fromkeys(map(_normal, body.addresses)):
            if people.add_member(connection, who, email, body.role):
                invited.append(InvitedOut(email=email, added=True, link=None, mailed=False))
                continue
            secret = people.make_invitation(connection, who, body.role, 1, body.days, email)
            link = f"{public_url(request)}/join/{secret}"
            if mails:
                mail_invitation(connection, who, email, link, language_of(request))
            invited.append(InvitedOut(email=email, added=False, link=link, mailed=mails))
        return invited

    return write(request, work)


@routes.action(
    "DELETE",
    "/invitations/{invitation}",
    form="/invitations/{invitation}/revoke",
    to="/projects/{project}/people",
    status_code=204,
)
def revoke_invitation(request: Request, who: RequiresManager, invitation: Number) -> None:
    """End an invitation."""
    write(request, lambda c: people.revoke_invitation(c, who, invitation))


@routes.action("GET", "/assignment", response_model=list[ShareOut])
def get_assignment(request: Request, who: RequiresManager) -> list[sharing.AssignmentCount]:
    """How many queries each member was assigned."""
    return read(request, lambda c: sharing.assignment_counts(c, who.project.id))


@routes.action(
    "POST",
    "/assignment",
    form="/assignment",
    page=assignment_page,
    to="/projects/{project}/assignment",
    response_model=list[ShareOut],
)
def assign(
    request: Request, who: RequiresManager, options: AssignmentOptions
) -> list[sharing.AssignmentCount]:
    """Share the queries that are not done among members, instead of those that they had."""

    def work(connection: Connection) -> list[sharing.AssignmentCount]:
        sharing.assign_queries(
            connection, who, options.people, method=options.method, copies=options.copies,
            seed=options.seed,
        )  # fmt: skip
        return sharing.assignment_counts(connection, who.project.id)

    return write(request, work)


@routes.action("DELETE", "/assignment", status_code=204)
def unassign(
    request: Request,
    who: RequiresManager,
    user: Annotated[int | None, Parameter(ge=1, lt=2**62)] = None,
) -> None:
    """Take assignments back, from one member or from all."""
    write(request, lambda c: sharing.unassign(c, who, user))


@routes.pages.post("/assignment/remove")
def unassign_form(request: Request, who: RequiresManager, form: Form) -> Response:
    """Take assignments back: a number in the form names one member, nothing all of them."""
    user = str(form.get("user", ""))
    number = int(user) if user.isascii() and user.isdigit() and len(user) < 18 else None
    unassign(request, who, number)
    return RedirectResponse(f"/projects/{who.project.id}/assignment", 303)


@routes.action("GET", "/audit", response_model=list[AuditOut])
def list_audit(
    request: Request,
    who: RequiresManager,
    before: Annotated[int, Parameter(ge=1, le=NEWEST)] = NEWEST,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
) -> list[people.AuditRow]:
    """What was done in the project apart from judging, newest first."""
    return read(request, lambda c: people.audit_of(c, who.project, before, limit))

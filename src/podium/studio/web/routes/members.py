"""Members, invitations, assignment and the audit log, for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts import members as people
from podium.studio.accounts.mail import mail_invitation
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.projects import assignments as sharing
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.web.access import AManager, public_url
from podium.studio.web.languages import language_of
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1/projects/{project}", tags=["people"])

_NEWEST = 2**62


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class MemberOut(BaseModel):
    """A member of the project."""

    user: int
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
    email: str | None = Field(default=None, max_length=320)
    """Where to send the link, if the server sends e-mail."""


class InvitationOut(BaseModel):
    """An invitation that holds. Its link is told once, when it is made."""

    id: int
    role: Role
    uses_left: int
    expires_at: float


class NewInvitationOut(BaseModel):
    """A new invitation's link."""

    link: str


class AssignmentOptions(_Body):
    """How to share the queries out."""

    people: list[Annotated[int, Field(ge=1, lt=2**62)]] = Field(default=[], max_length=1000)
    method: sharing.Method = "balance"
    copies: int = Field(default=1, ge=1, le=100)
    seed: int = Field(default=0, ge=0, lt=2**31)


class ShareOut(BaseModel):
    """How much someone has."""

    user: int
    name: str
    queries: int
    expected_left: float


class AuditOut(BaseModel):
    """Something that was done."""

    id: int
    at: float
    who: str | None
    action: str
    details: JsonObject


@router.get("/members", operation_id="list_members")
def members(request: Request, who: AManager) -> list[MemberOut]:
    """The project's members."""
    rows = reading(request.app.state.engine, lambda c: people.members_of(c, who.project.id))
    return [
        MemberOut(
            user=row.id,
            name=row.name,
            email=row.email,
            email_verified=row.email_verified,
            role=Role(row.role),
        )
        for row in rows
    ]


@router.patch("/members/{user}", status_code=204, operation_id="set_role")
def set_role(request: Request, who: AManager, user: Number, body: RoleIn) -> None:
    """Give a member another role."""
    in_transaction(request.app.state.engine, lambda c: people.set_role(c, who, user, body.role))


@router.delete("/members/{user}", status_code=204, operation_id="remove_member")
def remove(request: Request, who: AManager, user: Number) -> None:
    """Take someone out of the project; what they judged stays."""
    in_transaction(request.app.state.engine, lambda c: people.remove_member(c, who, user))


@router.get("/invitations", operation_id="list_invitations")
def invitations(request: Request, who: AManager) -> list[InvitationOut]:
    """The invitations that still hold."""
    rows = reading(request.app.state.engine, lambda c: people.invitations_of(c, who.project.id))
    return [
        InvitationOut(
            id=row.id, role=Role(row.role), uses_left=row.uses_left, expires_at=row.expires_at
        )
        for row in rows
    ]


@router.post("/invitations", status_code=201, operation_id="invite")
def invite(request: Request, who: AManager, body: InvitationIn) -> NewInvitationOut:
    """Make a link that makes whoever opens it a member, and send it if an address is given."""
    if body.email and not request.app.state.settings.smtp:
        raise RefusedError(409, "This server sends no e-mail: send the link yourself.")

    def work(connection: Connection) -> str:
        secret = people.make_invitation(connection, who, body.role, body.uses, body.days)
        link = join_link(request, secret)
        if body.email:
            mail_invitation(connection, who, body.email, link, language_of(request))
        return link

    return NewInvitationOut(link=in_transaction(request.app.state.engine, work))


@router.delete("/invitations/{invitation}", status_code=204, operation_id="revoke_invitation")
def revoke(request: Request, who: AManager, invitation: Number) -> None:
    """End an invitation."""
    in_transaction(request.app.state.engine, lambda c: people.revoke_invitation(c, who, invitation))


@router.get("/assignment", operation_id="get_assignment")
def assignment(request: Request, who: AManager) -> list[ShareOut]:
    """How many queries each member was assigned."""
    rows = reading(request.app.state.engine, lambda c: sharing.assignment_counts(c, who.project.id))
    return [
        ShareOut(user=row.id, name=row.name, queries=row.queries, expected_left=row.left)
        for row in rows
    ]


@router.post("/assignment", operation_id="assign")
def assign(request: Request, who: AManager, options: AssignmentOptions) -> list[ShareOut]:
    """Share the queries that are not done among members, instead of those that they had."""

    def work(connection: Connection) -> None:
        sharing.assign_queries(
            connection, who, options.people, method=options.method, copies=options.copies,
            seed=options.seed,
        )  # fmt: skip

    in_transaction(request.app.state.engine, work)
    return assignment(request, who)


@router.delete("/assignment", status_code=204, operation_id="unassign")
def unassign(
    request: Request,
    who: AManager,
    user: Annotated[int | None, Parameter(ge=1, lt=2**62)] = None,
) -> None:
    """Take assignments back, from one member or from all."""
    in_transaction(request.app.state.engine, lambda c: sharing.unassign(c, who, user))


@router.get("/audit", operation_id="list_audit")
def audit(
    request: Request,
    who: AManager,
    before: Annotated[int, Parameter(ge=1, le=_NEWEST)] = _NEWEST,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
) -> list[AuditOut]:
    """What was done in the project apart from judging, newest first."""
    rows = reading(
        request.app.state.engine, lambda c: people.audit_of(c, who.project, before, limit)
    )
    return [
        AuditOut(id=row.id, at=row.at, who=row.name, action=row.action, details=row.details)
        for row in rows
    ]


def join_link(request: Request, secret: str) -> str:
    """The address of an invitation, as browsers reach it."""
    return f"{public_url(request)}/join/{secret}"

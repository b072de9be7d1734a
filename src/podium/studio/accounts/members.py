"""Members of a project and their roles, invitations, API tokens and the audit log."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from podium.studio.accounts.identity import Member, check_not_archived, record
from podium.studio.accounts.service import bring_back, check_not_crowd_worker, invite
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.store.enums import Role
from podium.studio.store.rows import ProjectRow, fetch_all
from podium.studio.store.tables import (
    BY_NO_LINK,
    ApiToken,
    AuditRecord,
    Invitation,
    Lease,
    Membership,
    ProjectQuery,
    QueryAssignment,
    RemovedMember,
    User,
)


class MemberRow(NamedTuple):
    """A member of a project."""

    id: int
    name: str
    email: str
    email_verified: bool
    role: str


@dataclass(frozen=True)
class ActiveInvitation:
    """An invitation that can still be used."""

    id: int
    role: str
    email: str | None
    uses_left: int
    expires_at: float


class TokenRow(NamedTuple):
    """An API token, without its secret."""

    id: int
    name: str
    created_at: float
    expires_at: float


class AuditRow(NamedTuple):
    """An action in a project, and who did it."""

    id: int
    at: float
    action: str
    details: JsonObject
    name: str | None
    email: str | None


def members_of(connection: Connection, project_id: int) -> list[MemberRow]:
    """The members of a project, owners first."""
    rows = fetch_all(
        connection,
        select(User.id, User.name, User.email, User.email_verified, Membership.role)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.project_id == project_id)
        .order_by(User.name, User.id),
        MemberRow,
    )
    order = {Role.OWNER.value: 0, Role.MANAGER.value: 1, Role.ASSESSOR.value: 2}
    return sorted(rows, key=lambda row: order[row.role])


def set_role(connection: Connection, who: Member, user_id: int, role: Role) -> None:
    """Give a member another role; nobody gives or takes more than they have."""
    check_not_archived(who.project)
    present = _role_of(connection, who, user_id)
    if not who.may(role) or not who.may(present):
        raise RefusedError(403, "Only owners may appoint owners or change their role.")
    if present is Role.OWNER and role is not Role.OWNER:
        _check_other_owner(connection, who.project.id)
    if role is not Role.ASSESSOR:
        check_not_crowd_worker(connection, user_id)
    connection.execute(
        update(Membership)
        .where(Membership.project_id == who.project.id, Membership.user_id == user_id)
        .values(role=role.value)
    )
    record(
        connection, who.person.id, who.project.id, "changed a role", user=user_id, role=role.value
    )


def remove_member(connection: Connection, who: Member, user_id: int) -> None:
    """Remove someone from a project. Their judgments stay; their leases end.

    Unless they leave on their own, no link brings them back, and the links that they may know are
    revoked, since they could come back with another account: of an assessor the one by which they
    came, of others, or where that is unknown, all.
    """
    present = _role_of(connection, who, user_id)
    if not who.may(present):
        raise RefusedError(403, "Only owners may remove owners.")
    if present is Role.OWNER:
        _check_other_owner(connection, who.project.id)
    queries = select(ProjectQuery.id).where(ProjectQuery.project_id == who.project.id)
    held = [Lease.user_id == user_id, Lease.query_id.in_(queries), ~Lease.released]
    now = time.time()
    freed = connection.scalars(select(Lease.query_id).where(*held)).all()
    if freed:
        connection.execute(update(Lease).where(*held).values(released=True, expires_at=now))
        # The next search for open work looks at these queries.
        connection.execute(
            update(ProjectQuery).where(ProjectQuery.id.in_(freed)).values(lease_expiry=0.0)
        )
    connection.execute(
        delete(QueryAssignment).where(
            QueryAssignment.user_id == user_id, QueryAssignment.query_id.in_(queries)
        )
    )
    membership = (Membership.project_id == who.project.id, Membership.user_id == user_id)
    came_by = connection.scalar(select(Membership.invitation_id).where(*membership))
    connection.execute(delete(Membership).where(*membership))
    ended = 0
    if user_id != who.person.id:
        known = Invitation.project_id == who.project.id
        if present is Role.ASSESSOR and came_by is not None:
            known &= Invitation.id == came_by
        ended = connection.execute(delete(Invitation).where(known)).rowcount
        connection.execute(insert(RemovedMember).values(project_id=who.project.id, user_id=user_id))
    record(
        connection, who.person.id, who.project.id, "removed a member", user=user_id,
        invitations_ended=ended,
    )  # fmt: skip


def make_invitation(
    connection: Connection,
    who: Member,
    role: Role,
    uses: int,
    days: float,
    email: str | None = None,
) -> str:
    """Create an invitation and return its secret, which is shown once."""
    _check_may_invite(who, role)
    record(connection, who.person.id, who.project.id, "created an invitation", role=role.value)
    return invite(connection, who.project.id, role, uses=uses, days=days, email=email)


def add_member(connection: Connection, who: Member, email: str, role: Role) -> bool:
    """Add the account with an address to a project; whether there is one that can be added.

    An address that was never verified may be someone else's: its owner gets an invitation.
    Members stay what they are, and those who were removed come back.
    """
    _check_may_invite(who, role)
    account = connection.execute(
        select(User.id, User.email_verified, Membership.role)
        .outerjoin(
            Membership,
            and_(Membership.user_id == User.id, Membership.project_id == who.project.id),
        )
        .where(User.email == email, User.disabled.is_(False))
    ).one_or_none()
    if account is None or (account.role is None and not account.email_verified):
        return False
    if account.role is None:
        check_not_crowd_worker(connection, account.id)
        bring_back(connection, who.project.id, account.id)
        connection.execute(
            insert(Membership).values(
                project_id=who.project.id,
                user_id=account.id,
                role=role.value,
                invitation_id=BY_NO_LINK,
            )
        )
        record(
            connection, who.person.id, who.project.id, "added a member", user=account.id,
            role=role.value,
        )  # fmt: skip
    return True


def _check_may_invite(who: Member, role: Role) -> None:
    check_not_archived(who.project)
    if not who.may(role):
        raise RefusedError(403, "Only owners may invite owners.")


def invitations_of(connection: Connection, project_id: int) -> list[ActiveInvitation]:
    """The active invitations."""
    return fetch_all(
        connection,
        select(
            Invitation.id,
            Invitation.role,
            Invitation.email,
            Invitation.uses_left,
            Invitation.expires_at,
        )
        .where(
            Invitation.project_id == project_id,
            Invitation.expires_at > time.time(),
            Invitation.uses_left > 0,
        )
        .order_by(Invitation.id),
        ActiveInvitation,
    )


def revoke_invitation(connection: Connection, who: Member, invitation_id: int) -> None:
    """Revoke an invitation."""
    gone = connection.execute(
        delete(Invitation).where(
            Invitation.id == invitation_id, Invitation.project_id == who.project.id
        )
    )
    if gone.rowcount == 0:
        raise RefusedError(404, "The invitation does not exist.")
    record(connection, who.person.id, who.project.id, "revoked an invitation")


def tokens_of(connection: Connection, user_id: int) -> list[TokenRow]:
    """Someone's API tokens, without their secrets."""
    return fetch_all(
        connection,
        select(ApiToken.id, ApiToken.name, ApiToken.created_at, ApiToken.expires_at)
        .where(ApiToken.user_id == user_id)
        .order_by(ApiToken.id),
        TokenRow,
    )


def revoke_token(connection: Connection, user_id: int, token_id: int) -> None:
    """Revoke one of someone's API tokens."""
    gone = connection.execute(
        delete(ApiToken).where(ApiToken.id == token_id, ApiToken.user_id == user_id)
    )
    if gone.rowcount == 0:
        raise RefusedError(404, "The API token does not exist.")
    record(connection, user_id, None, "revoked an API token")


def audit_of(
    connection: Connection, project: ProjectRow, before: int, limit: int
) -> list[AuditRow]:
    """What was done in a project, newest first, a page at a time."""
    return fetch_all(
        connection,
        select(
            AuditRecord.id,
            AuditRecord.at,
            AuditRecord.action,
            AuditRecord.details,
            User.name,
            User.email,
        )
        .outerjoin(User, User.id == AuditRecord.user_id)
        .where(
            AuditRecord.project_id == project.id,
            # SQLite gives the number of a deleted project to a new one.
            AuditRecord.at >= project.created_at,
            AuditRecord.id < before,
        )
        .order_by(AuditRecord.id.desc())
        .limit(limit),
        AuditRow,
    )


def _role_of(connection: Connection, who: Member, user_id: int) -> Role:
    role = connection.scalar(
        select(Membership.role)
        .where(Membership.project_id == who.project.id, Membership.user_id == user_id)
        .with_for_update()
    )
    if role is None:
        raise RefusedError(404, "The member does not exist.")
    return Role(role)


def _check_other_owner(connection: Connection, project_id: int) -> None:
    # Two owners who leave at the same time would each see the other one stay.
    connection.execute(
        select(Membership.user_id)
        .where(Membership.project_id == project_id, Membership.role == Role.OWNER.value)
        .order_by(Membership.user_id)
        .with_for_update()
    )
    owners = connection.scalar(
        select(func.count()).where(
            Membership.project_id == project_id, Membership.role == Role.OWNER.value
        )
    )
    if (owners or 0) < 2:
        raise RefusedError(409, "A project needs an owner: make another member an owner first.")

"""Accounts, signing in, API tokens and invitations."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, func, insert, or_, select, update

from podium.studio.errors import RefusedError
from podium.studio.store.database import storable
from podium.studio.store.enums import Role
from podium.studio.store.rows import InvitationRow, fetch_one
from podium.studio.store.tables import (
    ApiToken,
    AuthSession,
    CrowdWorker,
    Invitation,
    KnownAddress,
    Membership,
    PasswordReset,
    Project,
    RemovedMember,
    SignInFailure,
    User,
)
from podium.studio.store.tokens import digest, new_secret

_HASHER = PasswordHasher()
_SHORTEST = 10
_LONGEST = 1000
_ADDRESS = re.compile(r"(?!.*=\?)[\w.!#$%&'*+/=?^`{|}~-]+@[\w.-]+")
"""Without what mail programs read as more than an address: lists, comments, encoded words."""
_MOST_TOKENS = 50


@dataclass(frozen=True)
class BrowserSession:
    """A new browser session: the cookie's secret and the CSRF token."""

    secret: str
    csrf: str
    expires_at: float


def add_user(
    connection: Connection,
    email: str,
    name: str,
    password: str | None,
    *,
    admin: bool = False,
    subject: str | None = None,
    verified: bool = False,
) -> int:
    """Create an account, and return its id.

    Args:
        connection: A transaction.
        email: The address.
        name: Their display name.
        password: Their password, or None if they sign in with OpenID only.
        admin: Whether they administer the server.
        subject: Their identity at the OpenID provider.
        verified: Whether the address is verified.
    """
    email = normal_email(email)
    name = storable(name)
    if not name.strip() or len(name) > 200:
        raise RefusedError(422, "Enter a name of 1 to 200 characters.")
    if connection.scalar(select(User.id).where(User.email == email)) is not None:
        raise RefusedError(409, "An account with this address already exists. Sign in instead.")
    row = connection.execute(
        insert(User)
        .values(
            email=email,
            email_verified=verified,
            name=name.strip(),
            password=None if password is None else hash_password(password),
            subject=subject,
            is_admin=admin,
            disabled=False,
            created_at=time.time(),
        )
        .returning(User.id)
    )
    return int(row.scalar_one())


def normal_email(email: str) -> str:
    """An e-mail address in its normal form.

    Example:
        >>> normal_email(" Ann@Example.org ")
        'ann@example.org'
    """
    email = email.strip().lower()
    if len(email) > 320 or not _ADDRESS.fullmatch(email):
        raise RefusedError(422, "Enter a valid e-mail address.")
    return email


def hash_password(password: str) -> str:
    """The Argon2id hash of a password."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise RefusedError(
            422, "Choose a password of %(count)s characters or more.", count=_SHORTEST
        )
    return _HASHER.hash(password)


def check_password(connection: Connection, email: str, password: str) -> int | None:
    """The id of the account with this address and password, or None."""
    user = connection.execute(
        select(User.id, User.password, User.disabled).where(User.email == email.strip().lower())
    ).one_or_none()
    # A hash is verified in any case, so that response times do not reveal which accounts exist.
    known = user.password if user is not None and user.password else _nobodys_hash()
    right = len(password) <= _LONGEST and _matches(known, password)
    if user is None or not user.password or user.disabled or not right:
        return None
    if _HASHER.check_needs_rehash(user.password):
        connection.execute(
            update(User).where(User.id == user.id).values(password=_HASHER.hash(password))
        )
    return int(user.id)


def sign_in(connection: Connection, user_id: int, hours: float) -> BrowserSession:
    """Start a browser session, always with a new secret."""
    now = time.time()
    connection.execute(delete(AuthSession).where(AuthSession.expires_at < now))
    row = BrowserSession(new_secret(), new_secret(), now + 3600 * hours)
    connection.execute(
        insert(AuthSession).values(
            key=digest(row.secret), user_id=user_id, csrf=row.csrf, expires_at=row.expires_at
        )
    )
    return row


def link_to_provider(connection: Connection, user_id: int, subject: str) -> None:
    """Link an account to an OpenID identity, and end all other access to it.

    The account may have been created by someone other than the owner of the verified address.
    """
    connection.execute(
        update(User)
        .where(User.id == user_id)
        .values(subject=subject, password=None, email_verified=True)
    )
    end_access(connection, user_id)


def end_access(connection: Connection, user_id: int) -> None:
    """Sign someone out everywhere, end their API tokens and links to choose a new password."""
    connection.execute(delete(AuthSession).where(AuthSession.user_id == user_id))
    connection.execute(delete(PasswordReset).where(PasswordReset.user_id == user_id))
    connection.execute(delete(ApiToken).where(ApiToken.user_id == user_id))
    connection.execute(delete(KnownAddress).where(KnownAddress.user_id == user_id))


def forget_expired(connection: Connection, now: float) -> None:
    """Delete expired sign-in failures, sessions, invitations and known addresses."""
    connection.execute(
        delete(SignInFailure).where(
            SignInFailure.last_at < now - 86400, SignInFailure.locked_until < now
        )
    )
    connection.execute(delete(AuthSession).where(AuthSession.expires_at < now))
    connection.execute(
        delete(Invitation).where(or_(Invitation.expires_at < now, Invitation.uses_left <= 0))
    )
    connection.execute(delete(KnownAddress).where(KnownAddress.last_at < now - 180 * 86400))


def sign_out(connection: Connection, secret: str) -> None:
    """End a browser session."""
    connection.execute(delete(AuthSession).where(AuthSession.key == digest(secret)))


def new_api_token(connection: Connection, user_id: int, name: str, days: float) -> str:
    """Create an API token; its secret is shown once."""
    secret = "podium_" + new_secret()
    now = time.time()
    # Two requests at the same time: the second waits here, and counts the first one's token.
    connection.execute(select(User.id).where(User.id == user_id).with_for_update())
    connection.execute(
        delete(ApiToken).where(ApiToken.user_id == user_id, ApiToken.expires_at < now)
    )
    count = connection.scalar(select(func.count()).where(ApiToken.user_id == user_id))
    if (count or 0) >= _MOST_TOKENS:
        raise RefusedError(
            429, "An account has at most %(most)s API tokens: revoke one.", most=_MOST_TOKENS
        )
    connection.execute(
        insert(ApiToken).values(
            user_id=user_id,
            name=name[:200],
            key=digest(secret),
            created_at=now,
            expires_at=now + 86400 * days,
        )
    )
    return secret


def invite(
    connection: Connection,
    project_id: int,
    role: Role,
    *,
    uses: int = 1,
    days: float = 7,
    email: str | None = None,
) -> str:
    """Create an invitation and return the secret of its link."""
    secret = new_secret()
    connection.execute(
        insert(Invitation).values(
            project_id=project_id,
            role=role.value,
            key=digest(secret),
            uses_left=uses,
            expires_at=time.time() + 86400 * days,
            email=email,
        )
    )
    return secret


def invitation(connection: Connection, secret: str) -> InvitationRow | None:
    """An active invitation with its row locked, or None."""
    return fetch_one(
        connection,
        select(Invitation.__table__)
        .where(
            Invitation.key == digest(secret),
            Invitation.expires_at > time.time(),
            Invitation.uses_left > 0,
        )
        .with_for_update(),
        InvitationRow,
    )


def accept(connection: Connection, secret: str, user_id: int) -> int:
    """Accept an invitation for someone, and return the project's id."""
    row = invitation(connection, secret)
    if row is None:
        raise RefusedError(404, "This invitation has been used or has expired. Ask for a new one.")
    check_not_crowd_worker(connection, user_id)
    if connection.scalar(select(Project.archived).where(Project.id == row.project_id)):
        raise RefusedError(409, "The project is archived: ask its owner to restore it.")
    present = connection.scalar(
        select(Membership.role).where(
            Membership.project_id == row.project_id, Membership.user_id == user_id
        )
    )
    if present is None:
        if row.email == connection.scalar(select(User.email).where(User.id == user_id)):
            bring_back(connection, row.project_id, user_id)  # a manager has named them
        check_not_removed(connection, row.project_id, user_id)
        connection.execute(
            insert(Membership).values(
                project_id=row.project_id, user_id=user_id, role=row.role, invitation_id=row.id
            )
        )
        connection.execute(
            update(Invitation)
            .where(Invitation.id == row.id)
            .values(uses_left=Invitation.uses_left - 1)
        )
    return int(row.project_id)


def check_not_removed(connection: Connection, project_id: int, user_id: int) -> None:
    """Refuse someone whom a manager removed from the project, and say so."""
    removed = select(RemovedMember.user_id).where(
        RemovedMember.project_id == project_id, RemovedMember.user_id == user_id
    )
    if connection.scalar(removed) is not None:
        raise RefusedError(
            404,
            "A manager removed you from this project. Your judgments are kept. Ask them if this "
            "is a mistake.",
        )


def bring_back(connection: Connection, project_id: int, user_id: int) -> None:
    """Let someone become a member again whom a manager had removed."""
    connection.execute(
        delete(RemovedMember).where(
            RemovedMember.project_id == project_id, RemovedMember.user_id == user_id
        )
    )


def check_not_crowd_worker(connection: Connection, user_id: int) -> None:
    """Refuse to give a crowd worker's account more than it has.

    Anyone who knows the link and the worker's id signs in to it, without a password.
    """
    worker = select(CrowdWorker.user_id).where(CrowdWorker.user_id == user_id).limit(1)
    if connection.scalar(worker) is not None:
        raise RefusedError(
            409,
            "This is a crowd worker's account, which can only judge in one project. Sign out, and "
            "use an account of your own.",
        )


def _matches(known: str, password: str) -> bool:
    try:
        return _HASHER.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash(new_secret())

"""Accounts, signing in, API tokens and invitations."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, or_, select, update

from podium.studio.errors import RefusedError
from podium.studio.store.enums import Role
from podium.studio.store.tables import (
    ApiToken,
    AuthSession,
    Invitation,
    KnownAddress,
    Membership,
    SignInFailure,
    User,
)
from podium.studio.store.text import storable
from podium.studio.store.tokens import digest, new_secret

_HASHER = PasswordHasher()
_SHORTEST = 10
_LONGEST = 1000
_ADDRESS = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")


@dataclass(frozen=True)
class BrowserSession:
    """What a browser gets when someone signs in: a cookie, and the word that forms repeat."""

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
    """Make an account, and return its number.

    Args:
        connection: A transaction.
        email: The address.
        name: What they are called.
        password: What they sign in with, or None if it is by OpenID only.
        admin: Whether they run the server.
        subject: Who they are to the OpenID provider.
        verified: Whether someone vouches for the address.
    """
    email = normal_email(email)
    name = storable(name)
    if not name.strip() or len(name) > 200:
        raise RefusedError(422, "Give a name of 1 to 200 characters.")
    if connection.scalar(select(User.id).where(User.email == email)) is not None:
        raise RefusedError(409, "There is an account with this address: sign in.")
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
    """An address in the one form it is kept in.

    Example:
        >>> normal_email(" Ann@Example.org ")
        'ann@example.org'
    """
    email = email.strip().lower()
    if len(email) > 320 or not _ADDRESS.fullmatch(email):
        raise RefusedError(422, "Give an e-mail address.")
    return email


def hash_password(password: str) -> str:
    """What is kept of a password (Argon2id)."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise RefusedError(422, f"Choose a password of {_SHORTEST} characters or more.")
    return _HASHER.hash(password)


def check_password(connection: Connection, email: str, password: str) -> int | None:
    """The number of the account that an address and a password open, or None."""
    user = connection.execute(
        select(User.id, User.password, User.disabled).where(User.email == email.strip().lower())
    ).one_or_none()
    # A password is checked in any case: the time it takes tells nobody which accounts there are.
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
    """Start a browser's session, always under a new name."""
    now = time.time()
    connection.execute(delete(AuthSession).where(AuthSession.expires_at < now))
    found = BrowserSession(new_secret(), new_secret(), now + 3600 * hours)
    connection.execute(
        insert(AuthSession).values(
            key=digest(found.secret), user_id=user_id, csrf=found.csrf, expires_at=found.expires_at
        )
    )
    return found


def link_to_provider(connection: Connection, user_id: int, subject: str) -> None:
    """Let the owner of an address sign in by OpenID, and nobody else any more.

    Whoever made the account may not be who the provider says has the address: what they signed in
    with ends.
    """
    connection.execute(
        update(User)
        .where(User.id == user_id)
        .values(subject=subject, password=None, email_verified=True)
    )
    end_access(connection, user_id)


def end_access(connection: Connection, user_id: int) -> None:
    """Sign someone out everywhere and end their API tokens."""
    connection.execute(delete(AuthSession).where(AuthSession.user_id == user_id))
    connection.execute(delete(ApiToken).where(ApiToken.user_id == user_id))
    connection.execute(delete(KnownAddress).where(KnownAddress.user_id == user_id))


def forget_expired(connection: Connection, now: float) -> None:
    """Remove what no longer opens or holds anything: failures, sessions, invitations, addresses."""
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
    """End a browser's session."""
    connection.execute(delete(AuthSession).where(AuthSession.key == digest(secret)))


def new_api_token(connection: Connection, user_id: int, name: str, days: float) -> str:
    """A token for programs; it is shown once."""
    secret = "podium_" + new_secret()
    now = time.time()
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
    connection: Connection, project_id: int, role: Role, *, uses: int = 1, days: float = 7
) -> str:
    """The secret of a link that makes whoever opens it a member."""
    secret = new_secret()
    connection.execute(
        insert(Invitation).values(
            project_id=project_id,
            role=role.value,
            key=digest(secret),
            uses_left=uses,
            expires_at=time.time() + 86400 * days,
        )
    )
    return secret


def invitation(connection: Connection, secret: str) -> Any:
    """An invitation that still holds, its row locked, or None."""
    return connection.execute(
        select(Invitation.__table__)
        .where(
            Invitation.key == digest(secret),
            Invitation.expires_at > time.time(),
            Invitation.uses_left > 0,
        )
        .with_for_update()
    ).one_or_none()


def accept(connection: Connection, secret: str, user_id: int) -> int:
    """Make someone a member by an invitation, and return the project."""
    found = invitation(connection, secret)
    if found is None:
        raise RefusedError(404, "This invitation was used up or is too old: ask for another.")
    present = connection.scalar(
        select(Membership.role).where(
            Membership.project_id == found.project_id, Membership.user_id == user_id
        )
    )
    if present is None:
        connection.execute(
            insert(Membership).values(project_id=found.project_id, user_id=user_id, role=found.role)
        )
        connection.execute(
            update(Invitation)
            .where(Invitation.id == found.id)
            .values(uses_left=Invitation.uses_left - 1)
        )
    return int(found.project_id)


def _matches(known: str, password: str) -> bool:
    try:
        return _HASHER.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash(new_secret())

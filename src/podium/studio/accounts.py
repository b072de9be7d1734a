"""Accounts, signing in, API tokens and invitations."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import Connection, delete, insert, select, update

from podium.studio.errors import RefusedError
from podium.studio.kinds import Role
from podium.studio.secrets import digest, new_secret
from podium.studio.tables import ApiToken, AuthSession, Invitation, Membership, SignInFailure, User

_HASHER = PasswordHasher()
_SHORTEST = 10
_LONGEST = 1000
_ADDRESS = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")
_FREE_TRIES = 5
"""How many sign-ins may fail before there is a wait, which then doubles up to a limit."""
_LONGEST_WAIT = 900.0


@dataclass(frozen=True)
class SignedIn:
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
) -> int:
    """Make an account, and return its number."""
    email = normal_email(email)
    if not name.strip() or len(name) > 200:
        raise RefusedError(422, "Give a name of 1 to 200 characters.")
    if connection.scalar(select(User.id).where(User.email == email)) is not None:
        raise RefusedError(409, "There is an account with this address: sign in.")
    row = connection.execute(
        insert(User)
        .values(
            email=email,
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


def check_password(connection: Connection, email: str, password: str, address: str) -> int | None:
    """The number of the account that an address and a password open, or None.

    Failures are counted for the account and for where they come from; after some there is a wait.
    The caller commits in either case, so that the count stands.
    """
    now = time.time()
    keys = [f"account:{email.strip().lower()[:320]}", f"address:{address[:64]}"]
    for key in keys:
        row = connection.execute(
            select(SignInFailure.count, SignInFailure.locked_until).where(SignInFailure.key == key)
        ).one_or_none()
        if row is not None and row.locked_until > now:
            raise RefusedError(
                429, f"Too many tries: wait {int(row.locked_until - now) + 1} seconds."
            )
    user = connection.execute(
        select(User.id, User.password, User.disabled).where(User.email == email.strip().lower())
    ).one_or_none()
    # A password is checked in any case: the time it takes tells nobody which accounts there are.
    known = user.password if user is not None and user.password else _nobodys_hash()
    right = len(password) <= _LONGEST and _matches(known, password)
    if user is None or not user.password or user.disabled or not right:
        for key, free in zip(keys, (_FREE_TRIES, 4 * _FREE_TRIES), strict=True):
            _count_failure(connection, key, free, now)
        return None
    connection.execute(delete(SignInFailure).where(SignInFailure.key.in_(keys)))
    if _HASHER.check_needs_rehash(user.password):
        connection.execute(
            update(User).where(User.id == user.id).values(password=_HASHER.hash(password))
        )
    return int(user.id)


def sign_in(connection: Connection, user_id: int, hours: float) -> SignedIn:
    """Start a browser's session, always under a new name."""
    now = time.time()
    connection.execute(delete(AuthSession).where(AuthSession.expires_at < now))
    found = SignedIn(new_secret(), new_secret(), now + 3600 * hours)
    connection.execute(
        insert(AuthSession).values(
            key=digest(found.secret), user_id=user_id, csrf=found.csrf, expires_at=found.expires_at
        )
    )
    return found


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


def _count_failure(connection: Connection, key: str, free: int, now: float) -> None:
    count = connection.scalar(
        select(SignInFailure.count).where(SignInFailure.key == key).with_for_update()
    )
    count = (count or 0) + 1
    wait = min(2.0 ** (count - free), _LONGEST_WAIT) if count >= free else 0.0
    connection.execute(delete(SignInFailure).where(SignInFailure.key == key))
    connection.execute(insert(SignInFailure).values(key=key, count=count, locked_until=now + wait))


def _matches(known: str, password: str) -> bool:
    try:
        return _HASHER.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash(new_secret())

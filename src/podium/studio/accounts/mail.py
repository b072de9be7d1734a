"""E-mail to people: invitations, and links to choose a new password."""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, insert, select, update

from podium.studio.accounts.identity import Member, record
from podium.studio.accounts.service import end_access, hash_password, normal_email
from podium.studio.accounts.throttling import count_use, network
from podium.studio.errors import RefusedError
from podium.studio.jobs.outbox import enqueue_delivery
from podium.studio.messages import Message
from podium.studio.store.tables import PasswordReset, User
from podium.studio.store.tokens import digest, new_secret
from podium.studio.translations import Language, languages
from podium.studio.translations import language as language_named

_RESET_HOURS = 2.0
_FREE_INVITATIONS = 100
_FREE_RESETS = {"account": 3, "address": 20}


def mail_invitation(
    connection: Connection, who: Member, email: str, link: str, language: Language
) -> None:
    """Queue an e-mail with an invitation's link, in the language of the person who invites."""
    address = normal_email(email)
    count_use(connection, f"mail:{who.person.id}", _FREE_INVITATIONS)
    text = Message(
        "%(name)s invites you to judge search results in the project\n"
        '"%(project)s". Open this link to join:\n\n%(link)s\n\n'
        "If you do not know what this is about, ignore this e-mail.\n",
        # In one line each: they must not look like a part of the e-mail.
        name=" ".join(who.person.name.split()),
        project=" ".join(who.project.name.split()),
        link=link,
    )
    content = {
        "to": address,
        "subject": language.translate(Message("Invitation to judge search results")),
        "text": language.translate(text),
    }
    enqueue_delivery(connection, content)
    record(connection, who.person.id, who.project.id, "sent an invitation", email=address)


def count_reset(connection: Connection, email: str, address: str) -> None:
    """Count a request for a new password, or refuse it if there were too many; commit it."""
    count_use(connection, f"reset:{network(address)}", _FREE_RESETS["address"])
    count_use(connection, f"reset-of:{email.strip().lower()[:320]}", _FREE_RESETS["account"])


def request_reset(connection: Connection, email: str, public_url: str, language: Language) -> None:
    """Queue an e-mail with a link to choose a new password, if there is such an account.

    The answer is the same in any case: it must not reveal whether there is an account.

    Args:
        connection: A transaction.
        email: The address that someone gave.
        public_url: Where the server is.
        language: The language of the e-mail, if the account has none.
    """
    user = connection.execute(
        select(User.id, User.email, User.language).where(
            User.email == email.strip().lower(),
            User.disabled.is_(False),
            User.password.is_not(None),  # others sign in with OpenID, or not at all
        )
    ).one_or_none()
    if user is None:
        return
    secret, now = new_secret(), time.time()
    connection.execute(delete(PasswordReset).where(PasswordReset.expires_at < now))
    connection.execute(
        insert(PasswordReset).values(
            key=digest(secret), user_id=user.id, expires_at=now + 3600 * _RESET_HOURS
        )
    )
    text = Message(
        "Someone, probably you, asked for a new password. Open this link within two hours to\n"
        "choose one:\n\n%(link)s\n\n"
        "If it was not you, ignore this e-mail: your password stays as it is.\n",
        link=f"{public_url.rstrip('/')}/reset/{secret}",
    )
    if user.language in languages():
        language = language_named(user.language)
    content = {
        "to": user.email,
        "subject": language.translate(Message("A new password for Podium Studio")),
        "text": language.translate(text),
    }
    enqueue_delivery(connection, content)
    record(connection, None, None, "requested a password reset", user=user.id)


def is_reset(connection: Connection, secret: str) -> bool:
    """Whether a link to choose a new password can be used."""
    return _user_of(connection, secret) is not None


def use_reset(connection: Connection, secret: str, password: str) -> int:
    """Choose a new password by a link; all sessions and links end. Returns the account."""
    user_id = _user_of(connection, secret)
    if user_id is None:
        raise RefusedError(404, "This link has been used or has expired. Ask for a new one.")
    # They have read an e-mail that was sent to the address.
    connection.execute(
        update(User)
        .where(User.id == user_id)
        .values(password=hash_password(password), email_verified=True)
    )
    end_access(connection, user_id)
    record(connection, user_id, None, "chose a new password")
    return user_id


def _user_of(connection: Connection, secret: str) -> int | None:
    return connection.scalar(
        select(PasswordReset.user_id)
        .join(User, User.id == PasswordReset.user_id)
        .where(
            PasswordReset.key == digest(secret),
            PasswordReset.expires_at > time.time(),
            User.disabled.is_(False),
        )
        .with_for_update(of=PasswordReset)
    )

"""Account administration, for the web page, the API and the command line."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, func, null, or_, select, update

from podium.studio.accounts.identity import record
from podium.studio.accounts.service import (
    add_user,
    check_not_crowd_worker,
    check_password,
    end_access,
    hash_password,
)
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.store.database import storable
from podium.studio.store.rows import UserRow, fetch_all, fetch_one
from podium.studio.store.tables import (
    AuditRecord,
    CrowdWorker,
    Delivery,
    Invitation,
    LogEntry,
    Membership,
    Project,
    ProjectQuery,
    SignInFailure,
    User,
)
from podium.studio.store.tokens import new_secret
from podium.studio.translations import languages

_PAGE = 200


class AccountRow(NamedTuple):
    """An account as administrators see it."""

    id: int
    name: str
    email: str
    email_verified: bool
    is_admin: bool
    disabled: bool
    created_at: float
    has_password: bool
    has_openid: bool
    projects: int


class ServerAuditRow(NamedTuple):
    """An action on the server, and who did it."""

    id: int
    at: float
    user_id: int | None
    project_id: int | None
    action: str
    details: JsonObject
    name: str | None


def accounts(connection: Connection, *, search: str = "", after: int = 0) -> list[AccountRow]:
    """Accounts ordered by id, a page at a time, with their number of projects.

    Args:
        connection: Where to look.
        search: A part of a name or address.
        after: The last id seen.
    """
    projects = (
        select(func.count()).where(Membership.user_id == User.id).correlate(User).scalar_subquery()
    )
    statement = select(
        User.id, User.name, User.email, User.email_verified, User.is_admin, User.disabled,
        User.created_at, User.password.is_not(None).label("has_password"),
        User.subject.is_not(None).label("has_openid"), projects.label("projects"),
    ).where(User.id > after)  # fmt: skip
    if search:
        part = search[:200]
        names = (each.icontains(part, autoescape=True) for each in (User.name, User.email))
        statement = statement.where(or_(*names))
    return fetch_all(connection, statement.order_by(User.id).limit(_PAGE), AccountRow)


def account_by_id(connection: Connection, user_id: int) -> UserRow:
    """An account's row, locked."""
    statement = select(User.__table__).where(User.id == user_id).with_for_update()
    row = fetch_one(connection, statement, UserRow)
    if row is None:
        raise RefusedError(404, "The account does not exist.")
    return row


def set_disabled(connection: Connection, by: int | None, user_id: int, *, disabled: bool) -> None:
    """Disable an account, which signs it out everywhere, or enable it again."""
    row = account_by_id(connection, user_id)
    if disabled:
        _check_other_admin(connection, row)
        end_access(connection, user_id)
    connection.execute(update(User).where(User.id == user_id).values(disabled=disabled))
    what = "disabled an account" if disabled else "enabled an account"
    record(connection, by, None, what, user=user_id)


def set_admin(connection: Connection, by: int | None, user_id: int, *, admin: bool) -> None:
    """Grant or revoke the administrator role."""
    row = account_by_id(connection, user_id)
    if admin:
        check_not_crowd_worker(connection, user_id)
    else:
        _check_other_admin(connection, row)
    connection.execute(update(User).where(User.id == user_id).values(is_admin=admin))
    what = "appointed an administrator" if admin else "removed an administrator"
    record(connection, by, None, what, user=user_id)


def reset_password(connection: Connection, by: int | None, user_id: int) -> str:
    """Set a new password, which is shown once; sessions and API tokens end."""
    account_by_id(connection, user_id)
    password = new_secret()[:20]
    connection.execute(
        update(User).where(User.id == user_id).values(password=hash_password(password))
    )
    end_access(connection, user_id)
    record(connection, by, None, "reset a password", user=user_id)
    return password


def create_account(connection: Connection, by: int, email: str, name: str) -> tuple[int, str]:
    """Create an account; returns it and its password, which is shown once."""
    password = new_secret()[:20]
    user_id = add_user(connection, email, name, password)
    record(connection, by, None, "created an account", user=user_id)
    return user_id, password


def rename(connection: Connection, user_id: int, name: str) -> None:
    """Change one's own name."""
    name = " ".join(storable(name).split())
    if not 1 <= len(name) <= 200:
        raise RefusedError(422, "Enter a name of 1 to 200 characters.")
    connection.execute(update(User).where(User.id == user_id).values(name=name))
    record(connection, user_id, None, "changed the name")


def change_password(connection: Connection, user_id: int, old: str, new: str) -> None:
    """Change one's own password; all other sessions and API tokens end."""
    row = account_by_id(connection, user_id)
    if row.password is None:
        raise RefusedError(409, "You sign in with OpenID: change your password there.")
    if check_password(connection, row.email, old) is None:
        raise RefusedError(403, "The old password is wrong.")
    connection.execute(update(User).where(User.id == user_id).values(password=hash_password(new)))
    end_access(connection, user_id)
    record(connection, user_id, None, "changed the password")


def end_access_of(connection: Connection, by: int | None, user_id: int) -> None:
    """Sign someone out everywhere and end their API tokens."""
    account_by_id(connection, user_id)
    end_access(connection, user_id)
    record(connection, by, None, "ended sessions and API tokens", user=user_id)


def anonymise(connection: Connection, by: int | None, user_id: int) -> None:
    """Remove someone's personal data. Their judgments stay, under their account id."""
    row = account_by_id(connection, user_id)
    _check_other_admin(connection, row)
    end_access(connection, user_id)
    connection.execute(delete(Membership).where(Membership.user_id == user_id))
    connection.execute(delete(Invitation).where(Invitation.email == row.email))
    connection.execute(
        delete(SignInFailure).where(
            or_(
                SignInFailure.key.in_([f"account:{row.email}", f"reset-of:{row.email}"]),
                SignInFailure.key.startswith(f"pair:{row.email}|", autoescape=True),
            )
        )
    )
    personal = and_(
        AuditRecord.user_id == user_id,
        AuditRecord.action.in_(["signed in", "failed to sign in", "created an API token"]),
    )
    # Those who fail to sign in may have typed it in capital letters.
    address = func.lower(func.trim(AuditRecord.details["email"].as_string()))
    connection.execute(
        update(AuditRecord).where(or_(personal, address == row.email)).values(details={})
    )
    connection.execute(delete(Delivery).where(Delivery.content["to"].as_string() == row.email))
    _forget_comments(connection, user_id)
    connection.execute(
        update(CrowdWorker)
        .where(CrowdWorker.user_id == user_id)
        .values(external_id=f"removed:{user_id}")  # no id of a platform has a colon
    )
    connection.execute(
        update(User)
        .where(User.id == user_id)
        .values(
            email=f"removed-{user_id}@invalid",
            name=f"Person {user_id}",
            email_verified=False,
            password=None,
            subject=None,
            language="",
            is_admin=False,
            disabled=True,
        )
    )
    record(connection, by, None, "anonymised an account", user=user_id)


def _forget_comments(connection: Connection, user_id: int) -> None:
    """Remove what someone wrote about judgments in their own words."""
    written = or_(LogEntry.user_id == user_id, LogEntry.manager_id == user_id)
    connection.execute(
        update(LogEntry).where(written, LogEntry.reason.is_not(None)).values(reason=None)
    )
    rows = connection.execute(
        select(LogEntry.id, LogEntry.replies, Project.questions)
        .join(ProjectQuery, ProjectQuery.id == LogEntry.query_id)
        .join(Project, Project.id == ProjectQuery.project_id)
        .where(LogEntry.user_id == user_id, LogEntry.replies.is_not(None))
    ).all()
    for row in rows:
        options = {each["name"] for each in row.questions if each["options"]}
        kept = {name: reply for name, reply in (row.replies or {}).items() if name in options}
        connection.execute(
            update(LogEntry).where(LogEntry.id == row.id).values(replies=kept or null())
        )


def set_language(connection: Connection, user_id: int, language: str) -> None:
    """Choose the language of someone's pages; an empty one is what their browser asks for."""
    if language and language not in languages():
        raise RefusedError(422, "This language is not available.")
    connection.execute(update(User).where(User.id == user_id).values(language=language))


def server_audit(connection: Connection, before: int, limit: int) -> list[ServerAuditRow]:
    """The server's audit log, newest first, a page at a time."""
    return fetch_all(
        connection,
        select(AuditRecord.__table__, User.name)
        .outerjoin(User, User.id == AuditRecord.user_id)
        .where(AuditRecord.id < before)
        .order_by(AuditRecord.id.desc())
        .limit(limit),
        ServerAuditRow,
    )


def _check_other_admin(connection: Connection, row: UserRow) -> None:
    if not row.is_admin or row.disabled:
        return
    admins = connection.scalars(
        select(User.id)
        .where(User.is_admin.is_(True), User.disabled.is_(False))
        .order_by(User.id)
        .with_for_update()
    ).all()
    if len(admins) < 2:
        raise RefusedError(409, "The server needs an administrator: appoint another one first.")

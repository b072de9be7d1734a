"""Accounts and the server's audit log, for administrators; one's own password and language."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts import administration, throttling
from podium.studio.accounts.identity import Person
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.text import storable
from podium.studio.web.access import AnAdmin, AnyPerson, check_browser
from podium.studio.web.routes.judging import Number

router = APIRouter(prefix="/api/v1", tags=["accounts"])

NEWEST = 2**62


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AccountOut(BaseModel):
    """An account."""

    user: int
    name: str
    email: str
    email_verified: bool
    is_admin: bool
    disabled: bool
    has_password: bool
    has_openid: bool
    projects: int
    created_at: float


class AccountChange(_Body):
    """What to change; what is left out stays."""

    disabled: bool | None = None
    is_admin: bool | None = None


class NewPasswordOut(BaseModel):
    """A password that is told once."""

    password: str


class Anonymisation(_Body):
    """What anonymising needs: the account's address."""

    email: str = Field(max_length=320)


class PasswordChange(_Body):
    """One's old password and the new one."""

    old: str = Field(max_length=1000)
    new: str = Field(max_length=1000)


class LanguageChange(_Body):
    """The language of one's pages and of messages to one."""

    language: str = Field(max_length=20)
    """Its tag, such as ``de``; empty for what each request asks for."""


class ServerAuditOut(BaseModel):
    """Something that was done on the server."""

    id: int
    at: float
    user: int | None
    who: str | None
    project: int | None
    action: str
    details: JsonObject


@router.get("/accounts", operation_id="list_accounts")
def list_accounts(
    request: Request,
    _who: AnAdmin,
    search: Annotated[str, Parameter(max_length=200)] = "",
    after: Annotated[int, Parameter(ge=0, lt=NEWEST, description="The last number seen.")] = 0,
) -> list[AccountOut]:
    """Accounts in the order of their numbers, 200 at a time."""
    rows = reading(
        request.app.state.engine,
        lambda c: administration.accounts(c, search=storable(search), after=after),
    )
    return [
        AccountOut(user=row.id, **{name: getattr(row, name) for name in _SHOWN}) for row in rows
    ]


_SHOWN = AccountOut.model_fields.keys() - {"user"}


@router.patch("/accounts/{user}", status_code=204, operation_id="change_account")
def change_account(request: Request, who: AnAdmin, user: Number, change: AccountChange) -> None:
    """Disable or enable an account, or make its owner an administrator or no longer one.

    An administrator is appointed in a browser only.
    """
    if change.is_admin:
        check_browser(who)

    def work(connection: Connection) -> None:
        administration.account_numbered(connection, user)
        if change.disabled is not None:
            administration.set_disabled(connection, who.id, user, disabled=change.disabled)
        if change.is_admin is not None:
            administration.set_admin(connection, who.id, user, admin=change.is_admin)

    in_transaction(request.app.state.engine, work)


@router.post("/accounts/{user}/password", operation_id="reset_password")
def reset_password(request: Request, who: AnAdmin, user: Number) -> NewPasswordOut:
    """Give someone a new password. Their sessions and API tokens end.

    In a browser only: an API token would live on in that account.
    """
    check_browser(who)
    word = in_transaction(
        request.app.state.engine, lambda c: administration.reset_password(c, who.id, user)
    )
    return NewPasswordOut(password=word)


@router.delete("/accounts/{user}/access", status_code=204, operation_id="end_access")
def end_access(request: Request, who: AnAdmin, user: Number) -> None:
    """Sign someone out everywhere and end their API tokens."""
    in_transaction(
        request.app.state.engine, lambda c: administration.end_someones_access(c, who.id, user)
    )


@router.post("/accounts/{user}/anonymise", status_code=204, operation_id="anonymise_account")
def anonymise(request: Request, who: AnAdmin, user: Number, confirmation: Anonymisation) -> None:
    """Forget who someone is, for good; judgments stay under the account's number."""
    anonymise_named(request, who, user, confirmation.email)


@router.post("/me/password", status_code=204, operation_id="change_password")
def change_password(request: Request, who: AnyPerson, change: PasswordChange) -> None:
    """Change your password. All your sessions and API tokens end."""
    engine = request.app.state.engine
    address = request.client.host if request.client else ""

    def work(connection: Connection) -> None:
        administration.change_password(connection, who.id, change.old, change.new)
        throttling.take_back(connection, who.id, who.email, address)

    # Whoever found a browser unlocked must not guess the password there.
    in_transaction(engine, lambda c: throttling.count_attempt(c, who.email, address))
    in_transaction(engine, work)


@router.put("/me/language", status_code=204, operation_id="set_language")
def set_language(request: Request, who: AnyPerson, change: LanguageChange) -> None:
    """Choose the language of your pages and of messages to you."""
    in_transaction(
        request.app.state.engine,
        lambda c: administration.set_language(c, who.id, change.language),
    )


@router.get("/audit", operation_id="list_server_audit")
def server_audit(
    request: Request,
    _who: AnAdmin,
    before: Annotated[int, Parameter(ge=1, le=NEWEST)] = NEWEST,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
) -> list[ServerAuditOut]:
    """What was done on the server apart from judging, newest first."""
    rows = reading(
        request.app.state.engine, lambda c: administration.server_audit(c, before, limit)
    )
    return [
        ServerAuditOut(
            id=row.id, at=row.at, user=row.user_id, who=row.name, project=row.project_id,
            action=row.action, details=row.details,
        )
        for row in rows
    ]  # fmt: skip


def anonymise_named(request: Request, who: Person, user: int, email: str) -> None:
    """Anonymise an account, if whoever asks for it can name its address."""

    def work(connection: Connection) -> None:
        row = administration.account_numbered(connection, user)
        if email.strip().lower() != row.email:
            raise RefusedError(409, "Type the account's address to anonymise it for good.")
        administration.anonymise(connection, who.id, user)

    in_transaction(request.app.state.engine, work)

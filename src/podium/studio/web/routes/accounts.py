"""Accounts and the server's audit log, for administrators; one's own account and API tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query as Parameter
from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from podium.studio.accounts import administration, throttling
from podium.studio.accounts.identity import record
from podium.studio.accounts.members import revoke_token, tokens_of
from podium.studio.accounts.service import check_not_crowd_worker, new_api_token
from podium.studio.errors import RefusedError
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.store.database import storable
from podium.studio.translations import languages
from podium.studio.web.access import (
    NEWEST,
    Before,
    Number,
    RequiresAdmin,
    RequiresPerson,
    check_browser,
)
from podium.studio.web.actions import Form, Routes, read, write
from podium.studio.web.cookies import drop_cookie, set_cookie
from podium.studio.web.languages import COOKIE as LANGUAGE_COOKIE
from podium.studio.web.languages import keep_language
from podium.studio.web.pages import THEME_COOKIE, THEMES, render

routes = Routes("accounts")

_AUDIT_PAGE = 100
_ACCOUNTS_PAGE = 200
_TOKEN_DAYS = (1, 7, 30, 90, 365)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AccountOut(BaseModel):
    """An account."""

    user: int = Field(validation_alias="id")
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
    """A password that is shown once."""

    user: int
    password: str


class NewAccount(_Body):
    """An account to create."""

    name: str = Field(max_length=200)
    email: str = Field(max_length=320)


class NameChange(_Body):
    """One's new name."""

    name: str = Field(max_length=200)


class Anonymisation(_Body):
    """What anonymising needs: the account's address."""

    email: str = Field(max_length=320)


class PasswordChange(_Body):
    """One's old password and the new one."""

    old: str = Field(max_length=1000)
    new: str = Field(max_length=1000)


class TokenIn(_Body):
    """An API token to make."""

    name: Annotated[str, AfterValidator(lambda text: storable(text).strip()[:200])]
    days: str


class LanguageChange(_Body):
    """The language of one's pages and of messages to one."""

    language: str = Field(max_length=20)
    """Its tag, such as ``de``; empty for what each request asks for."""


class ServerAuditOut(BaseModel):
    """Something that was done on the server."""

    id: int
    at: float
    user: int | None = Field(validation_alias="user_id")
    who: str | None = Field(validation_alias="name")
    project: int | None = Field(validation_alias="project_id")
    action: str
    details: JsonObject


@routes.page("/accounts")
def accounts_page(
    request: Request,
    who: RequiresAdmin,
    search: Annotated[str, Parameter(max_length=200)] = "",
    after: Annotated[int, Parameter(ge=0, lt=NEWEST)] = 0,
) -> Response:
    """All accounts."""
    rows = list_accounts(request, who, search, after)
    more = rows[-1].id if len(rows) == _ACCOUNTS_PAGE else None
    values = {"accounts": rows, "search": search, "more": more}
    return render(request, "accounts.html", values, person=who)


@routes.page("/account")
def account_page(request: Request, who: RequiresPerson) -> Response:
    """One's own account."""
    return render(request, "account.html", {"languages": languages()}, person=who)


@routes.page("/audit")
def audit_page(request: Request, who: RequiresAdmin, before: Before = None) -> Response:
    """What was done on the server."""
    rows = list_server_audit(request, who, before or NEWEST, _AUDIT_PAGE)
    older = rows[-1].id if len(rows) == _AUDIT_PAGE else None
    return render(request, "server_audit.html", {"rows": rows, "older": older}, person=who)


@routes.page("/tokens")
def tokens_page(request: Request, who: RequiresPerson) -> Response:
    """One's API tokens."""
    values = {"tokens": read(request, lambda c: tokens_of(c, who.id)), "days": _TOKEN_DAYS}
    return render(request, "tokens.html", values, person=who)


@routes.action("GET", "/accounts", response_model=list[AccountOut])
def list_accounts(
    request: Request,
    _who: RequiresAdmin,
    search: Annotated[str, Parameter(max_length=200)] = "",
    after: Annotated[int, Parameter(ge=0, lt=NEWEST, description="The last number seen.")] = 0,
) -> list[administration.AccountRow]:
    """Accounts in the order of their numbers, 200 at a time."""
    return read(request, lambda c: administration.accounts(c, search=storable(search), after=after))


@routes.action("POST", "/accounts", form="/accounts", page=accounts_page, status_code=201)
def create_account(request: Request, who: RequiresAdmin, body: NewAccount) -> NewPasswordOut:
    """Create an account with a new password. In a browser only."""
    check_browser(who)
    user, password = write(
        request, lambda c: administration.create_account(c, who.id, body.email, body.name)
    )
    return NewPasswordOut(user=user, password=password)


@routes.action(
    "PATCH",
    "/accounts/{user}",
    form="/accounts/{user}",
    page=accounts_page,
    to="/accounts",
    status_code=204,
)
def change_account(
    request: Request, who: RequiresAdmin, user: Number, change: AccountChange
) -> None:
    """Disable or enable an account, or make its owner an administrator or no longer one.

    Administrators are appointed, and their accounts changed, in a browser only.
    """

    def work(connection: Connection) -> None:
        if administration.account_by_id(connection, user).is_admin or change.is_admin:
            check_browser(who)
        if change.disabled is not None:
            administration.set_disabled(connection, who.id, user, disabled=change.disabled)
        if change.is_admin is not None:
            administration.set_admin(connection, who.id, user, admin=change.is_admin)

    write(request, work)


@routes.action(
    "POST", "/accounts/{user}/password", form="/accounts/{user}/password", page=accounts_page
)
def reset_password(request: Request, who: RequiresAdmin, user: Number) -> NewPasswordOut:
    """Give someone a new password. Their sessions and API tokens end.

    In a browser only: an API token would live on in that account.
    """
    check_browser(who)
    password = write(request, lambda c: administration.reset_password(c, who.id, user))
    return NewPasswordOut(user=user, password=password)


@routes.action(
    "DELETE",
    "/accounts/{user}/access",
    form="/accounts/{user}/access/end",
    page=accounts_page,
    to="/accounts",
    status_code=204,
)
def end_access(request: Request, who: RequiresAdmin, user: Number) -> None:
    """Sign someone out everywhere and end their API tokens."""
    write(request, lambda c: administration.end_access_of(c, who.id, user))


@routes.action(
    "POST",
    "/accounts/{user}/anonymise",
    form="/accounts/{user}/anonymise",
    page=accounts_page,
    to="/accounts",
    status_code=204,
)
def anonymise_account(
    request: Request, who: RequiresAdmin, user: Number, confirmation: Anonymisation
) -> None:
    """Forget who someone is, for good; judgments stay under the account's number."""

    def work(connection: Connection) -> None:
        row = administration.account_by_id(connection, user)
        if confirmation.email.strip().lower() != row.email:
            raise RefusedError(409, "Type the account's address to anonymise it for good.")
        administration.anonymise(connection, who.id, user)

    write(request, work)


@routes.action(
    "POST",
    "/me/password",
    form="/account/password",
    page=account_page,
    to="/sign-in",
    status_code=204,
)
def change_password(request: Request, who: RequiresPerson, change: PasswordChange) -> None:
    """Change your password. All your sessions and API tokens end."""
    address = request.client.host if request.client else ""

    def work(connection: Connection) -> None:
        administration.change_password(connection, who.id, change.old, change.new)
        throttling.take_back(connection, who.id, who.email, address)

    # Someone who finds a browser unlocked must not guess the password there.
    write(request, lambda c: throttling.count_attempt(c, who.email, address))
    write(request, work)


@routes.action(
    "PUT", "/me/name", form="/account/name", page=account_page, to="/account", status_code=204
)
def change_name(request: Request, who: RequiresPerson, change: NameChange) -> None:
    """Change your name, which is shown wherever you judged."""
    write(request, lambda c: administration.rename(c, who.id, change.name))


@routes.pages.post("/account/theme")
def keep_theme(request: Request, _who: RequiresPerson, form: Form) -> Response:
    """Keep a theme in this browser."""
    chosen = str(form.get("theme", ""))
    response = RedirectResponse("/account", 303)
    if chosen in THEMES:
        set_cookie(request, response, THEME_COOKIE, chosen, 365 * 24 * 3600)
    else:
        drop_cookie(request, response, THEME_COOKIE)
    return response


@routes.action("PUT", "/me/language", status_code=204)
def set_language(request: Request, who: RequiresPerson, change: LanguageChange) -> None:
    """Choose the language of your pages and of messages to you."""
    write(request, lambda c: administration.set_language(c, who.id, change.language))


@routes.pages.post("/account/language")
def keep_own_language(request: Request, who: RequiresPerson, form: Form) -> Response:
    """Choose the language; the browser keeps it for when nobody is signed in."""
    code = str(form.get("language", ""))[:20]
    set_language(request, who, LanguageChange(language=code))
    response = RedirectResponse("/account", 303)
    if code:
        keep_language(request, response, code)
    else:
        drop_cookie(request, response, LANGUAGE_COOKIE)
    return response


@routes.action("GET", "/audit", response_model=list[ServerAuditOut])
def list_server_audit(
    request: Request,
    _who: RequiresAdmin,
    before: Annotated[int, Parameter(ge=1, le=NEWEST)] = NEWEST,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
) -> list[administration.ServerAuditRow]:
    """What was done on the server apart from judging, newest first."""
    return read(request, lambda c: administration.server_audit(c, before, limit))


@routes.action("POST", None, form="/tokens", page=tokens_page)
def make_token(request: Request, who: RequiresPerson, body: TokenIn) -> str:
    """Make an API token; it is shown once."""
    check_browser(who)
    if not body.name or body.days not in map(str, _TOKEN_DAYS):
        raise RefusedError(422, Message("Enter a name and an expiry for the token."))

    def work(connection: Connection) -> str:
        check_not_crowd_worker(connection, who.id)
        record(connection, who.id, None, "created an API token", name=body.name)
        return new_api_token(connection, who.id, body.name, int(body.days))

    return write(request, work)


@routes.action("POST", None, form="/tokens/{token}/revoke", to="/tokens")
def end_token(request: Request, who: RequiresPerson, token: Number) -> None:
    """End an API token."""
    write(request, lambda c: revoke_token(c, who.id, token))

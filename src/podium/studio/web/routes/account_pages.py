"""Pages about accounts: all of them for administrators, one's own for everyone."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response

from podium.studio.accounts import administration
from podium.studio.accounts.identity import Person
from podium.studio.errors import RefusedError
from podium.studio.store.database import reading
from podium.studio.store.text import storable
from podium.studio.translations import languages
from podium.studio.web.access import AnAdmin, AnyPerson
from podium.studio.web.cookies import drop_cookie
from podium.studio.web.forms import FormValues, read_csrf
from podium.studio.web.languages import COOKIE as LANGUAGE_COOKIE
from podium.studio.web.languages import keep_language
from podium.studio.web.pages import render
from podium.studio.web.routes import accounts
from podium.studio.web.routes.accounts import AccountChange, PasswordChange
from podium.studio.web.routes.judging import Number

router = APIRouter(dependencies=[Depends(read_csrf)], include_in_schema=False)

_AUDIT_PAGE = 100
_CHANGES = {
    "disable": AccountChange(disabled=True),
    "enable": AccountChange(disabled=False),
    "make-admin": AccountChange(is_admin=True),
    "take-admin": AccountChange(is_admin=False),
}


@router.get("/accounts")
def accounts_page(request: Request, who: AnAdmin, search: str = "", after: str = "") -> Response:
    """All accounts."""
    return _accounts_page(request, who, search=search, after=_number(after, 0))


@router.post("/accounts/{user}/{action}")
def act(request: Request, who: AnAdmin, user: Number, action: str, form: FormValues) -> Response:
    """Do something with an account."""
    try:
        if action in _CHANGES:
            accounts.change_account(request, who, user, _CHANGES[action])
        elif action == "end-access":
            accounts.end_access(request, who, user)
        elif action == "anonymise":
            accounts.anonymise_named(request, who, user, form.get("email", ""))
        elif action == "reset-password":
            new_password = accounts.reset_password(request, who, user)
            return _accounts_page(request, who, secret=new_password.password, secret_of=user)
        else:
            raise RefusedError(404, "Page not found.")
    except RefusedError as error:
        return _accounts_page(request, who, problem=error.problem, status=error.status)
    return RedirectResponse("/accounts", 303)


@router.get("/account")
def account_page(request: Request, who: AnyPerson) -> Response:
    """One's own account."""
    return _account_page(request, who)


@router.post("/account/password")
def change_password(request: Request, who: AnyPerson, form: FormValues) -> Response:
    """Change one's password; signs in again with the new one."""
    old, new = form.get("old", "")[:1000], form.get("new", "")[:1000]
    try:
        accounts.change_password(request, who, PasswordChange(old=old, new=new))
    except RefusedError as error:
        return _account_page(request, who, error.problem, error.status)
    return RedirectResponse("/sign-in", 303)


@router.post("/account/language")
def set_language(request: Request, who: AnyPerson, form: FormValues) -> Response:
    """Choose the language of one's pages; the browser keeps it for when one has signed out."""
    code = form.get("language", "")[:20]
    try:
        accounts.set_language(request, who, accounts.LanguageChange(language=code))
    except RefusedError as error:
        return _account_page(request, who, error.problem, error.status)
    response = RedirectResponse("/account", 303)
    if code:
        keep_language(request, response, code)
    else:
        drop_cookie(request, response, LANGUAGE_COOKIE)
    return response


@router.get("/audit")
def audit_page(request: Request, who: AnAdmin, before: str = "") -> Response:
    """What was done on the server."""
    newest = _number(before, accounts.NEWEST)
    rows = reading(
        request.app.state.engine, lambda c: administration.server_audit(c, newest, _AUDIT_PAGE)
    )
    older = rows[-1].id if len(rows) == _AUDIT_PAGE else None
    return render(request, "server_audit.html", {"rows": rows, "older": older}, person=who)


def _account_page(request: Request, who: Person, problem: str = "", status: int = 200) -> Response:
    values = {"problem": problem, "languages": languages()}
    return render(request, "account.html", values, person=who, status=status)


def _accounts_page(
    request: Request,
    who: Person,
    *,
    search: str = "",
    after: int = 0,
    problem: str = "",
    secret: str = "",
    secret_of: int = 0,
    status: int = 200,
) -> Response:
    rows = reading(
        request.app.state.engine,
        lambda c: administration.accounts(c, search=storable(search), after=after),
    )
    values = {
        "accounts": rows, "search": search, "problem": problem, "secret": secret,
        "secret_of": secret_of, "more": rows[-1].id if len(rows) == 200 else None,
    }  # fmt: skip
    return render(request, "accounts.html", values, person=who, status=status)


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else otherwise

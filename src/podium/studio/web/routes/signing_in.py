"""Signing in and out, accepting invitations, and choosing a new password by a link."""

from __future__ import annotations

import hmac
from typing import Annotated
from urllib.parse import urlencode, urlsplit

import structlog
from fastapi import Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy import Connection, select

from podium.studio.accounts import mail, throttling
from podium.studio.accounts import service as accounts
from podium.studio.accounts.identity import record
from podium.studio.errors import RefusedError
from podium.studio.messages import Message
from podium.studio.store.database import storable
from podium.studio.store.tables import Project, User
from podium.studio.store.tokens import digest, new_secret
from podium.studio.web.access import COOKIE, person_of, signed_in
from podium.studio.web.actions import Routes, read, write
from podium.studio.web.cookies import cookie, drop_cookie, set_cookie
from podium.studio.web.languages import keep_language, language_of
from podium.studio.web.pages import render

routes = Routes()

_LOG = structlog.get_logger("podium.studio")
_FORM_COOKIE = "podium_form"
"""Before signing in there is no session: this cookie shows that a form is ours."""

Text = Annotated[str, Form(max_length=2000)]


def back_to(request: Request) -> str:
    """The part of an address that leads back to a page after signing in."""
    query = f"?{request.url.query}" if request.url.query else ""
    return urlencode({"to": request.url.path + query})


@routes.pages.get("/sign-in")
def sign_in_page(request: Request, to: str = "/") -> Response:
    """Ask for address and password."""
    if person_of(request) is not None:
        return RedirectResponse(inside(to), 303)
    return _sign_in_page(request, to)


@routes.pages.post("/sign-in")
def sign_in(
    request: Request, email: Text = "", password: Text = "", form: Text = "", to: Text = "/"
) -> Response:
    """Sign in by address and password."""
    check_form(request, form)
    address = request.client.host if request.client else ""

    email = storable(email).strip()

    def work(connection: Connection) -> int | None:
        user_id = accounts.check_password(connection, email, password)
        if user_id is not None:
            throttling.take_back(connection, user_id, email, address)
        if user_id is None:
            # As in the account, so that anonymising it finds what was typed.
            typed = email.lower()[:320]
            record(connection, None, None, "failed to sign in", address=address, email=typed)
        else:
            record(connection, user_id, None, "signed in", address=address)
        return user_id

    try:
        write(request, lambda c: throttling.count_attempt(c, email, address))
        user_id = write(request, work)
    except RefusedError as error:
        _LOG.warning("sign-in", outcome="throttled", address=address)
        return _sign_in_page(request, to, email, error.problem, error.status)
    outcome = "failed" if user_id is None else "signed in"
    _LOG.info("sign-in", outcome=outcome, user=user_id, address=address)
    if user_id is None:
        return _sign_in_page(request, to, email, Message("Wrong e-mail or password."), 401)
    return start_session(request, user_id, inside(to))


@routes.pages.post("/sign-out")
def sign_out(request: Request) -> Response:
    """Sign out of this browser."""
    signed_in(request)
    secret = cookie(request, COOKIE)
    write(request, lambda c: accounts.sign_out(c, secret))
    response = RedirectResponse("/sign-in", 303)
    drop_cookie(request, response, COOKIE)
    return response


@routes.pages.get("/join/{secret}")
def join_page(request: Request, secret: str) -> Response:
    """Show what an invitation is to, and ask who is joining."""
    person = person_of(request)
    name = read(request, lambda c: _invited_to(c, secret))
    form = new_secret()
    page = render(
        request, "join.html", {"project": name, "secret": secret, "form": form, "problem": ""},
        person=person,
    )  # fmt: skip
    return with_form_cookie(request, page, form)


@routes.pages.post("/join/{secret}")
def join(
    request: Request,
    secret: str,
    email: Text = "",
    name: Text = "",
    password: Text = "",
    form: Text = "",
) -> Response:
    """Accept an invitation: with the account at hand, or with a new one."""
    person = person_of(request)
    if person is None:
        check_form(request, form)

    def work(connection: Connection) -> tuple[int, int]:
        if accounts.invitation(connection, secret) is None:
            raise RefusedError(
                404, "This invitation has been used or has expired. Ask for a new one."
            )
        user_id = person.id if person else accounts.add_user(connection, email, name, password)
        project_id = accounts.accept(connection, secret, user_id)
        record(connection, user_id, project_id, "joined")
        return user_id, project_id

    try:
        user_id, project_id = write(request, work)
    except RefusedError as error:
        if person is not None or error.status == 404:
            raise
        project = read(request, lambda c: _invited_to(c, secret))
        form = new_secret()
        page = render(
            request, "join.html",
            {"project": project, "secret": secret, "form": form, "problem": error.problem},
            status=error.status,
        )  # fmt: skip
        return with_form_cookie(request, page, form)
    target = f"/projects/{project_id}"
    return RedirectResponse(target, 303) if person else start_session(request, user_id, target)


@routes.pages.get("/sign-in/once/{secret}")
def sign_in_once(request: Request, secret: str) -> Response:
    """Sign in a person who could read the server's terminal."""
    user_id = request.app.state.one_time.pop(digest(secret), None)
    if user_id is None:
        raise RefusedError(
            404, "This link has already been used. Restart the server to get a new one."
        )
    write(
        request,
        lambda c: record(c, user_id, None, "signed in with the terminal link"),
    )
    return start_session(request, user_id, "/")


@routes.pages.get("/reset")
def ask_reset(request: Request) -> Response:
    """Ask for the address."""
    _check_mails(request)
    return _reset_page(request, {"step": "ask", "problem": ""})


@routes.pages.post("/reset")
def request_reset(request: Request, email: Text = "", form: Text = "") -> Response:
    """Send a link, if there is such an account; the answer is the same in any case."""
    _check_mails(request)
    check_form(request, form)
    settings = request.app.state.settings
    address, email = request.client.host if request.client else "", storable(email)
    try:
        write(request, lambda c: mail.count_reset(c, email, address))
    except RefusedError as error:
        return _reset_page(request, {"step": "ask", "problem": error.problem}, error.status)
    write(
        request, lambda c: mail.request_reset(c, email, settings.public_url, language_of(request))
    )
    return _reset_page(request, {"step": "sent", "problem": ""})


@routes.pages.get("/reset/{secret}")
def password_page(request: Request, secret: str) -> Response:
    """Ask for the new password."""
    if not read(request, lambda c: mail.is_reset(c, secret)):
        raise RefusedError(404, "This link has been used or has expired. Ask for a new one.")
    return _reset_page(request, {"step": "choose", "secret": secret, "problem": ""})


@routes.pages.post("/reset/{secret}")
def choose_password(
    request: Request, secret: str, password: Text = "", form: Text = ""
) -> Response:
    """Take the new password, and sign in."""
    check_form(request, form)
    try:
        user_id = write(request, lambda c: mail.use_reset(c, secret, password))
    except RefusedError as error:
        if error.status == 404:
            raise
        shown = {"step": "choose", "secret": secret, "problem": error.problem}
        return _reset_page(request, shown, error.status)
    return start_session(request, user_id, "/")


def start_session(request: Request, user_id: int, to: str) -> Response:
    """Send a browser on with a session of its own, never one that it brought."""
    settings = request.app.state.settings

    def work(connection: Connection) -> tuple[accounts.BrowserSession, str | None]:
        session = accounts.sign_in(connection, user_id, settings.session_hours)
        return session, connection.scalar(select(User.language).where(User.id == user_id))

    session, language = write(request, work)
    response = RedirectResponse(to, 303)
    if language:  # for pages that do not look up who asks, and for after signing out
        keep_language(request, response, language)
    set_cookie(request, response, COOKIE, session.secret, int(settings.session_hours * 3600))
    drop_cookie(request, response, _FORM_COOKIE)
    return response


def _sign_in_page(
    request: Request, to: str, email: str = "", problem: str = "", status: int = 200
) -> Response:
    form = new_secret()
    page = render(
        request,
        "sign_in.html",
        {
            "to": to,
            "email": email,
            "problem": problem,
            "form": form,
            "oidc": bool(request.app.state.settings.oidc_issuer),
            "mails": bool(request.app.state.settings.smtp),
        },
        status=status,
    )
    return with_form_cookie(request, page, form)


def with_form_cookie(request: Request, page: HTMLResponse, form: str) -> Response:
    """A page with a form that a stranger may send, and the cookie that goes with it."""
    set_cookie(request, page, _FORM_COOKIE, digest(form), 3600)
    return page


def check_form(request: Request, form: str) -> None:
    """Refuse a form that is not from a page of ours."""
    known = cookie(request, _FORM_COOKIE)
    if not hmac.compare_digest(known.encode(), digest(form).encode()):
        raise RefusedError(403, "This page is out of date: reload the page.")


def _invited_to(connection: Connection, secret: str) -> str:
    session = accounts.invitation(connection, secret)
    if session is None:
        raise RefusedError(404, "This invitation has been used or has expired. Ask for a new one.")
    return str(connection.scalar(select(Project.name).where(Project.id == session.project_id)))


def inside(to: str) -> str:
    """An address of this server, whatever a link said.

    Example:
        >>> inside("/projects/1?x=2"), inside("https://elsewhere/"), inside("//elsewhere/")
        ('/projects/1?x=2', '/', '/')
    """
    parts = urlsplit(to)
    safe = not parts.scheme and not parts.netloc and to.startswith("/") and "\\" not in to
    return to if safe and to.isprintable() and not to.startswith("//") else "/"


def _check_mails(request: Request) -> None:
    if not request.app.state.settings.smtp:
        raise RefusedError(404, "This server sends no e-mail. Ask an administrator.")


def _reset_page(request: Request, values: dict[str, str], status: int = 200) -> Response:
    form = new_secret()
    page = render(request, "reset.html", {**values, "form": form}, status=status)
    return with_form_cookie(request, page, form)

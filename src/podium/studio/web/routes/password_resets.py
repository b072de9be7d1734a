"""Choosing a new password by a link that is sent by e-mail."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from podium.studio.accounts import mail
from podium.studio.errors import RefusedError
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.text import storable
from podium.studio.store.tokens import new_secret
from podium.studio.web.forms import read_csrf
from podium.studio.web.languages import language_of
from podium.studio.web.pages import render
from podium.studio.web.routes.signing_in import Text, check_form, start_session, with_form_cookie

router = APIRouter(dependencies=[Depends(read_csrf)], include_in_schema=False)


@router.get("/reset")
def reset_page(request: Request) -> Response:
    """Ask for the address."""
    _check_configured(request)
    return _page(request, {"step": "ask", "problem": ""})


@router.post("/reset")
def request_reset(request: Request, email: Text = "", form: Text = "") -> Response:
    """Send a link, if there is such an account; the answer is the same in any case."""
    _check_configured(request)
    check_form(request, form)
    engine, settings = request.app.state.engine, request.app.state.settings
    address, email = request.client.host if request.client else "", storable(email)
    try:
        in_transaction(engine, lambda c: mail.count_reset(c, email, address))
    except RefusedError as error:
        return _page(request, {"step": "ask", "problem": error.problem}, error.status)
    in_transaction(
        engine, lambda c: mail.request_reset(c, email, settings.public_url, language_of(request))
    )
    return _page(request, {"step": "sent", "problem": ""})


@router.get("/reset/{secret}")
def password_page(request: Request, secret: str) -> Response:
    """Ask for the new password."""
    if not reading(request.app.state.engine, lambda c: mail.is_reset(c, secret)):
        raise RefusedError(404, "This link has been used or has expired. Ask for a new one.")
    return _page(request, {"step": "choose", "secret": secret, "problem": ""})


@router.post("/reset/{secret}")
def choose_password(
    request: Request, secret: str, password: Text = "", form: Text = ""
) -> Response:
    """Take the new password, and sign in."""
    check_form(request, form)
    try:
        user_id = in_transaction(
            request.app.state.engine, lambda c: mail.use_reset(c, secret, password)
        )
    except RefusedError as error:
        if error.status == 404:
            raise
        shown = {"step": "choose", "secret": secret, "problem": error.problem}
        return _page(request, shown, error.status)
    return start_session(request, user_id, "/")


def _check_configured(request: Request) -> None:
    if not request.app.state.settings.smtp:
        raise RefusedError(404, "This server sends no e-mail. Ask an administrator.")


def _page(request: Request, values: dict[str, str], status: int = 200) -> Response:
    form = new_secret()
    page = render(request, "reset.html", {**values, "form": form}, status=status)
    return with_form_cookie(request, page, form)

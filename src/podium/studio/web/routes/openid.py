"""Signing in by an OpenID provider: authorization code with PKCE, state and nonce."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable

import anyio
import anyio.to_thread
import structlog
from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Connection, select

from podium.studio.accounts import service as accounts
from podium.studio.accounts.identity import record
from podium.studio.accounts.openid import OpenIDIdentity, OpenIDProvider
from podium.studio.errors import RefusedError
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.rows import UserRow, fetch_one
from podium.studio.store.tables import User
from podium.studio.store.tokens import new_secret
from podium.studio.web.cookies import cookie, drop_cookie, set_cookie
from podium.studio.web.routes.signing_in import inside, start_session

router = APIRouter(prefix="/sign-in/oidc", include_in_schema=False)

_LOG = structlog.get_logger("podium.studio")
_COOKIE = "podium_oidc"
_SECONDS = 600
_MOST_WAITING = 20
_JOIN = "/join/"


@router.get("")
async def leave(request: Request, to: str = "/") -> Response:
    """Send a browser to the provider; a cookie identifies it when it comes back."""
    return await _apart(request, lambda: _leave(request, to))


@router.get("/callback")
async def come_back(request: Request, code: str = "", state: str = "", error: str = "") -> Response:
    """Take who the provider says has come back."""
    return await _apart(request, lambda: _come_back(request, code, state, error))


async def _apart(request: Request, work: Callable[[], Response]) -> Response:
    """Do something that waits for the provider in threads of its own, which judging never needs."""
    limiter: anyio.CapacityLimiter = request.app.state.calling_provider
    if limiter.statistics().tasks_waiting >= _MOST_WAITING:
        raise RefusedError(503, "Your organisation's sign-in is not responding. Try again later.")
    return await anyio.to_thread.run_sync(work, limiter=limiter)


def _leave(request: Request, to: str) -> Response:
    provider = _provider(request)
    kept = {
        "state": new_secret(),
        "nonce": new_secret(),
        "verifier": new_secret(),
        "to": inside(to),
    }
    address = provider.sign_in_address(
        _callback(request), kept["state"], kept["nonce"], kept["verifier"]
    )
    response = RedirectResponse(address, 303)
    value = base64.urlsafe_b64encode(json.dumps(kept).encode()).decode()
    set_cookie(request, response, _COOKIE, value, _SECONDS)
    return response


def _come_back(request: Request, code: str, state: str, error: str) -> Response:
    provider = _provider(request)
    kept = _kept(request)
    if not kept or not hmac.compare_digest(kept["state"].encode(), state.encode()):
        raise RefusedError(403, "This sign-in was started elsewhere or has expired. Start again.")
    if error or not code:
        raise RefusedError(403, "Your organisation rejected the sign-in.")
    identity = provider.who(_callback(request), code, kept["nonce"], kept["verifier"])
    settings: Settings = request.app.state.settings
    to = inside(kept["to"])
    address = request.client.host if request.client else ""
    try:
        user_id = in_transaction(
            request.app.state.engine, lambda c: _account(c, settings, identity, to)
        )
    except RefusedError:
        _LOG.warning("sign-in", outcome="refused by OpenID", address=address)
        raise
    _LOG.info("sign-in", outcome="signed in with OpenID", user=user_id, address=address)
    response = start_session(request, user_id, to)
    drop_cookie(request, response, _COOKIE)
    return response


def _account(connection: Connection, settings: Settings, identity: OpenIDIdentity, to: str) -> int:
    """The account of an OpenID identity, created if that is allowed."""
    statement = select(User.__table__).where(User.subject == identity.subject)
    known = fetch_one(connection, statement, UserRow)
    if known is None and identity.email:
        known = _linked(connection, identity)
    if known is None:
        invited = to.startswith(_JOIN) and (
            accounts.invitation(connection, to.removeprefix(_JOIN)) is not None
        )
        if not identity.email or not (settings.oidc_creates_accounts or invited):
            raise RefusedError(403, "You do not have an account here. Ask for an invitation link.")
        user_id = accounts.add_user(
            connection, identity.email, identity.name, None, subject=identity.subject, verified=True
        )
        record(connection, user_id, None, "created an account with OpenID")
        return user_id
    if known.disabled:
        raise RefusedError(403, "This account is disabled.")
    record(connection, known.id, None, "signed in with OpenID")
    return int(known.id)


def _linked(connection: Connection, identity: OpenIDIdentity) -> UserRow | None:
    """Find the account with a verified address, and link it to the OpenID identity."""
    statement = select(User.__table__).where(User.email == accounts.normal_email(identity.email))
    known = fetch_one(connection, statement.with_for_update(), UserRow)
    if known is None:
        return None
    if known.subject is not None:
        # Someone else at the provider has the address now: they do not get the account with it.
        raise RefusedError(
            403, "This e-mail address belongs to another account. Ask an administrator."
        )
    accounts.link_to_provider(connection, known.id, identity.subject)
    record(connection, known.id, None, "linked the account to OpenID")
    return known


def _provider(request: Request) -> OpenIDProvider:
    provider: OpenIDProvider | None = request.app.state.provider
    if provider is None:
        raise RefusedError(404, "This server has no OpenID provider.")
    return provider


def _callback(request: Request) -> str:
    # Not from the request: its sender chooses the Host header.
    return f"{request.app.state.settings.public_url.rstrip('/')}/sign-in/oidc/callback"


def _kept(request: Request) -> dict[str, str]:
    try:
        kept = json.loads(base64.urlsafe_b64decode(cookie(request, _COOKIE)))
    except ValueError:
        return {}
    names = {"state", "nonce", "verifier", "to"}
    good = isinstance(kept, dict) and set(kept) == names
    return kept if good and all(isinstance(value, str) for value in kept.values()) else {}

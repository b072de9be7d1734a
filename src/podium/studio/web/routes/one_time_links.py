"""Signing in by a link that the server printed when it started, once."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from podium.studio.accounts.audit import record
from podium.studio.errors import RefusedError
from podium.studio.store.database import in_transaction
from podium.studio.store.tokens import digest
from podium.studio.web.routes.signing_in import start_session

router = APIRouter(include_in_schema=False)


@router.get("/sign-in/once/{secret}")
def sign_in_once(request: Request, secret: str) -> Response:
    """Sign in whoever could read the server's terminal."""
    user_id = request.app.state.one_time.pop(digest(secret), None)
    if user_id is None:
        raise RefusedError(
            404, "This link has already been used. Restart the server to get a new one."
        )
    in_transaction(
        request.app.state.engine,
        lambda c: record(c, user_id, None, "signed in with the terminal link"),
    )
    return start_session(request, user_id, "/")

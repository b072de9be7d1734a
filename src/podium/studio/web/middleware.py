"""Middleware for every request: size limit, security headers, log line and metrics."""

from __future__ import annotations

import asyncio
import json
import re
import time

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.studio.metrics import Metrics
from podium.studio.store.tokens import new_token

POLICY = "; ".join(
    [
        "default-src 'self'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
"""Pages load nothing from other hosts and no script that is not a file of ours."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_BY_HTTPS = {"Strict-Transport-Security": "max-age=31536000"}
LARGEST_BODY = 1 << 20
"""The largest body of most requests in bytes. It is read before anyone knows who sent it."""
BODY_SECONDS = 60.0
"""How long such a body may take to arrive. Imports may take longer: it is known who sends them."""
_IMPORTS = re.compile(r"(/api/v1)?/projects/\d+/imports?(/(engine|files|preview))?")
"""Paths that take files. They look up who asks before they read the body: `UploadRoute`."""
FRAMED_POLICY = POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
"""The policy of a page that other pages of ours may show in a frame."""


_REFUSALS = {408: "The request took too long to arrive.", 413: "The request is too large."}


class _RefusedError(Exception):
    pass


class RequestMiddleware:
    """Limits the size and time of requests, adds security headers, logs and counts requests.

    Args:
        app: What answers requests.
        metrics: Where they are counted.
        largest: The largest import in bytes; other bodies are at most `LARGEST_BODY`.
        secure: Whether browsers use HTTPS, and must from now on.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, largest: int, *, secure: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._largest_import = largest
        self._headers = _HEADERS | (_BY_HTTPS if secure else {})
        self._log = structlog.get_logger("podium.studio")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        begun = False
        received = refusal = 0
        is_import = _IMPORTS.fullmatch(scope["path"]) is not None
        largest = self._largest_import if is_import else min(LARGEST_BODY, self._largest_import)
        deadline = None if is_import else asyncio.get_running_loop().time() + BODY_SECONDS
        request_id = new_token().hex

        async def limited() -> Message:
            nonlocal received, refusal, deadline
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                refusal = 408
                raise _RefusedError from None
            if not message.get("more_body"):
                deadline = None  # what is still waited for is that the client goes away
            received += len(message.get("body", b""))
            if received > largest:
                refusal = 413
                raise _RefusedError
            return message

        async def watched(message: Message) -> None:
            nonlocal status, begun
            if refusal and not begun:
                raise _RefusedError  # whatever reading only a part of the body came to
            if message["type"] == "http.response.start":
                begun = True
                status = message["status"]
                _add_headers(message, self._headers, request_id)
            await send(message)

        try:
            if _declared(scope) > largest:
                refusal = 413
                raise _RefusedError
            await self._app(scope, limited, watched)
        except _RefusedError:
            if not begun:
                status, begun = refusal, True
                await _refuse(watched, status)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requested(scope["method"], route, status, seconds)
            self._log.info(
                "request",
                method=scope["method"],
                route=route,
                status=status,
                milliseconds=round(seconds * 1000, 1),
                user=scope.get("state", {}).get("user"),
                project=_project(scope),
                address=(scope.get("client") or ("",))[0],
                request=request_id,
            )


def _project(scope: Scope) -> int | None:
    """The project in the path: a number, as in the lines of workers."""
    named = str(scope.get("path_params", {}).get("project", ""))
    return int(named) if len(named) < 20 and named.isascii() and named.isdigit() else None


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _add_headers(message: Message, extra: dict[str, str], request_id: str) -> None:
    headers = MutableHeaders(raw=message["headers"])
    for name, value in extra.items():
        headers.setdefault(name, value)
    if "frame-ancestors 'self'" in headers["Content-Security-Policy"]:
        headers["X-Frame-Options"] = "SAMEORIGIN"
    if "Cache-Control" not in headers:
        headers["Cache-Control"] = "no-store"
    headers["X-Request-Id"] = request_id


async def _refuse(send: Send, status: int) -> None:
    body = json.dumps({"detail": _REFUSALS[status]}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})

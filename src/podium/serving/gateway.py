"""What every request passes: tokens, the size and the time of its body, figures and logs."""

from __future__ import annotations

import asyncio
import time

import msgspec
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.serving.metrics import ServingMetrics
from podium.serving.refusal import Refusal
from podium.serving.settings import ServingSettings
from podium.serving.tokens import Token, Tokens

OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Paths that need no token: what checks a service's health has none."""


class Gateway:
    """Refuses requests without a valid token, counts and logs all others too.

    Args:
        app: The application behind it.
        settings: Its limits.
        metrics: Counts requests.
        tokens: Those that are accepted; None accepts any request.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServingSettings,
        metrics: ServingMetrics,
        tokens: Tokens | None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._tokens = tokens
        self._logs_all = settings.access_log
        self._log = structlog.get_logger("podium.serving")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            token = self._token(scope)
            if self._tokens is not None and token is None and scope["path"] not in OPEN_PATHS:
                await send_refusal(send_and_note, Refusal(401, "a valid bearer token is needed"))
            else:
                scope["podium_token"] = token
                await self._app(scope, receive, send_and_note)
        finally:
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.answered(route, status, seconds)
            if status >= 400 or self._logs_all:
                write = self._log.error if status >= 500 else self._log.info
                write(
                    "request", method=scope["method"], route=route, status=status,
                    milliseconds=round(1000 * seconds, 3),
                    user=getattr(scope.get("podium_token"), "user", None),
                )  # fmt: skip

    def _token(self, scope: Scope) -> Token | None:
        if self._tokens is None:
            return None
        return self._tokens.find(dict(scope["headers"]).get(b"authorization"))


async def send_refusal(send: Send, refusal: Refusal) -> None:
    """Send the status and the reason of a refusal."""
    body = msgspec.json.encode({"error": refusal.reason})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


MOST_INCOMPLETE = 512 << 20
"""Bytes of bodies that have not arrived as a whole, in a process; larger ones are refused then."""
ALWAYS_TAKEN = 256 << 10
"""The size of bodies that are not: a ranking of 100 documents has a hundred kilobytes."""
_incomplete = 0


async def read_body(scope: Scope, receive: Receive, settings: ServingSettings) -> bytes:
    """Read a body; a Refusal if it is too large, too slow or compressed."""
    global _incomplete
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value != b"identity":
            raise Refusal(415, "compressed bodies are not accepted")
        if name == b"content-length" and value.isdigit() and int(value) > settings.most_bytes:
            raise Refusal(413, f"the body is larger than {settings.most_bytes} bytes")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.most_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400, "the client closed the connection")
                part = message.get("body", b"")
                size += len(part)
                _incomplete += len(part)
                if size > ALWAYS_TAKEN and _incomplete > MOST_INCOMPLETE:
                    raise Refusal(503, "too many large bodies are arriving")
                if size > settings.most_bytes:
                    raise Refusal(413, f"the body is larger than {settings.most_bytes} bytes")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refusal(408, "the body took too long to arrive") from None
    finally:
        _incomplete -= size

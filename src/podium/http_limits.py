"""Limits on connections, before an application sees a request.

Uvicorn limits neither the size of a request's head nor the time that it takes to arrive, and takes
any number of connections from one address. ``LimitedProtocol`` does, as Uvicorn's option ``http``:
it overrides methods of ``asyncio.Protocol`` only, and follows the bytes by a parser of its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import structlog
import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.logs import set_up_logs

MOST_HEAD_BYTES = 64 << 10
MOST_HEADERS = 100
HEAD_SECONDS = 10.0
"""How long a request line and its headers may take, the first ones since the connection."""
MOST_PER_ADDRESS = 500
"""Connections from one address to one process: half of the files that it may open by default."""
MOST_AT_ONCE = 32
"""Requests that arrive together on one connection: Uvicorn would read thousands before it answers
anybody. It reads no more of a connection until those are answered."""

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)

_open: Counter[str] = Counter()
_cut: Counter[str] = Counter()


class _Guard:
    """Follows one connection."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._address = str((transport.get_extra_info("peername") or [""])[0])
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        # As Uvicorn's parser, so that both agree on where a request ends.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._in_head = True
        self._since: float | None = self._loop.time()  # None while no byte of a head is there
        self._received = 0  # bytes of what is not complete yet and no body: a head, or a trailer
        self._size = self._count = 0  # of complete headers
        self._requests = 0  # complete ones of what has just arrived
        self._timer = self._loop.call_later(HEAD_SECONDS, self._check_time)
        _open[self._address] += 1
        if _open[self._address] > MOST_PER_ADDRESS:
            self._note("too many from one address")
            transport.abort()

    def accept(self, data: bytes) -> bool:
        """Follow what has arrived; cut the connection and return False if it is too much."""
        self._received += len(data)
        self._requests = 0
        if self._in_head:
            self._since = self._since or self._loop.time()
        # The server's own parser finds the same, and answers.
        with suppress(HttpParserError, HttpParserUpgrade):
            self._parser.feed_data(data)
        if self._requests > MOST_AT_ONCE:
            self._note("too many requests at once")
            self._transport.close()
            return False
        if max(self._received, self._size) <= MOST_HEAD_BYTES and self._count <= MOST_HEADERS:
            return True
        self._note("head too large")
        self._transport.write(_REFUSAL)
        self._transport.close()
        return False

    def on_url(self, url: bytes) -> None:
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        self._size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        self._in_head, self._since, self._received = False, None, 0

    def on_body(self, body: bytes) -> None:
        self._received -= len(body)

    def on_chunk_complete(self) -> None:
        self._received = 0

    def on_message_complete(self) -> None:
        self._in_head, self._received = True, 0
        self._requests += 1
        if self._requests > MOST_AT_ONCE:
            raise HttpParserError  # the rest is not looked at
        if self._size <= MOST_HEAD_BYTES and self._count <= MOST_HEADERS:
            self._size = self._count = 0

    def close(self) -> None:
        """Forget the connection."""
        self._timer.cancel()
        _open[self._address] -= 1
        if not _open[self._address]:
            del _open[self._address]

    def _check_time(self) -> None:
        now = self._loop.time()
        start = now if self._since is None else self._since
        if now - start >= HEAD_SECONDS:
            self._note("head too slow")
            self._transport.close()
        else:
            self._timer = self._loop.call_at(start + HEAD_SECONDS, self._check_time)

    def _note(self, reason: str) -> None:
        """Count a connection that is cut; log the first, second, fourth, eighth and so on."""
        _cut[reason] += 1
        count = _cut[reason]
        if not count & (count - 1):
            structlog.get_logger("podium.http").warning(
                "connections cut", reason=reason, count=count, address=self._address
            )


class LimitedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with limits: 431 for a large head, no answer for a slow one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection."""
        self._guard = _Guard(transport)
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what is within the limits."""
        if self._guard.accept(data):
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._guard.close()
        super().connection_lost(exc)


SERVER_OPTIONS: dict[str, Any] = {
    "http": LimitedProtocol,
    "ws": "none",
    "access_log": False,
    "log_config": None,  # JSON, like all other logs
    "server_header": False,
    "timeout_keep_alive": 75,  # longer than a proxy keeps an idle connection for reuse
}
"""Options of Uvicorn that the studio's server and the ranking service share."""


def run_below(application: str, options: dict[str, Any]) -> None:
    """Run Uvicorn in a process that ``multiprocessing`` has started."""
    sys.stdin = None  # that of such a process cannot be passed on by Uvicorn
    set_up_logs()
    uvicorn.run(application, **options)

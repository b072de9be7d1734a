"""Limits on the answers of other servers, which may be slow, endless or compressed.

The timeouts of an HTTP client are between two reads: a server that sends one byte of its headers
every few seconds, or one interim answer after the other, holds a thread for days.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import anyio
import httpx2

_Result = TypeVar("_Result")


def run_in_thread(function: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:
    """Run an async function in a thread of its own.

    The caller's may have an event loop already, as those of notebooks do.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, function, *arguments).result()


class LimitedTransport(httpx2.BaseTransport):
    """Reads whole answers within a time and a size; refuses others by ``httpx2.ReadError``.

    It uses no proxies, and asks for answers that are not compressed.

    Args:
        seconds: How long a request may take, from the connection to the answer's last byte.
        most_bytes: The size of the largest body.
    """

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._certificates = httpx2.create_ssl_context(trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read its whole answer."""
        request.headers["accept-encoding"] = "identity"
        try:
            return run_in_thread(self._whole_answer, request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no whole answer within {self._seconds:g} s") from error

    async def _whole_answer(self, request: httpx2.Request) -> httpx2.Response:
        with anyio.fail_after(self._seconds):
            async with httpx2.AsyncHTTPTransport(self._certificates, trust_env=False) as transport:
                response = await transport.handle_async_request(request)
                if "content-encoding" in response.headers:
                    raise httpx2.ReadError("the answer is compressed, which was not asked for")
                body = bytearray()
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                async for chunk in response.stream:
                    body += chunk
                    if len(body) > self._most_bytes:
                        raise httpx2.ReadError("the answer is too large")
        return httpx2.Response(response.status_code, headers=response.headers, content=bytes(body))

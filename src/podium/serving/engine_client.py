"""Requests to the engine: bounded in number, time and size."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec

from podium.features.feature_search import EngineRequest

_MOST_BYTES = 32 << 20
_IDLE_SECONDS = 15
"""How long a connection is kept that nothing is sent over; engines close it after 30 or more."""


class EngineError(Exception):
    """The engine did not answer a request, or not with success."""


class AsyncEngineClient:
    """Asks one engine, and nothing else.

    Redirects are not followed, and proxies are not taken from the environment. A name and a
    password may be part of the engine's address.

    Args:
        address: The engine's address, which the paths of requests are below.
        seconds: The longest time that a request may take.
        connections: The largest number of connections; further requests wait for one.
    """

    def __init__(self, address: str, *, seconds: float, connections: int) -> None:
        self._address = address.rstrip("/")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=seconds),  # also of waiting for a connection
            headers={
                "accept": "application/json",
                "accept-encoding": "identity",  # what is unpacked would be bounded too late
                "content-type": "application/json",
            },
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def ask(self, request: EngineRequest) -> tuple[int, Any]:
        """Send a request; return the status and the parsed answer, or raise an EngineError."""
        answer = bytearray()
        body = None if request.content is None else msgspec.json.encode(request.content)
        url = f"{self._address}/{request.path}"
        try:
            async with self._session.request(
                request.method, url, data=body, allow_redirects=False
            ) as response:
                async for chunk in response.content.iter_any():
                    answer += chunk
                    if len(answer) > _MOST_BYTES:
                        raise EngineError("the engine's answer is too large")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise EngineError(f"the engine cannot be reached ({type(error).__name__})") from error
        status = response.status
        if status != 200 and status not in request.allowed:
            raise EngineError(f"the engine answered with status {status}")
        try:
            return status, msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise EngineError("the engine answered in another form") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

"""Requests to the engine: bounded in number, time and size."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec

from podium.features import EngineRequest

_MOST_BYTES = 32 << 20


class EngineError(Exception):
    """The engine did not answer a request, or not with success.

    Attributes:
        status: The status of its answer, or None if there is none.
    """

    def __init__(self, problem: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(problem)


class AsyncEngineClient:
    """Asks one engine, and nothing else.

    Redirects are not followed, and proxies are not taken from the environment. A name and a
    password may be part of the engine's address.

    Args:
        address: The engine's address, which the paths of requests are below.
        seconds: The longest time that any step of a request may take.
        connections: The largest number of connections; further requests wait for one.
    """

    def __init__(self, address: str, *, seconds: float, connections: int) -> None:
        self._client = httpx.AsyncClient(
            base_url=address.rstrip("/") + "/",
            follow_redirects=False,
            trust_env=False,
            timeout=seconds,  # also of waiting for a connection
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=30,
            ),
        )

    async def ask(self, request: EngineRequest) -> tuple[int, Any]:
        """Send a request; return the status and the parsed answer, or raise an EngineError."""
        answer = bytearray()
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",  # what is unpacked would be bounded too late
            "content-type": "application/json",
        }
        body = None if request.content is None else msgspec.json.encode(request.content)
        try:
            async with self._client.stream(
                request.method, request.path, content=body, headers=headers
            ) as response:
                async for chunk in response.aiter_bytes():
                    answer += chunk
                    if len(answer) > _MOST_BYTES:
                        raise EngineError("the engine's answer is too large")
        except httpx.HTTPError as error:
            raise EngineError(f"the engine cannot be reached ({type(error).__name__})") from error
        status = response.status_code
        if status != 200 and status not in request.may_be:
            raise EngineError(f"the engine answered with status {status}", status)
        try:
            return status, msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise EngineError("the engine answered in another form") from error

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

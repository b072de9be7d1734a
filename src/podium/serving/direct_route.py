"""Routes whose functions read the request themselves."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class DirectRoute(APIRoute):
    """Calls its function with the request and the parameters of the path, and nothing else.

    FastAPI resolves dependencies and validates results for each request. These routes have
    neither, so requests do not pay for that. What they take and answer is still described in the
    OpenAPI document.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        endpoint = self.endpoint

        async def handle(request: Request) -> Response:
            response: Response = await endpoint(request, **request.path_params)
            return response

        return handle

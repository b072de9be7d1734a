"""A studio as someone with an API token sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

import httpx

from podium.studio.client.project import StudioProject
from podium.studio.client.values import StudioError

TOKEN = "PODIUM_STUDIO_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the API token."""

_TRIES = 4
_Files: TypeAlias = Sequence[tuple[str, tuple[str, IO[bytes]]]]
"""Form fields, each with a file's name and content."""


class StudioClient:
    """A studio, as someone with an API token sees it. Use it in a ``with`` block, or close it.

    Args:
        url: The studio's address.
        token: An API token, created on the studio's page "API tokens"; by default that of the
            environment variable ``PODIUM_STUDIO_TOKEN``.
        timeout: How many seconds to wait for an answer.

    Example:
        >>> with StudioClient("https://judging.example.org", token="podium_x") as studio:
        ...     studio.url
        'https://judging.example.org'
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0) -> None:
        token = token or os.environ.get(TOKEN)
        if not token:
            raise StudioError(401, f"No API token: create one and set {TOKEN}.")
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers={"authorization": f"Bearer {token}"},
            timeout=timeout,
        )

    def projects(self) -> list[StudioProject]:
        """Your projects, newest first."""
        return [StudioProject(self, about) for about in self.call("GET", "/projects")]

    def project(self, number: int) -> StudioProject:
        """A project by its number."""
        return StudioProject(self, self.call("GET", f"/projects/{number}"))

    def create_project(self, name: str, **settings: object) -> StudioProject:
        """Create a project; for administrators only.

        Args:
            name: Its name.
            settings: Those of `podium.studio.projects.service.ProjectSettings`: mode, k, …
        """
        made = self.call("POST", "/projects", json={"name": name, **settings})
        return StudioProject(self, made)

    def call(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, object] | None = None,
        data: Mapping[str, object] | None = None,
        files: _Files | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request and return the response's JSON; raises `StudioError` if it is refused."""
        answer = self.send(method, path, json=json, data=data, files=files)
        return answer.json() if answer.content else None

    def send(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, object] | None = None,
        data: Mapping[str, object] | None = None,
        files: _Files | None = None,
    ) -> httpx.Response:
        """Send a request, again if the studio is away for a moment.

        Every request that changes something is safe to repeat or is not repeated: answers carry
        a token, and what cannot be told from one that arrived is sent once.
        """
        repeatable = method == "GET" or path.endswith(
            ("/next", "/answers", "/undo", "/renew", "/release")
        )
        for attempt in range(_TRIES if repeatable else 1):
            if attempt:
                time.sleep(0.25 * 2**attempt)
            try:
                answer = self._http.request(method, path, json=json, data=data, files=files)
            except httpx.HTTPError as error:
                problem = StudioError(0, f"{self.url} cannot be reached ({error}).")
                continue
            if answer.status_code < 400:
                return answer
            problem = StudioError(answer.status_code, _problem(answer))
            if answer.status_code not in (429, 502, 503):
                break
        raise problem

    def fetch(self, path: str, target: IO[bytes]) -> None:
        """Write a file of the studio to a stream, a piece at a time."""
        try:
            with self._http.stream("GET", path) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise StudioError(answer.status_code, _problem(answer))
                for chunk in answer.iter_bytes():
                    target.write(chunk)
        except httpx.HTTPError as error:
            raise StudioError(0, f"{self.url} cannot be reached ({error}).") from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _problem(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The studio answered with status {answer.status_code}."


def project_at(address: str) -> tuple[str, int]:
    """A studio's URL and a project's number, from ``URL#NUMBER``.

    Example:
        >>> project_at("https://judging.example.org#7")
        ('https://judging.example.org', 7)
    """
    url, _, number = address.rpartition("#")
    if not url or not number.isdecimal():
        raise StudioError(
            0, f"{address!r} does not name a project: write https://judging.example.org#7."
        )
    return url, int(number)

"""Talk to a Podium Studio from Python: projects, imports, judging, exports, labels.

from podium.studio.client import StudioClient

studio = StudioClient("https://judging.example.org")  # the token is in PODIUM_STUDIO_TOKEN
project = studio.create_project("Shoes", k=10)
project.import_candidates("candidates.jsonl")
…
labels = project.labels()  # podium.data.Judgments, for podium.rankers
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import httpx

from podium.data import CandidateList, Judgments, Preferences, read_parquet, write_jsonl
from podium.data.atomic import atomic_write
from podium.data.files import writing
from podium.studio.client_values import Asked, Shown, StudioError
from podium.studio.secrets import new_token

__all__ = ["Asked", "Shown", "StudioClient", "StudioError", "StudioProject", "project_at"]

TOKEN = "PODIUM_STUDIO_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the API token."""

_TRIES = 4


class StudioClient:
    """A studio, as someone with an API token sees it. Use it in a ``with`` block, or close it.

    Args:
        url: The studio's address.
        token: An API token, made on the studio's page "API tokens"; by default that of the
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
            raise StudioError(401, f"There is no API token: make one, and put it into {TOKEN}.")
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

    def create_project(self, name: str, **settings: Any) -> StudioProject:
        """Make a project; administrators can.

        Args:
            name: What it is called.
            settings: Those of `podium.studio.projects.ProjectSettings`: mode, k, algorithm, …
        """
        made = self.call("POST", "/projects", json={"name": name, **settings})
        return StudioProject(self, made)

    def call(self, method: str, path: str, **more: Any) -> Any:
        """Send a request; what was refused is a `StudioError`. Gives the answer's JSON."""
        answer = self.send(method, path, **more)
        return answer.json() if answer.content else None

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request, again if the studio is away for a moment.

        Every request that changes something is safe to repeat or is not repeated: answers carry
        a token, and what cannot be told from one that arrived is sent once.
        """
        repeatable = method == "GET" or path.endswith(("/next", "/answers", "/undo"))
        for attempt in range(_TRIES if repeatable else 1):
            if attempt:
                time.sleep(0.25 * 2**attempt)
            try:
                answer = self._http.request(method, path, **more)
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


class StudioProject:
    """A project of a studio.

    Attributes:
        about: What the studio told of it: id, role, settings, progress.
    """

    def __init__(self, studio: StudioClient, about: dict[str, Any]) -> None:
        self.about = about
        self._studio = studio
        self._path = f"/projects/{about['id']}"
        self._tab = new_token().hex

    @property
    def id(self) -> int:
        """The project's number."""
        return int(self.about["id"])

    def refresh(self) -> StudioProject:
        """The project as it is now."""
        return self._studio.project(self.id)

    def change(self, **settings: Any) -> None:
        """Change settings, or ``paused``."""
        self.about = self._studio.call("PATCH", self._path, json=settings)

    def delete(self) -> None:
        """Delete the project with all its judgments."""
        name = self.about["settings"]["name"]
        self._studio.send("DELETE", self._path, json={"name": name})

    def import_candidates(self, source: str | Path | Iterable[CandidateList]) -> dict[str, Any]:
        """Put queries with their candidates into the project, and wait until they are in.

        Args:
            source: A JSONL file, or lists of candidates.

        Returns:
            How many queries were added and skipped.
        """
        if isinstance(source, str | Path):
            return self._upload("candidates", [("candidates", Path(source))])
        stream = io.BytesIO()
        write_jsonl(source, stream)
        stream.seek(0)
        return self._upload("candidates", [("candidates", stream)])

    def import_runs(
        self,
        runs: Sequence[str | Path],
        documents: str | Path,
        queries: str | Path | None = None,
        *,
        depth: int = 50,
    ) -> dict[str, Any]:
        """Put the queries of TREC runs into the project, with the texts of their documents."""
        files = [("runs", Path(run)) for run in runs] + [("documents", Path(documents))]
        if queries is not None:
            files.append(("queries", Path(queries)))
        return self._upload("runs", files, depth=depth)

    def import_gold(self, source: str | Path) -> dict[str, Any]:
        """Put gold pairs into the project, from JSONL."""
        return self._upload("gold", [("gold", Path(source))])

    def import_from_engine(self, **search: Any) -> dict[str, Any]:
        """Put queries into the project with candidates that a search engine finds for them.

        Args:
            search: The fields of `podium.studio.engines.EngineSearch`: url, queries, template, …
        """
        path = f"{self._path}/imports/engine"
        result: dict[str, Any] = self._wait(self._studio.call("POST", path, json=search))["result"]
        return result

    def next(self) -> Asked | None:
        """What to judge next, or None if there is nothing (for now)."""
        return self._asked(self._studio.call("POST", f"{self._path}/next", json={"tab": self._tab}))

    def answer(self, asked: Asked, choice: str, *, seconds: float = 0.0) -> Asked | None:
        """Answer, and get what to judge next, or None if there is nothing (for now)."""
        given = {
            "token": asked.token,
            "choice": choice,
            "seconds": seconds,
            "tab": self._tab,
        }
        answer = self._studio.call("POST", f"{self._path}/answers", json=given)
        return None if answer["next"] is None else self._asked(answer["next"])

    def undo(self) -> Asked | None:
        """Take back your last answer; the same is asked again."""
        wanted = {"token": str(new_token()), "tab": self._tab}
        return self._asked(self._studio.call("POST", f"{self._path}/undo", json=wanted))

    def judge(self, choose: Callable[[Asked], str]) -> int:
        """Judge until there is nothing left to you; returns how many answers that took.

        Args:
            choose: Gives one of the choices of what is asked: a model, say.
        """
        count = 0
        asked = self.next()
        while asked is not None:
            begun = time.monotonic()
            choice = choose(asked)
            asked = self.answer(asked, choice, seconds=time.monotonic() - begun)
            count += 1
        return count

    def export(
        self,
        target: str | Path | IO[bytes],
        content: str = "labels",
        format: str = "qrels",  # noqa: A002 - what it is called everywhere
        *,
        only_done: bool = False,
        ties: bool = False,
    ) -> dict[str, Any]:
        """Write what the project came to into a file.

        Args:
            target: The file, or an open stream.
            content: ``labels``, ``grades``, ``preferences``, ``totals`` or ``log``.
            format: One that fits: ``qrels``, ``prefs``, ``pairs``, ``jsonl`` or with ``-parquet``.
            only_done: Whether to leave out queries that are not done yet.
            ties: Whether documents that were judged equal get equal labels.

        Returns:
            How many queries, rows and bytes it has.
        """
        order = {"content": content, "format": format, "only_done": only_done, "ties": ties}
        job = self._wait(self._studio.call("POST", f"{self._path}/exports", json=order))
        path = f"{self._path}/jobs/{job['id']}/file"
        if isinstance(target, str | Path):
            with writing(target), atomic_write(target) as stream:
                self._studio.fetch(path, stream)
        else:
            self._studio.fetch(path, target)
        result: dict[str, Any] = job["result"]
        return result

    def labels(self, *, only_done: bool = False, ties: bool = False) -> Judgments:
        """The labels so far: the ordered top k of each query, or mean grades."""
        content = "grades" if self.about["settings"]["mode"] == "grades" else "labels"
        stream = io.BytesIO()
        self.export(stream, content, "qrels-parquet", only_done=only_done, ties=ties)
        stream.seek(0)
        return read_parquet(stream, Judgments)

    def preferences(self) -> Preferences:
        """The verdicts on pairs that stand."""
        stream = io.BytesIO()
        self.export(stream, "preferences", "pairs-parquet")
        stream.seek(0)
        return read_parquet(stream, Preferences)

    def _asked(self, answer: dict[str, Any]) -> Asked | None:
        while answer["state"] == "wait":
            time.sleep(answer["wait_seconds"])
            answer = self._studio.call("POST", f"{self._path}/next", json={"tab": self._tab})
        if answer["state"] != "task":
            return None
        task = answer["task"]
        sides = tuple(
            tuple(self._document(task["query_id"], document) for document in side["documents"])
            for side in task["sides"]
        )
        return Asked(
            task["token"], task["query"], task["description"], sides, tuple(task["choices"])
        )

    def _document(self, query: int, document: dict[str, Any]) -> Shown:
        path = f"{self._path}/queries/{query}/documents/{document['place']}"
        if document["format"] == "html":
            text = self._studio.send("GET", f"{path}/page").text
        else:
            text = self._studio.call("GET", path)["text"]
        return Shown(document["place"], document["title"], document["url"], text)

    def _upload(
        self, source: str, files: Sequence[tuple[str, Path | IO[bytes]]], **more: Any
    ) -> dict[str, Any]:
        streams: list[tuple[str, tuple[str, IO[bytes]]]] = []
        try:
            for role, file in files:
                if isinstance(file, Path):
                    streams.append((role, (file.name, file.open("rb"))))
                else:
                    streams.append((role, (role, file)))
            job = self._studio.call(
                "POST", f"{self._path}/imports", data={"source": source, **more}, files=streams
            )
        finally:
            for _, (_, stream) in streams:
                stream.close()
        result: dict[str, Any] = self._wait(job)["result"]
        return result

    def _wait(self, job: dict[str, Any]) -> dict[str, Any]:
        pause = 0.05
        while job["state"] in ("waiting", "running"):
            time.sleep(pause)
            pause = min(1.5 * pause, 2.0)
            job = self._studio.call("GET", f"{self._path}/jobs/{job['id']}")
        if job["state"] != "done":
            raise StudioError(422, str(job["error"]))
        return job


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
        raise StudioError(0, f"{address!r} names no project: write https://judging.example.org#7.")
    return url, int(number)

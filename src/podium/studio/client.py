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
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeAlias
from uuid import uuid4

import httpx2

from podium.data import CandidateList, Judgments, read_parquet, write_jsonl
from podium.data.atomic import atomic_write
from podium.data.files import writing
from podium.data.preferences import Preferences
from podium.errors import PodiumError
from podium.studio.json_types import JsonObject


class LeaseRenewer:
    """A thread that renews a task every few seconds, in a ``with`` block.

    Args:
        renew: Renews the task with a token.
        seconds: How often.

    Attributes:
        token: The task at hand; None if there is none.
    """

    def __init__(self, renew: Callable[[str], object], seconds: float) -> None:
        self.token: str | None = None
        self._renew = renew
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="podium-renewing", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            token = self.token
            if token is not None:
                try:
                    self._renew(token)
                except StudioError:
                    continue  # an answer that comes late is kept, and counts if nobody has the task


class StudioError(PodiumError):
    """A request that a studio refused, or a studio that cannot be reached.

    Attributes:
        status: The HTTP status; 0 if the studio could not be reached.

    Example:
        >>> StudioError(404, "The project does not exist.").status
        404
    """

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(frozen=True)
class StudioDocument:
    """A document of a task.

    Attributes:
        reference: The number that identifies it within the task's query.
        title: Its title.
        url: Its URL.
        text: Its text.
    """

    reference: int
    title: str
    url: str
    text: str


@dataclass(frozen=True)
class StudioQuestion:
    """A question beside the verdict.

    Attributes:
        name: Names the reply.
        text: The question.
        options: What can be replied; any text if there are none.
        required: Whether an answer needs a reply.
    """

    name: str
    text: str
    options: tuple[str, ...]
    required: bool


@dataclass(frozen=True)
class StudioTask:
    """A judging task.

    Attributes:
        token: Identifies the answer.
        query: The query as people typed it.
        description: What they meant by it.
        sides: The documents on each side: one each, or those of whole rankings.
        choices: What can be answered.
        questions: What is asked besides.
    """

    token: str
    query: str
    description: str
    sides: tuple[tuple[StudioDocument, ...], ...]
    choices: tuple[str, ...]
    questions: tuple[StudioQuestion, ...] = ()


__all__ = [
    "StudioClient",
    "StudioDocument",
    "StudioError",
    "StudioProject",
    "StudioQuestion",
    "StudioTask",
    "project_at",
]

TOKEN = "PODIUM_STUDIO_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the API token."""

_TRIES = 4
_Files: TypeAlias = Sequence[tuple[str, tuple[str, IO[bytes]]]]
"""Form fields, each with a file's name and content."""
_RENEW_EVERY = 15.0
"""How often a program that judges renews its lease, in seconds."""
_LOOK_AGAIN = 5.0
"""How often to check whether a paused project has been resumed, in seconds."""


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
        self._http = httpx2.Client(
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
    ) -> httpx2.Response:
        """Send a request, again if the studio is away for a moment.

        Every request that changes something is safe to repeat or is not repeated: answers carry
        a token, and a request that may have arrived unnoticed is sent once.
        """
        repeatable = method == "GET" or path.endswith(
            ("/next", "/answers", "/undo", "/renew", "/release")
        )
        for attempt in range(_TRIES if repeatable else 1):
            if attempt:
                time.sleep(0.25 * 2**attempt)
            try:
                answer = self._http.request(method, path, json=json, data=data, files=files)
            except httpx2.HTTPError as error:
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
        except httpx2.HTTPError as error:
            raise StudioError(0, f"{self.url} cannot be reached ({error}).") from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _problem(answer: httpx2.Response) -> str:
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


class StudioProject:
    """A project of a studio.

    Attributes:
        about: The project as JSON: id, role, settings, progress.
    """

    def __init__(self, studio: StudioClient, about: JsonObject) -> None:
        self.about = about
        self._studio = studio
        self._path = f"/projects/{about['id']}"
        self._tab = uuid4().hex

    @property
    def id(self) -> int:
        """The project's number."""
        return int(self.about["id"])

    def refresh(self) -> StudioProject:
        """The project as it is now."""
        return self._studio.project(self.id)

    def change(self, **settings: object) -> None:
        """Change settings, or ``paused``."""
        self.about = self._studio.call("PATCH", self._path, json=settings)

    def delete(self) -> None:
        """Delete the project with all its judgments."""
        name = self.about["settings"]["name"]
        self._studio.send("DELETE", self._path, json={"name": name})

    def import_candidates(self, source: str | Path | Iterable[CandidateList]) -> JsonObject:
        """Import queries with their candidates, and wait until the import is done.

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
    ) -> JsonObject:
        """Import the queries of TREC runs, with the texts of their documents."""
        files = [("runs", Path(run)) for run in runs] + [("documents", Path(documents))]
        if queries is not None:
            files.append(("queries", Path(queries)))
        return self._upload("runs", files, depth=depth)

    def import_gold(self, source: str | Path) -> JsonObject:
        """Import gold pairs from JSONL."""
        return self._upload("gold", [("gold", Path(source))])

    def import_from_engine(self, **search: object) -> JsonObject:
        """Import queries with candidates from a search engine.

        Args:
            search: The fields of `podium.studio.transfer.search_engines.EngineSearch`: url, …
        """
        path = f"{self._path}/imports/engine"
        result: JsonObject = self._wait(self._studio.call("POST", path, json=search))["result"]
        return result

    def next(self, *, wait: float | None = 60.0) -> StudioTask | None:
        """The next task, or None if there is none (for now).

        Args:
            wait: For how many seconds to wait for others at most, where what they do may open
                something; None is as long as it takes.
        """
        return self._wait_for_task(self._next(), wait)

    def answer(
        self,
        task: StudioTask,
        choice: str,
        *,
        seconds: float = 0.0,
        replies: Mapping[str, str] | None = None,
        wait: float | None = 60.0,
    ) -> StudioTask | None:
        """Answer a task, and get the next one, or None if there is none (for now)."""
        return self._wait_for_task(self._answer(task, (choice, replies or {}), seconds), wait)

    def undo(self) -> StudioTask | None:
        """Undo your last answer; the same task is returned."""
        body = {"token": str(uuid4()), "tab": self._tab}
        return self._wait_for_task(self._studio.call("POST", f"{self._path}/undo", json=body), 60.0)

    def release(self, task: StudioTask) -> None:
        """Release a task unanswered, so that others need not wait for it."""
        self._studio.call("POST", f"{self._path}/release", json={"token": task.token})

    def judge(
        self,
        choose: Callable[[StudioTask], str | tuple[str, Mapping[str, str]]],
        *,
        wait: float | None = None,
    ) -> int:
        """Judge until no task is left for you; returns the number of answers.

        Where the rest depends on others, it waits for them. A task is kept for as long as `choose`
        takes, and given up if it fails.

        Args:
            choose: Returns one of the task's choices, for example by a model; or a choice and the
                replies to the task's questions, by their names.
            wait: For how many seconds to wait for others at a time, and while the project is
                paused; None is as long as it takes.

        Raises:
            StudioError: If work is left that nobody can do; it says what would help.
        """
        count = 0
        with LeaseRenewer(self._renew, _RENEW_EVERY) as renewing:
            task = self._wait_for_task(self._next(renews=True), wait, renews=True)
            while task is not None:
                renewing.token = task.token
                begun = time.monotonic()
                try:
                    choice = choose(task)
                except BaseException:
                    self.release(task)
                    raise
                answer = self._answer(task, choice, time.monotonic() - begun, renews=True)
                renewing.token = None
                count += 1
                task = self._wait_for_task(answer, wait, renews=True)
        return count

    def export(
        self,
        target: str | Path | IO[bytes],
        content: str = "labels",
        format: str = "qrels",  # noqa: A002 - what it is called everywhere
        *,
        only_done: bool = False,
        ties: bool = False,
        underscores: bool = False,
        model: int | None = None,
    ) -> JsonObject:
        """Export the project's results to a file.

        Args:
            target: The file, or an open stream.
            content: ``labels``, ``grades``, ``preferences``, ``totals``, ``log`` or ``answers``
                of models.
            format: One that fits: ``qrels``, ``prefs``, ``pairs``, ``csv``, ``jsonl``, or one with
                ``-parquet``.
            only_done: Whether to leave out queries that are not done yet.
            ties: Whether documents that were judged equal get equal labels.
            underscores: Whether white space in IDs is written as ``_`` in TREC's formats, which
                have none in IDs.
            model: The number of the language model whose labels, grades or preferences to export;
                by default people's are.

        Returns:
            How many queries, rows and bytes it has.
        """
        order = {
            "content": content, "format": format, "only_done": only_done, "ties": ties,
            "underscores": underscores, "model": model,
        }  # fmt: skip
        job = self._wait(self._studio.call("POST", f"{self._path}/exports", json=order))
        path = f"{self._path}/jobs/{job['id']}/file"
        if isinstance(target, str | Path):
            with writing(target), atomic_write(target) as stream:
                self._studio.fetch(path, stream)
        else:
            self._studio.fetch(path, target)
        result: JsonObject = job["result"]
        return result

    def labels(self, *, only_done: bool = False, ties: bool = False) -> Judgments:
        """The labels so far: the ordered top k of each query, or mean grades."""
        content = "grades" if self.about["settings"]["mode"] == "grades" else "labels"
        stream = io.BytesIO()
        self.export(stream, content, "qrels-parquet", only_done=only_done, ties=ties)
        stream.seek(0)
        return read_parquet(stream, Judgments)

    def preferences(self) -> Preferences:
        """The verdicts on pairs that were not undone."""
        stream = io.BytesIO()
        self.export(stream, "preferences", "pairs-parquet")
        stream.seek(0)
        return read_parquet(stream, Preferences)

    def _next(self, *, renews: bool = False) -> JsonObject:
        ask = {"tab": self._tab, "renews": renews}
        response: JsonObject = self._studio.call("POST", f"{self._path}/next", json=ask)
        return response

    def _answer(
        self,
        task: StudioTask,
        answered: str | tuple[str, Mapping[str, str]],
        seconds: float,
        *,
        renews: bool = False,
    ) -> JsonObject:
        choice, replies = (answered, {}) if isinstance(answered, str) else answered
        body = {
            "token": task.token,
            "choice": choice,
            "replies": dict(replies),
            "seconds": seconds,
            "tab": self._tab,
            "renews": renews,
        }
        answer = self._studio.call("POST", f"{self._path}/answers", json=body)
        return answer["next"] or {"state": "paused"}

    def _renew(self, token: str) -> None:
        body = {"token": token, "tab": self._tab, "renews": True}
        self._studio.call("POST", f"{self._path}/renew", json=body)

    def _wait_for_task(
        self, answer: JsonObject, wait: float | None, *, renews: bool = False
    ) -> StudioTask | None:
        end = math.inf if wait is None else time.monotonic() + wait
        waits = ("wait", "paused") if renews else ("wait",)
        while answer["state"] in waits:
            pause = answer.get("wait_seconds") or _LOOK_AGAIN
            left = end - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            answer = self._next(renews=renews)
        if answer["state"] == "blocked":
            raise StudioError(409, " ".join(answer["problems"]))
        if answer["state"] == "training":
            raise StudioError(403, "The project's training comes first, or was failed.")
        if answer["state"] != "task":
            return None
        task = answer["task"]
        sides = tuple(
            tuple(self._document(task["query_id"], document) for document in side["documents"])
            for side in task["sides"]
        )
        return StudioTask(
            task["token"],
            task["query"],
            task["description"],
            sides,
            tuple(task["choices"]),
            tuple(
                StudioQuestion(each["name"], each["text"], tuple(each["options"]), each["required"])
                for each in task["questions"]
            ),
        )

    def _document(self, query: int, document: JsonObject) -> StudioDocument:
        path = f"{self._path}/queries/{query}/documents/{document['reference']}"
        if document["format"] == "html":
            text = self._studio.send("GET", f"{path}/page").text
        else:
            text = self._studio.call("GET", path)["text"]
        return StudioDocument(document["reference"], document["title"], document["url"], text)

    def _upload(
        self, source: str, files: Sequence[tuple[str, Path | IO[bytes]]], **more: object
    ) -> JsonObject:
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
        result: JsonObject = self._wait(job)["result"]
        return result

    def _wait(self, job: JsonObject) -> JsonObject:
        pause = 0.05
        while job["state"] in ("waiting", "running"):
            time.sleep(pause)
            pause = min(1.5 * pause, 2.0)
            job = self._studio.call("GET", f"{self._path}/jobs/{job['id']}")
        if job["state"] != "done":
            raise StudioError(422, str(job["error"]))
        return job

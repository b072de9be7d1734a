"""Judging while the server does other things: imports, exports, large documents, sign-ins.

The other things are asked for by a process of their own: in that of the simulated assessors they
would delay the assessors' clocks, not only the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

import httpx2

_PAUSE = 0.2
_HOSTILE_BYTES = 1_000_000


@contextmanager
def hanging_provider() -> Iterator[str]:
    """An identity provider that takes connections and never says a word; gives its address."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:

        def take() -> None:
            with suppress(OSError):  # it is closed in the end
                while True:
                    held.append(server.accept()[0])

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for connection in held:
            connection.close()


def hostile_document() -> str:
    """A megabyte of HTML that is deeply nested, never closed, and full of what is forbidden."""
    piece = '<div onclick="x()"><b><i><table><tr><td><script>1</script><a href="javascript:1">w '
    return piece * (_HOSTILE_BYTES // len(piece))


class Disturbance:
    """Requests that have nothing to do with judging, over and over, until they are stopped.

    Args:
        port: The server's.
        token: An API token of the other project's owner.
        judged: The project that people judge: it is exported.
        project: Another one: it gets imports.
        queries: How many queries each import brings.
    """

    def __init__(
        self, port: int, token: str = "", judged: int = 0, project: int = 0, queries: int = 0
    ) -> None:
        self._port = port
        self._address = f"http://127.0.0.1:{port}"
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._path = f"/api/v1/projects/{project}"
        self._judged = f"/api/v1/projects/{judged}"
        self._queries = queries
        self.counts: dict[str, int] = {}

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Disturb while something else is measured."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=self._disturb, args=(theirs,))
        process.start()
        theirs.close()  # else nothing would end the wait if the process cannot start
        ours.recv()  # it has started
        try:
            yield
        finally:
            ours.send("stop")
            self.counts = ours.recv()
            process.join()

    def _disturb(self, control: Connection) -> None:
        os.nice(10)  # what asks for these things would be another machine
        ended = threading.Event()
        threads = [
            threading.Thread(target=self._repeat, args=(kind, ended)) for kind in self.kinds()
        ]
        for thread in threads:
            thread.start()
        control.send("started")
        control.recv()
        ended.set()
        for thread in threads:
            thread.join()
        control.send(self.counts)

    def kinds(self) -> Sequence[Callable[[httpx2.Client, int], None]]:
        """What is done, each by a thread that repeats it after a pause."""
        return (self._import, self._export, self._document, self._sign_in)

    def prepare(self) -> None:
        """Put the hostile document in, and queries to export."""
        document = {"document_id": "d0", "title": "Hostile", "html": hostile_document()}
        candidates = [document, {"document_id": "d1", "text": "Quiet"}]
        line = {"query_id": "hostile", "query": "w", "candidates": candidates}
        with self._client() as client:
            self._upload(client, json.dumps(line))
            task = client.post(f"{self._path}/next", json={"tab": "disturbance"})
            self._query = task.raise_for_status().json()["task"]["query_id"]
            self._import(client, 0)

    def _client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self._address, headers=self._headers, timeout=30)

    def _repeat(self, kind: Callable[[httpx2.Client, int], None], ended: threading.Event) -> None:
        number = 0
        name = kind.__name__.strip("_")
        with self._client() as client:
            while not ended.wait(_PAUSE):
                number += 1
                with suppress(httpx2.HTTPError, OSError):
                    kind(client, number)
                    self.counts[name] = self.counts.get(name, 0) + 1

    def _import(self, client: httpx2.Client, number: int) -> None:
        text = "Some words of a document. " * 20
        lines = (
            json.dumps(
                {
                    "query_id": f"i{number}-{query}",
                    "query": "words",
                    "candidates": [
                        {"document_id": f"d{document}", "text": text} for document in range(20)
                    ],
                }
            )
            for query in range(self._queries)
        )
        self._upload(client, "\n".join(lines))

    def _upload(self, client: httpx2.Client, lines: str) -> None:
        files = {"candidates": ("candidates.jsonl", lines.encode())}
        data = {"source": "candidates"}
        answer = client.post(f"{self._path}/imports", data=data, files=files)
        self._wait_for(client, self._path, answer)

    def _export(self, client: httpx2.Client, _number: int) -> None:
        order = {"content": "log", "format": "jsonl"}
        answer = client.post(f"{self._judged}/exports", json=order)
        self._wait_for(client, self._judged, answer)

    def _wait_for(self, client: httpx2.Client, path: str, answer: httpx2.Response) -> None:
        """One of each kind at a time, as a manager would."""
        job = answer.raise_for_status().json()
        while job["state"] in ("waiting", "running"):
            time.sleep(_PAUSE)
            job = client.get(f"{path}/jobs/{job['id']}").raise_for_status().json()
        if job["state"] != "done":
            raise RuntimeError(f"The job ended as {job['state']}: {job['error']}")

    def _document(self, client: httpx2.Client, _number: int) -> None:
        client.get(f"{self._path}/queries/{self._query}/documents/0/page")

    def _sign_in(self, client: httpx2.Client, _number: int) -> None:
        client.get("/sign-in/oidc", headers={"accept": "text/html"}, timeout=3)

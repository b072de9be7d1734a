"""Honest requests with and without hostile ones beside them, in windows that alternate.

A third window has the same hostile requests at another server of the same kind on this machine:
what is slower then shares nothing but the processors. All windows share the machine with whatever
else it does. Hostile requests come from a process of their own and from other addresses of this
machine, at a bounded rate: what each kind asks is repeated after a pause of 0.2 s. An honest
request is lost if no answer or a refusal comes, and blocked if its answer takes longer than ten
seconds. Rows of the benchmarks ``serving`` and ``studio``.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from http.client import HTTPException
from pathlib import Path
from uuid import uuid4

import httpx2
import numpy as np
from sqlalchemy import Connection, delete, select

from benchmarks._report import Report
from benchmarks._serving_processes import Client, served, tree_bytes
from benchmarks._studio_crowd import Crowd
from benchmarks._studio_disturbance import Disturbance, hostile_document
from benchmarks._studio_server import Server, create_data, running
from podium.data import Dataset
from podium.rankers import TreeRanker
from podium.studio.projects.service import ProjectSettings, create_project
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.tables import LogEntry, Membership
from tests.ports import free_port
from tests.studio.postgres import Postgres

_HONEST_CONNECTIONS = 8
_HONEST_RATE = 40
"""Honest requests a second."""
_DOCUMENTS, _FEATURES = 100, 46
_BLOCKED_SECONDS = 10.0
_PEOPLE = 50
_ADDRESSES = [f"127.0.2.{number}" for number in range(1, 5)]
_HOST = b"Host: 127.0.0.1\r\n"


class HostileConnections(Disturbance):
    """What strangers send, without a token: to any server."""

    path = "/sign-in"

    def kinds(self) -> Sequence[Callable[[httpx2.Client, int], None]]:
        """What is done."""
        return (
            self._endless_headers, self._idle, self._slow_bodies, self._large_body, self._garbage,
            self._hung_up, self._unread,
        )  # fmt: skip

    def _connect(self, number: int) -> socket.socket:
        source = (_ADDRESSES[number % len(_ADDRESSES)], 0)
        return socket.create_connection(("127.0.0.1", self._port), 5, source)

    def _post(self, length: int) -> bytes:
        return (
            f"POST {self.path} HTTP/1.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {length}\r\n"
        ).encode() + _HOST

    def _endless_headers(self, _client: httpx2.Client, number: int) -> None:
        with self._connect(number) as connection, suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\n" + _HOST)
            for line in range(1000):
                connection.sendall(b"X-%d: %s\r\n" % (line, b"a" * 4000))

    def _idle(self, _client: httpx2.Client, number: int) -> None:
        """Say nothing or half a line on more connections than an address may have."""
        with ExitStack() as stack:
            for each in range(600):
                with suppress(OSError):
                    connection = stack.enter_context(self._connect(number))
                    connection.sendall(b"GET / HT" if each % 2 else b"")
            time.sleep(3)

    def _slow_bodies(self, _client: httpx2.Client, number: int) -> None:
        with ExitStack() as stack:
            connections = [stack.enter_context(self._connect(number)) for _ in range(50)]
            for connection in connections:
                connection.sendall(self._post(100_000) + b"\r\n" + b" " * 90_000)
            for _ in range(10):
                time.sleep(0.5)
                for connection in connections:
                    with suppress(ConnectionError):
                        connection.sendall(b" ")

    def _large_body(self, _client: httpx2.Client, number: int) -> None:
        with self._connect(number) as connection, suppress(ConnectionError):
            connection.sendall(self._post(1 << 30) + b"\r\n")
            for _ in range(32):
                connection.sendall(b" " * (1 << 20))

    def _garbage(self, _client: httpx2.Client, number: int) -> None:
        draw = random.Random(number)
        kinds = (
            draw.randbytes(draw.randrange(1, 5000)),
            b"GET /" + b"%00" * draw.randrange(1000) + b" HTTP/1.1\r\n" + _HOST + b"\r\n",
            self._post(1000) + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + b"x" * 1000,
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + _HOST + b"\r\n"
            + b"1;" + b"a" * 60_000 + b"\r\na\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" + _HOST + b"\r\n",
        )  # fmt: skip
        for kind in kinds:
            with self._connect(number) as connection, suppress(OSError):
                connection.settimeout(1)
                connection.sendall(kind)
                connection.recv(1000)

    def _hung_up(self, _client: httpx2.Client, number: int) -> None:
        for _ in range(20):
            with self._connect(number) as connection:
                connection.sendall(self._post(2) + b"\r\n{}")

    def _unread(self, _client: httpx2.Client, number: int) -> None:
        """Ask without end on one connection, and read no answer."""
        with self._connect(number) as connection, suppress(OSError):
            connection.settimeout(2)
            request = b"GET /openapi.json HTTP/1.1\r\n" + _HOST + b"\r\n"
            for _ in range(100):
                connection.sendall(request * 10)


class HostileRankings(HostileConnections):
    """What strangers send to ``podium serve``."""

    path = "/rank"

    def kinds(self) -> Sequence[Callable[[httpx2.Client, int], None]]:
        """What is done."""
        return (*super().kinds(), self._malformed, self._deep, self._most)

    def _malformed(self, client: httpx2.Client, number: int) -> None:
        from tests.serving.hostile import hostile_requests

        for path, body, headers in hostile_requests(number, 20):
            client.post(path, content=body, headers=headers)

    def _deep(self, client: httpx2.Client, _number: int) -> None:
        client.post("/rank", content=b'{"documents":' + b"[" * (1 << 20))

    def _most(self, client: httpx2.Client, _number: int) -> None:
        """As many documents as a request may have, with names of features that do not exist."""
        documents = [{"id": row, "features": {"x": 0.5}} for row in range(10_000)]
        client.post("/rank", content=json.dumps({"documents": documents}).encode())


class HostileManager(HostileConnections):
    """What strangers send to the studio, and who owns a project there: imports that take long."""

    def kinds(self) -> Sequence[Callable[[httpx2.Client, int], None]]:
        """What is done."""
        return (
            *super().kinds(), self._hostile_import, self._bomb, self._export_own, self._others,
            self._wrong_password,
        )  # fmt: skip

    def _hostile_import(self, client: httpx2.Client, number: int) -> None:
        pieces = ("<ul><li><dl><dd>" * 2200, hostile_document()[:100_000])
        candidates = [
            {"document_id": f"d{document}", "html": pieces[document % 2]} for document in range(10)
        ]
        line = {"query_id": f"h{number}-{uuid4()}", "query": "w", "candidates": candidates}
        with suppress(RuntimeError):  # a refused document fails the import
            self._upload(client, json.dumps(line))

    def _bomb(self, client: httpx2.Client, _number: int) -> None:
        files = {"candidates": ("c.jsonl.gz", gzip.compress(b" " * (64 << 20)))}
        data = {"source": "candidates"}
        answer = client.post(f"{self._path}/imports", data=data, files=files)
        with suppress(RuntimeError):  # it has no queries
            self._wait_for(client, self._path, answer)

    def _export_own(self, client: httpx2.Client, _number: int) -> None:
        answer = client.post(f"{self._path}/exports", json={"content": "log", "format": "csv"})
        with suppress(RuntimeError):  # nothing has been judged
            self._wait_for(client, self._path, answer)

    def _others(self, client: httpx2.Client, number: int) -> None:
        """Ask for another project's data, answer its tasks, and send what is not JSON."""
        for path in ("", "/queries", "/report", "/members", "/jobs", "/queries/1/documents"):
            assert client.get(self._judged + path).status_code in (403, 404, 405), path
        answer = {"token": str(uuid4()), "choice": "left", "seconds": 1.0, "tab": "t"}
        for path, body in (
            ("/answers", json.dumps(answer).encode()), ("/next", b"[" * 500_000),
            ("/next", b"9" * 500_000), ("/release", random.Random(number).randbytes(1000)),
        ):  # fmt: skip
            assert client.post(self._judged + path, content=body).is_client_error

    def _wrong_password(self, client: httpx2.Client, number: int) -> None:
        page = client.get("/sign-in", headers={"accept": "text/html"}).text
        form = page.partition('name="form" value="')[2].partition('"')[0]
        person = {"email": f"{number % 50}@example.org", "password": "wrong"}
        client.post("/sign-in", data=person | {"form": form})


class _Windows:
    """What was measured in windows that alternate: honest traffic alone, and beside the hostile.

    Args:
        process: The server's; its memory counts with that of all processes below it.
        hostile: The hostile traffic.
        elsewhere: The same at another server.
    """

    def __init__(self, process: int, hostile: Disturbance, elsewhere: Disturbance) -> None:
        self._process = process
        self._hostile = hostile
        self._elsewhere = elsewhere
        self._took: list[tuple[list[float], list[float], list[float]]] = []
        self._memory: list[float] = []
        self.lost = 0

    def alternate(self, honest: Callable[[float], list[float]], minutes: float) -> None:
        """Run windows of a minute, or less if there would be fewer than three of each.

        A window of hostile traffic comes first and does not count: processes start, code compiles.
        """
        seconds = min(60.0, minutes * 20 / 3)
        with self._hostile.going_on():
            honest(min(20.0, seconds))
        for _ in range(round(minutes * 20 / seconds)):
            quiet = honest(seconds)
            with self._elsewhere.going_on():
                beside = honest(seconds)
            with self._hostile.going_on():
                loud = honest(seconds)
            self._took.append((quiet, beside, loud))
            self._memory.append(tree_bytes(self._process) / 2**20)

    def report(self, report: Report, server: str) -> None:
        """Hold what was measured against its targets."""
        ratios = [_p95(loud) / _p95(quiet) for quiet, _, loud in self._took]
        shared = [_p95(beside) / _p95(quiet) for quiet, beside, _ in self._took]
        quiet, beside, loud = (
            [each for took in kind for each in took] for kind in zip(*self._took, strict=True)
        )
        memory = self._memory
        report.note(
            f"{server}: {len(ratios)} windows of each kind; {len(quiet):,} honest answers, p95 "
            f"{1000 * _p95(quiet):.1f} ms; beside hostile traffic {len(loud):,}, p95 "
            f"{1000 * _p95(loud):.1f} ms, ratio {min(ratios):.2f} to {max(ratios):.2f}; beside the "
            f"same at another server {len(beside):,}, p95 {1000 * _p95(beside):.1f} ms, ratio "
            f"{min(shared):.2f} to {max(shared):.2f}, median {statistics.median(shared):.2f}"
        )
        report.note(f"{server}: hostile: {self._hostile.counts}")
        report.note(
            f"{server}: memory of all processes after the first windows {memory[0]:.0f} MiB, "
            f"halfway {memory[len(memory) // 2]:.0f} MiB, in the end {memory[-1]:.0f} MiB"
        )
        blocked = sum(took > _BLOCKED_SECONDS for took in quiet + loud)
        for what, figure, target, unit in (
            ("p95 beside hostile traffic", statistics.median(ratios), 2.0, "x"),
            ("memory, end over first windows", memory[-1] / memory[0], 1.2, "x"),
            ("honest requests lost", self.lost, 0, ""),
            ("honest requests blocked", blocked, 0, ""),
        ):
            report.check(f"{server}: {what}", figure, target, at_least=False, unit=unit)


def _p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20)[18]


def serve_beside_hostile_traffic(report: Report, minutes: float) -> None:
    """Hold ``podium serve`` with two processes against its own figures in quiet windows.

    A third of the minutes is quiet.
    """
    X = np.random.default_rng(0).random((3000, _FEATURES)).astype(np.float32)
    names = tuple(f"feature_{number:02}" for number in range(_FEATURES))
    data = Dataset.from_arrays(
        X, np.round(2 * X[:, 0] + X[:, 1]), group=[100] * 30, feature_names=names
    )
    documents = [
        {"id": row, "features": dict(zip(names, values, strict=True))}
        for row, values in enumerate(X[:_DOCUMENTS].tolist())
    ]
    body = json.dumps({"query": "q", "documents": documents}).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "web.podium"
        TreeRanker("LambdaMART", n_estimators=300, num_leaves=31).fit(data).save(path)
        log = ("--ranking-log", f"{folder}/log", "--log-gigabytes", "0.2")
        with (
            served(path, "--workers", "2", *log) as (port, process),
            served(path, "--workers", "2") as (other, _),
        ):
            windows = _Windows(process, HostileRankings(port), HostileRankings(other))
            windows.alternate(lambda seconds: _rank(port, body, seconds, windows), minutes)
    windows.report(report, "podium serve")


def _rank(port: int, body: bytes, seconds: float, windows: _Windows) -> list[float]:
    """Ask over some connections at a steady rate; the seconds that each answer took."""
    took: list[float] = []
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        draw = random.Random(number)
        client = Client(port)
        while time.monotonic() < end:
            time.sleep(draw.uniform(0, 2) * _HONEST_CONNECTIONS / _HONEST_RATE)
            begin = time.perf_counter()
            try:
                client.post("/rank", body)
            except (OSError, HTTPException, RuntimeError):  # RuntimeError: another status than 200
                windows.lost += 1
                client = Client(port)
            took.append(time.perf_counter() - begin)

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(_HONEST_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def judge_beside_hostile_traffic(report: Report, postgres: Postgres, minutes: float) -> None:
    """Hold the studio with two processes against its own figures in quiet windows."""
    rate = _PEOPLE / 2
    queries = _PEOPLE + int(rate * minutes * 2)
    url = postgres.create("hostile")
    server, hostile, project, tokens = _studio(url, queries)
    second, elsewhere, _, _ = _studio(postgres.create("elsewhere"), _PEOPLE)
    with running([server, second]):
        crowd = Crowd(project, [server.port], tokens, close=0.04, again=0.05, renews=True)
        crowd.judge_steadily(rate, 5)  # compiles, connects, fills caches
        windows = _Windows(server.process, hostile, elsewhere)
        windows.alternate(lambda seconds: crowd.judge_steadily(rate, seconds), minutes)
    engine = connect(Settings(database=url))
    logged = set(map(str, reading(engine, lambda c: c.scalars(select(LogEntry.token)).all())))
    engine.dispose()
    acknowledged = [seen.token for seen in crowd.seen if seen.answered_at is not None]
    windows.lost = sum(crowd.errors.values()) + sum(token not in logged for token in acknowledged)
    report.note(f"{len(acknowledged):,} acknowledged judgments; errors: {crowd.errors}")
    windows.report(report, "studio")


def _studio(url: str, queries: int) -> tuple[Server, HostileManager, int, list[str]]:
    """Return a server, a stranger with a project there, and the project and tokens of others."""
    stranger = _PEOPLE + 1
    project, tokens = create_data(url, people=stranger, queries=queries, items=20)
    token = tokens.pop()

    def leave(connection: Connection) -> int:
        connection.execute(delete(Membership).where(Membership.user_id == stranger))
        return create_project(connection, stranger, ProjectSettings(name="Other"))

    engine = connect(Settings(database=url))
    other = in_transaction(engine, leave)
    engine.dispose()
    server = Server(url, free_port(), workers=2, pool=4)
    return server, HostileManager(server.port, token, project, other), project, tokens

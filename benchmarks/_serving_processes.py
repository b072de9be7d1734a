"""Services to measure: the real command, and an empty handler behind the same server."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

EMPTY_ANSWER = b'{"ranking":' + b" " * 4000 + b"[]}"
"""About as long as the ranking of 100 documents."""


class _Document(BaseModel):
    id: str
    features: dict[str, float]


class _Payload(BaseModel):
    query: str
    documents: list[_Document]


def empty_app() -> FastAPI:
    """Make an application whose handlers answer at once with nothing computed.

    ``/rank`` declares the payload, as FastAPI's handlers do, so that it is parsed and validated;
    ``/read`` only reads the bytes.
    """
    app = FastAPI()

    @app.post("/rank")
    async def rank(payload: _Payload) -> Response:  # noqa: ARG001 - what FastAPI does for it is measured
        return Response(EMPTY_ANSWER, media_type="application/json")

    @app.post("/read")
    async def read(request: Request) -> Response:
        await request.body()
        return Response(EMPTY_ANSWER, media_type="application/json")

    return app


@contextmanager
def served(ranker: Path, *options: str) -> Iterator[tuple[int, int]]:
    """Run ``podium serve``; gives its port and the id of its process."""
    port = _free_port()
    arguments = ["-m", "podium", "serve", f"web={ranker}", "--port", str(port), *options]
    with _running(arguments, port, "/v2/health/ready") as process:
        yield port, process


@contextmanager
def empty_served(workers: int = 1) -> Iterator[int]:
    """Run the empty handler in so many processes; gives its port."""
    port = _free_port()
    arguments = [
        "-m", "uvicorn", "benchmarks._serving_processes:empty_app", "--factory",
        "--port", str(port), "--workers", str(workers), "--no-access-log", "--log-level", "error",
    ]  # fmt: skip
    with _running(arguments, port, "/openapi.json"):
        yield port


@contextmanager
def _running(arguments: list[str], port: int, path: str) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while not _answers(port, path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the service did not start")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Client:
    """A connection that is kept, and the bytes of requests that are sent over it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.connect()
        # Headers and body go out as two writes; without this the second would wait.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
        """Send a request and return the body of the answer."""
        self._connection.request("POST", path, body, headers or {})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content.decode())
        return content


def resident_bytes(process: int) -> int:
    """Return the memory that a process has in use."""
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+)", status)
    assert match is not None
    return int(match[1]) * 1024


def cpu_seconds(process: int) -> float:
    """Return the time that a process has had of the processors."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tree_bytes(process: int) -> int:
    """Return the memory that a process and all below it have in use."""
    try:
        tasks = Path(f"/proc/{process}/task").iterdir()
        below = {int(child) for task in tasks for child in (task / "children").read_text().split()}
        return resident_bytes(process) + sum(map(tree_bytes, below))
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])

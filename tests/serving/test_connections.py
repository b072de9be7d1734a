"""Connections that want too much, from a socket: each is cut, and others are answered."""

from __future__ import annotations

import asyncio
import http.client
import json
import resource
import socket
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx2
import pytest
from fastapi import FastAPI, Request

from benchmarks._serving_processes import resident_bytes
from podium import http_limits
from podium.serving import ServingSettings, gateway
from podium.serving.settings import parse_model
from tests.app_thread import serving_app
from tests.serving.service import command, rank_body, rows, serving, trees

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
OTHER = "127.0.0.2"
"""Another address of this machine: that of whoever opens connections without end."""


@pytest.fixture(scope="module")
def port():
    app = FastAPI()

    @app.get("/")
    async def answer(seconds: float = 0.0) -> str:
        await asyncio.sleep(seconds)
        return "here"

    @app.post("/")
    async def length(request: Request) -> int:
        return len(await request.body())

    with serving_app(app) as address:
        yield int(address.rpartition(":")[2])


@contextmanager
def connection(port, source="127.0.0.1"):
    with socket.create_connection(("127.0.0.1", port), 60, (source, 0)) as client:
        yield client


def status(client):
    """The status of an answer, or None if the connection is closed."""
    answer = http.client.HTTPResponse(client)
    try:
        answer.begin()
        answer.read()
    except (ConnectionError, http.client.HTTPException):
        return None
    return answer.status


def send_without_end(client, most=32 << 20):
    """Send headers until the connection is cut; return how much was taken."""
    client.sendall(GET)
    sent = 0
    try:
        while sent < most:
            sent += client.send(b"X-%d: %s\r\n" % (sent, b"a" * 4000))
    except ConnectionError:
        pass
    return sent


def test_headers_without_end_are_cut_off(port):
    with connection(port) as client:
        assert send_without_end(client) < 16 << 20  # what the buffers of both sockets hold


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"".join(b"X-%d: a\r\n" % number for number in range(99)), 200),
        (b"".join(b"X-%d: a\r\n" % number for number in range(100)), 431),
        (b"X: " + b"a" * 60_000 + b"\r\n", 200),
        (b"X: " + b"a" * 70_000 + b"\r\n", 431),
    ],
)
@pytest.mark.parametrize("first", [b"", GET + b"\r\n", POST % 200_000 + b"b" * 200_000])
def test_a_head_has_at_most_100_headers_and_64_kibibytes(port, first, head, expected):
    with connection(port) as client:
        if first:  # each head counts anew, and a body does not count
            client.sendall(first)
            assert status(client) == 200
        client.sendall(GET + head + b"\r\n")
        assert status(client) == expected


def test_a_large_request_line_and_an_unfinished_header_are_too_large(port):
    for head in (b"GET /?" + b"a" * 70_000, GET + b"X: " + b"a" * 70_000):
        with connection(port) as client:
            client.sendall(head)
            assert status(client) == 431


@pytest.mark.parametrize(("requests", "answers"), [(32, 32), (33, 0), (5000, 0)])
def test_requests_that_arrive_together_are_few(port, requests, answers):
    with connection(port) as client:
        with suppress(ConnectionError):  # it is closed while the last of them are sent
            client.sendall((GET + b"\r\n") * (requests - 1) + GET + b"Connection: close\r\n\r\n")
        got = b""
        with suppress(ConnectionError):
            got = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert got.count(b"HTTP/1.1 200") == answers


def test_a_trailer_is_limited_and_chunks_are_not(port):
    chunked = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    for chunks in (b"1\r\na\r\n" * 50_000, b"%x\r\n%s\r\n" % (300_000, b"a" * 300_000)):
        for trailer, expected in ((b"\r\n", 200), (b"X: " + b"a" * 700_000, 431)):
            with connection(port) as client:
                client.sendall(chunked + chunks + b"0\r\n")
                with suppress(ConnectionError):
                    client.sendall(trailer)
                assert status(client) in ({200} if expected == 200 else {431, None})


def test_slow_heads_are_closed_and_slow_answers_are_not(port, monkeypatch):
    monkeypatch.setattr(http_limits, "HEAD_SECONDS", 0.6)
    with ExitStack() as stack:
        busy = stack.enter_context(connection(port))
        busy.sendall(b"GET /?seconds=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        second = stack.enter_context(connection(port))
        second.sendall(GET + b"\r\n")
        idle, half = (stack.enter_context(connection(port)) for _ in range(2))
        half.sendall(b"GET / HT")
        assert status(second) == 200
        second.sendall(GET)
        assert [status(client) for client in (idle, half, second)] == [None] * 3
        assert status(busy) == 200
        busy.sendall(GET + b"\r\n")
        assert status(busy) == 200


def test_one_address_cannot_take_all_connections(port, monkeypatch):
    monkeypatch.setattr(http_limits, "MOST_PER_ADDRESS", 5)
    with ExitStack() as stack:
        clients = [stack.enter_context(connection(port, OTHER)) for _ in range(12)]
        assert [status(client) for client in clients[5:]] == [None] * 7
        for source in (OTHER, "127.0.0.1"):
            with connection(port, source) as client:
                client.sendall(GET + b"\r\n")
                assert status(client) == (None if source == OTHER else 200)
        clients[0].sendall(GET + b"\r\n")
        assert status(clients[0]) == 200
    deadline = time.monotonic() + 60
    while http_limits._open[OTHER] and time.monotonic() < deadline:
        time.sleep(0.01)
    with connection(port, OTHER) as client:  # those that were closed do not count any more
        client.sendall(GET + b"\r\n")
        assert status(client) == 200


@pytest.mark.slow
def test_the_command_answers_beside_2050_connections_and_headers_without_end(tmp_path):
    trees().save(tmp_path / "m.podium")
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with command([str(tmp_path / "m.podium")], tmp_path / "log") as service, ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (files, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, 4096), most))
        before = resident_bytes(service.process.pid)
        for _ in range(8):
            with connection(service.port, OTHER) as client:
                send_without_end(client)
        clients = [stack.enter_context(connection(service.port, OTHER)) for _ in range(2050)]
        for client in clients[::2]:
            with suppress(ConnectionError):
                client.sendall(b"POST /rank HT")
        with connection(service.port) as client:
            client.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n")
            assert status(client) == 200
        assert [status(client) for client in clients] == [None] * 2050
        assert resident_bytes(service.process.pid) - before < 32 << 20
        cut = {event["reason"] for event in service.events() if event["event"] == "connections cut"}
    assert cut == {"head too large", "head too slow", "too many from one address"}


def test_large_bodies_on_their_way_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(gateway, "MOST_INCOMPLETE", 4 << 20)
    path = tmp_path / "m.podium"
    trees().save(path)
    length = 3 << 20
    request = b"POST /rank HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % length
    small = json.dumps(rank_body(rows()[:20]))
    with (
        serving(ServingSettings(models=(parse_model(str(path)),))) as address,
        ExitStack() as stack,
    ):
        port = int(address.rpartition(":")[2])
        connections = [stack.enter_context(connection(port)) for _ in range(2)]
        connections[0].sendall(request + b" " * (length - 1))
        time.sleep(0.5)  # it is there before the other
        connections[1].sendall(request + b" " * (length - 1))
        assert status(connections[1]) == 503
        assert httpx2.post(f"{address}/rank", content=small, timeout=60).status_code == 200
        connections[0].sendall(b" ")
        assert status(connections[0]) == 400  # spaces are not JSON, but all of them were read
        again = httpx2.post(f"{address}/rank", content=b" " * length, timeout=60)
        assert again.status_code == 400

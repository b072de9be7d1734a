"""Requests to engines that are busy: sent again when they say, and not forever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from podium.errors import DataError
from podium.export.live.http_client import EngineClient, Retry
from tests.ports import free_port

QUICK = Retry(attempts=2, wait=0.01)


@contextmanager
def answering(*answers: tuple[int, dict[str, str]]) -> Iterator[tuple[str, list[float]]]:
    """Serve these statuses and headers in turn; gives the address and the times of requests."""
    times: list[float] = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            times.append(time.monotonic())
            status, headers = left.pop(0)
            self.send_response(status)
            for name, value in {**headers, "content-length": "2"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", times
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_busy_engine_is_asked_again():
    with answering((503, {}), (429, {}), (200, {})) as (url, times):
        with EngineClient(url, "It", QUICK) as client:
            assert client.request("GET", "x") == (200, {})
        assert len(times) == 3
        assert times[2] - times[1] >= 0.02  # twice the first wait


def test_what_an_engine_asks_for_is_waited():
    with answering((429, {"retry-after": "1"}), (200, {})) as (url, times):
        with EngineClient(url, "It", QUICK) as client:
            client.request("GET", "x")
        assert times[1] - times[0] >= 1.0


def test_an_engine_that_stays_busy_is_an_error():
    with answering(*[(503, {})] * 3) as (url, times):
        with EngineClient(url, "It", QUICK) as client, pytest.raises(DataError, match="status 503"):
            client.request("GET", "x")
        assert len(times) == 3


@pytest.mark.parametrize("status", [400, 404, 500])
def test_other_errors_are_not_asked_again(status):
    with answering((status, {}), (200, {})) as (url, times):
        with EngineClient(url, "It", QUICK) as client, pytest.raises(DataError, match=str(status)):
            client.request("GET", "x")
        assert len(times) == 1


def test_without_retries_a_request_is_sent_once():
    with answering((503, {}), (200, {})) as (url, times):
        with EngineClient(url, "It") as client, pytest.raises(DataError, match="status 503"):
            client.request("GET", "x")
        assert len(times) == 1


def test_an_engine_out_of_reach_is_an_error():
    port = free_port()
    with (
        EngineClient(f"http://127.0.0.1:{port}", "It", QUICK) as client,
        pytest.raises(DataError, match=r"It cannot be reached \(ConnectError\)"),
    ):
        client.request("GET", "x")


def test_the_wait_doubles_up_to_its_limit_and_follows_dates():
    retry = Retry(attempts=9, wait=0.5, longest=10.0)
    assert [retry.seconds(attempt, None) for attempt in (1, 2, 3, 6)] == [0.5, 1.0, 2.0, 10.0]
    assert retry.seconds(1, "4") == 4.0
    assert retry.seconds(1, "999999999999") == 0.5
    later = retry.seconds(1, formatdate(time.time() + 9, usegmt=True))
    assert 2.0 < later <= 9.0
    assert retry.seconds(1, formatdate(time.time() - 60, usegmt=True)) == 0.5
    assert retry.seconds(1, "soon") == 0.5

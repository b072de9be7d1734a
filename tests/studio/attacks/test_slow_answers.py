"""Answers that never end, of servers that the studio asks: each read ends, the answer does not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import anyio
import httpx2
import pytest

from podium.errors import DataError
from podium.http_answers import run_in_thread
from podium.judging import Endpoint
from podium.judging.models.endpoint import EndpointError
from podium.studio.accounts import openid
from podium.studio.jobs import outbox
from podium.studio.settings import Settings
from podium.studio.transfer import search_engines
from podium.studio.transfer.readers import QueryText
from podium.studio.transfer.search_engines import EngineSearch
from tests.studio.server import serving

DATABASES = ["sqlite"]
_ENDLESS = {
    "headers": (b"HTTP/1.1 200 OK\r\nx: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunk sizes": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"0"),
}
_SECONDS = 0.5
_PATIENCE = 8.0
"""Seconds within which whoever asks gives up; the servers go on for longer."""


@pytest.fixture(params=_ENDLESS)
def endless(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server whose answer has another piece every twentieth of a second."""
    begin, piece = _ENDLESS[request.param]

    def answer(connection: socket.socket) -> None:
        with closing(connection), suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(begin)
            for _ in range(400):
                connection.sendall(piece)
                time.sleep(0.05)

    def accept() -> None:
        with suppress(OSError):  # it is closed in the end
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.usefixtures("engine")
def test_an_openid_provider(endless, database, monkeypatch):
    monkeypatch.setattr(openid, "_SECONDS", _SECONDS)
    settings = Settings(
        database=database, oidc_issuer=endless, oidc_client_id="studio", public_url="http://x"
    )
    with serving(settings) as address:
        answer = httpx2.get(f"{address}/sign-in/oidc", timeout=_PATIENCE)
    assert answer.status_code == 502


def test_a_receiver_of_webhooks(endless, monkeypatch):
    monkeypatch.setattr(outbox, "_SECONDS", _SECONDS)
    begin = time.monotonic()
    problem = outbox.send_webhook(Settings(webhooks=[endless]), endless + "/", "secret", 1, {})
    assert problem == "no answer: ReadTimeout"
    assert time.monotonic() - begin < _PATIENCE


def test_a_search_engine(endless, monkeypatch):
    monkeypatch.setattr(search_engines, "_SECONDS", _SECONDS)
    search = EngineSearch(url=f"{endless}/shop/_search", queries="q1\tshoes")
    begin = time.monotonic()
    with pytest.raises(DataError, match="no whole answer within"):
        next(search_engines.fetch(search, [QueryText("q1", "shoes")], [f"{endless}/shop"]))
    assert time.monotonic() - begin < _PATIENCE


def test_a_language_model(endless):
    begin = time.monotonic()
    with (
        Endpoint(f"{endless}#m", key="", timeout=_SECONDS, retries=0) as endpoint,
        pytest.raises(EndpointError, match="no whole reply within"),
    ):
        endpoint.ask([{"role": "user", "content": "Hello"}])
    assert time.monotonic() - begin < _PATIENCE


def test_limits_hold_beside_an_event_loop():
    """Those who call may have one running in their thread, as notebooks do.

    So may this test's thread: a browser driven before it leaves one behind.
    """

    async def call():
        assert run_in_thread(anyio.sleep, 0) is None

    with ThreadPoolExecutor(1) as thread:
        thread.submit(anyio.run, call).result()

"""An HTTP proxy before an engine that answers in its stead, loses answers or kills the client."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_NOT_PASSED_ON = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a request.

    Attributes:
        status: The status of the answer; None if there is none, as for a client that was killed.
        passed_on: How much of the request reaches the engine: nothing, half of it or all.
        act: Called after that, and before the answer: kills the client, or does something else.
    """

    status: int | None = None
    passed_on: float = 0.0
    act: Callable[[], object] = lambda: None


@dataclass
class FaultyProxy:
    """A proxy and its faults.

    Attributes:
        url: Its address, with the path of the engine's.
        fault: From the number of a request, its method and path: the Fault, or None.
        requests: The methods and paths of all requests so far.
    """

    url: str = ""
    fault: Callable[[int, str, str], Any] = lambda _number, _method, _path: None
    requests: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def faulty_proxy(url: str) -> Iterator[FaultyProxy]:
    """Run a proxy before an address."""
    target = urlsplit(url)
    proxy = FaultyProxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            assert self.command is not None
            proxy.requests.append((self.command, self.path))
            fault = proxy.fault(len(proxy.requests), self.command, self.path)
            share = 1.0 if fault is None else fault.passed_on
            status, answer, kind = 502, b"", "application/json"
            if share == 1.0:
                status, answer, kind = self.passed_on(body)
            elif share:
                self.begun(body[: int(len(body) * share)], len(body))
            if fault is not None:
                fault.act()
                status, answer = fault.status or status, b'{"error": "by the proxy"}'
                if fault.status is None:
                    self.close_connection = True
                    return
            with suppress(OSError):
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        def engine(self) -> http.client.HTTPConnection:
            assert target.hostname is not None
            return http.client.HTTPConnection(target.hostname, target.port, timeout=120)

        def headers_for_engine(self) -> dict[str, str]:
            return {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _NOT_PASSED_ON | {"accept-encoding"}
            }

        def passed_on(self, body: bytes) -> tuple[int, bytes, str]:
            connection = self.engine()
            try:
                connection.request(self.command, self.path, body or None, self.headers_for_engine())
                response = connection.getresponse()
                kind = response.getheader("content-type") or "application/json"
                return response.status, response.read(), kind
            finally:
                connection.close()

        def begun(self, part: bytes, size: int) -> None:
            """Send the beginning of a request, and go away."""
            connection = self.engine()
            connection.putrequest(self.command, self.path)
            for name, value in self.headers_for_engine().items():
                connection.putheader(name, value)
            connection.putheader("content-length", str(size))
            connection.endheaders(part)
            connection.close()

        do_GET = do_PUT = do_POST = do_DELETE = handle_any

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_port}{target.path}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

"""An application behind a real socket, in a thread of the tests' process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from podium.http_limits import SERVER_OPTIONS
from tests.ports import free_port


@contextmanager
def serving_app(app: FastAPI, port: int | None = None) -> Iterator[str]:
    """Run a server, by default on a free port; gives its address."""
    port = port or free_port()
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="error", lifespan="on", **SERVER_OPTIONS
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)

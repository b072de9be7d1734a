"""A TCP proxy before an engine that hangs, refuses or delays what the test asks it to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

_CHUNK = 1 << 16


@dataclass
class EngineProxy:
    """What the proxy does with the bytes of clients.

    Attributes:
        port: Where it listens.
        delays: Seconds that a request waits if it has these bytes in it; the first match counts.
        hang: Whether nothing is passed on.
        requests: How many requests were passed on.
        connections: The connections of clients now, and the most at once.
    """

    port: int = 0
    delays: dict[bytes, float] = field(default_factory=dict)
    hang: bool = False
    requests: int = 0
    connections: int = 0
    most_connections: int = 0


@contextmanager
def proxied(url: str) -> Iterator[EngineProxy]:
    """Run a proxy before the host and port of an address."""
    target = urlsplit(url)
    proxy = EngineProxy()
    ready = threading.Event()
    stop: Callable[[], object] = ready.set

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.connections += 1
        proxy.most_connections = max(proxy.most_connections, proxy.connections)
        back: asyncio.Task[None] | None = None
        engine: asyncio.StreamWriter | None = None
        try:
            while proxy.hang:
                await asyncio.sleep(0.01)
            engine_reader, engine = await asyncio.open_connection(target.hostname, target.port)
            back = asyncio.ensure_future(passed_on(engine_reader, writer))
            while chunk := await reader.read(_CHUNK):
                while proxy.hang:
                    await asyncio.sleep(0.01)
                for words, seconds in proxy.delays.items():
                    if words in chunk:
                        await asyncio.sleep(seconds)
                        break
                proxy.requests += chunk.count(b"POST ")
                engine.write(chunk)
                await engine.drain()
        except OSError:
            pass
        finally:
            proxy.connections -= 1
            if back is not None:
                back.cancel()
            for each in (engine, writer):
                if each is not None:
                    each.close()

    async def run() -> None:
        nonlocal stop
        stopping = asyncio.Event()
        stop = partial(asyncio.get_running_loop().call_soon_threadsafe, stopping.set)
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        proxy.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stopping.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)  # they close their connections

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    ready.wait(60)
    try:
        yield proxy
    finally:
        stop()
        thread.join(10)

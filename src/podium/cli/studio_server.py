"""Running the studio's server: a demonstration in one process, or a team's in several."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
import webbrowser

import structlog
import typer
import uvicorn

from podium.cli.studio_database import NEWER, connected
from podium.errors import DataError
from podium.http_limits import SERVER_OPTIONS
from podium.logs import set_up_logs
from podium.studio.app import create_app
from podium.studio.demo import prepare_demo
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.migrate import known_revisions, revisions, upgrade
from podium.studio.store.tokens import digest, new_secret
from podium.studio.web.assets import require_scripts

_HOST = "127.0.0.1"


def run_demo(settings: Settings, port: int, browser: bool) -> None:
    """Serve a demonstration on this machine, with tables, account, project and a sign-in link."""
    require_scripts()
    set_up_logs("WARNING", readable=True)
    with connected(settings) as engine:
        upgrade(engine)
        admin = in_transaction(engine, prepare_demo)
    listening = _listen(port)
    address = f"http://{_HOST}:{listening.getsockname()[1]}"
    app = create_app(settings)
    secret = new_secret()
    app.state.one_time[digest(secret)] = admin
    link = f"{address}/sign-in/once/{secret}"
    typer.echo(f"Podium Studio is at {address}, with everything in {settings.database}.")
    typer.echo(f"Sign in (once) at {link}")
    typer.echo("Press Ctrl-C to stop.")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", **SERVER_OPTIONS))
    if browser:
        threading.Thread(target=_open, args=(server, link), daemon=True).start()
    server.run(sockets=[listening])


def run_server(
    settings: Settings, host: str, port: int, workers: int, *, migrate_first: bool
) -> None:
    """Serve a team."""
    require_scripts()
    with connected(settings) as engine:
        if migrate_first:
            upgrade(engine)
        present, newest = revisions(engine)
    if present != newest:
        unknown = present is not None and present not in known_revisions()
        raise DataError(
            f"the database's tables are at revision {present or 'none'}, not {newest}",
            hint=NEWER if unknown else "Run podium studio migrate first, or add --migrate.",
        )
    set_up_logs()
    address = settings.public_url or f"http://{host}:{port}"
    structlog.get_logger("podium.studio").info("serving", address=address, workers=workers)
    with tempfile.TemporaryDirectory(prefix="podium-metrics-") as folder:
        if workers > 1:
            # Each process writes its counters here; the one that is scraped adds them up.
            os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", folder)
        _serve(settings, host, port, workers)


def _serve(settings: Settings, host: str, port: int, workers: int) -> None:
    uvicorn.run(
        "podium.studio.app:application",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
        **SERVER_OPTIONS,
    )


def _listen(port: int) -> socket.socket:
    """A socket at a port, or at any that is free if that one is taken."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError:
        listener.bind((_HOST, 0))
    return listener


def _open(server: uvicorn.Server, link: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(link)

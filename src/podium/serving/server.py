"""The processes of ``podium serve``: one, or several that share a socket."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvicorn

from podium.errors import ArgumentError, DataError
from podium.http_limits import SERVER_OPTIONS, run_below
from podium.logs import set_up_logs
from podium.serving.metrics import FOLDER as METRICS_FOLDER
from podium.serving.releases import Release
from podium.serving.repository import Repository
from podium.serving.searcher import prepare_search
from podium.serving.settings import ServingSettings
from podium.serving.tokens import Tokens
from podium.serving.workers import HAS_SIGNALS, ask_to_reload

_APPLICATION = "podium.serving.app:application"
_SETTINGS = "PODIUM_SERVING_SETTINGS"
_DRAIN_SECONDS = 30
_HEALTH_SECONDS = 30
"""A process that does not react for so long is replaced; on a busy machine a start takes that."""
_MOST_CONNECTIONS = 2_000


def settings_from_environment() -> ServingSettings:
    """Read the settings that ``run_server`` wrote for its processes."""
    set_up_logs()
    if HAS_SIGNALS:
        # Until the application has its handlers: a signal must not end a process that starts.
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return msgspec.json.decode(Path(os.environ[_SETTINGS]).read_bytes(), type=ServingSettings)


def run_server(settings: ServingSettings, host: str, port: int, workers: int) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered are finished first.

    SIGHUP reads the models' files anew.
    """
    if workers > 1 and not HAS_SIGNALS:
        raise ArgumentError("a service is one process on Windows", hint="Leave --workers out.")
    if settings.token_file is not None:
        Tokens.read(settings.token_file)  # so that a mistake is seen before the start
    with tempfile.TemporaryDirectory(prefix="podium-serving-") as folder:
        state = Path(folder)
        settings = msgspec.structs.replace(settings, state_folder=folder)
        release = _checked_release(settings, state)
        (state / "settings.json").write_bytes(msgspec.json.encode(settings))
        os.environ[_SETTINGS] = str(state / "settings.json")
        port = _checked_port(host, port)
        set_up_logs()  # mistakes of the command line were printed as those of any command
        structlog.get_logger("podium.serving").info(
            "serving",
            address=f"http://{host}:{port}",
            workers=workers,
            models=[f"{model.name}@{model.version}" for model in release.models],
        )
        options = {
            "factory": True,
            "host": host,
            "port": port,
            "workers": workers,
            "limit_concurrency": _MOST_CONNECTIONS,
            "timeout_graceful_shutdown": _DRAIN_SECONDS,
            "timeout_worker_healthcheck": _HEALTH_SECONDS,
            **SERVER_OPTIONS,
        }
        if workers == 1:
            # The server raises the signal that ended it once more when it has shut down.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _ignore)
            uvicorn.run(_APPLICATION, **options)
            return
        # Each process writes its figures here; the one that is scraped adds them up.
        (state / "metrics").mkdir()
        os.environ.setdefault(METRICS_FOLDER, str(state / "metrics"))
        _run_supervised(state, options)


def _run_supervised(state: Path, options: dict[str, Any]) -> None:
    """Run Uvicorn's own supervisor in a process below this one, which passes signals on.

    At SIGHUP, Uvicorn would restart its processes. Here one of them reads the models anew for all,
    and they go on answering.
    """
    spawn = multiprocessing.get_context("spawn")
    server = spawn.Process(target=run_below, args=[_APPLICATION, options])
    server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: server.terminate())
    signal.signal(signal.SIGHUP, lambda _number, _frame: ask_to_reload(state))
    server.join()
    if server.exitcode not in (0, -signal.SIGTERM):
        raise SystemExit(1)


def _checked_release(settings: ServingSettings, state: Path) -> Release:
    """Load all that the processes will load, so that a mistake is seen before the start."""
    repository = Repository(settings, state)
    release = repository.reload()
    if settings.search is not None and repository.definitions is not None:
        prepare_search(settings.search, repository.definitions)
    return release


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing, where the default would end the process without cleaning up."""


def _checked_port(host: str, port: int) -> int:
    """Return the port, or a free one for 0; a DataError if it cannot be listened at."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listening:
            if os.name != "nt":  # there it would take the port of another process
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            return int(listening.getsockname()[1])
    except OSError as error:
        raise DataError(
            f"{host}:{port} cannot be listened at ({error.strerror})", hint="Choose another port."
        ) from error

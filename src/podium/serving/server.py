"""The processes of ``podium serve``: one, or several that share a socket."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec
import structlog
import uvicorn
from uvicorn.supervisors import Multiprocess

from podium.errors import DataError
from podium.logs import set_up_logs
from podium.serving.metrics import FOLDER as METRICS_FOLDER
from podium.serving.releases import Release
from podium.serving.repository import Repository
from podium.serving.search.searcher import prepare_search
from podium.serving.settings import ServingSettings
from podium.serving.tokens import Tokens
from podium.serving.workers import ask_to_reload

_SETTINGS = "PODIUM_SERVING_SETTINGS"
_DRAIN_SECONDS = 30
_HEALTH_SECONDS = 30
"""A process that does not react for so long is replaced; on a busy machine a start takes that."""
_MOST_CONNECTIONS = 2_000


def settings_from_environment() -> ServingSettings:
    """Read the settings that ``run_server`` wrote for its processes."""
    set_up_logs()
    # Until the application has its handlers: a signal must not end a process that starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    return msgspec.json.decode(Path(os.environ[_SETTINGS]).read_bytes(), type=ServingSettings)


def run_server(settings: ServingSettings, host: str, port: int, workers: int) -> None:
    """Serve until SIGTERM or SIGINT; requests that are being answered are finished first.

    SIGHUP reads the models' files anew.
    """
    if settings.token_file is not None:
        Tokens.read(settings.token_file)  # so that a mistake is seen before the start
    with tempfile.TemporaryDirectory(prefix="podium-serving-") as folder:
        state = Path(folder)
        settings = msgspec.structs.replace(settings, state_folder=folder)
        release = _checked_release(settings, state)
        (state / "settings.json").write_bytes(msgspec.json.encode(settings))
        os.environ[_SETTINGS] = str(state / "settings.json")
        config = uvicorn.Config(
            "podium.serving.app:application",
            factory=True,
            workers=workers,
            access_log=False,
            log_config=None,  # JSON, like all other logs
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=75,  # longer than a proxy keeps an idle connection for reuse
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            timeout_worker_healthcheck=_HEALTH_SECONDS,
        )
        listening = _listen(host, port)
        set_up_logs()  # mistakes of the command line were told as those of any command
        structlog.get_logger("podium.serving").info(
            "serving",
            address=f"http://{host}:{listening.getsockname()[1]}",
            workers=workers,
            models=[f"{model.name}@{model.version}" for model in release.models],
        )
        if workers == 1:
            # The server raises the signal that ended it once more when it has shut down.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _ignore)
            uvicorn.Server(config).run(sockets=[listening])
            return
        # Each process writes its figures here; the one that is scraped adds them up.
        (state / "metrics").mkdir()
        os.environ.setdefault(METRICS_FOLDER, str(state / "metrics"))
        _Supervisor(config, [listening], state).run()


def _checked_release(settings: ServingSettings, state: Path) -> Release:
    """Load all that the processes will load, so that a mistake is seen before the start."""
    repository = Repository(settings, state)
    release = repository.reload()
    if settings.search is not None and repository.definitions is not None:
        prepare_search(settings.search, repository.definitions)
    return release


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing, where the default would end the process without cleaning up."""


class _Supervisor(Multiprocess):
    """Starts processes, replaces those that die, and passes SIGHUP to one of them."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], state: Path) -> None:
        super().__init__(config, sockets)
        self._state = state

    def handle_hup(self) -> None:
        """Have models read anew by the processes themselves, which go on answering."""
        ask_to_reload(self._state)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with ExitStack() as stack:
            listening = stack.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            stack.pop_all()
    except OSError as error:
        raise DataError(
            f"{host}:{port} cannot be listened at ({error.strerror})", hint="Choose another port."
        ) from error
    listening.set_inheritable(True)
    return listening

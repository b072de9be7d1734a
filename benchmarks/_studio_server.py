"""A database with people and a project in it, and servers to run on it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, insert, text

from podium.data import Candidate, CandidateList
from podium.studio.projects.service import ProjectSettings, add_query, create_project, project_row
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction
from podium.studio.store.enums import Role
from podium.studio.store.migrate import upgrade
from podium.studio.store.tables import ApiToken, Membership, User
from podium.studio.store.tokens import digest

_RUN = """
import sys
from podium.http_limits import SERVER_OPTIONS, run_below
port, workers = map(int, sys.argv[1:])
run_below(
    "podium.studio.app:application",
    {"factory": True, "host": "127.0.0.1", "port": port, "workers": workers, **SERVER_OPTIONS},
)
"""
"""As ``podium studio serve``, which would not start while the database is down."""


def create_data(
    database: str, *, people: int, queries: int, items: int, **settings: Any
) -> tuple[int, list[str]]:
    """Make tables, people and a project; returns the project and everyone's API token.

    The document of the lower position is always the better one.
    """
    engine = connect(Settings(database=database))
    upgrade(engine)
    tokens = [f"podium_benchmark_{number}" for number in range(people)]

    def work(connection: Connection) -> int:
        connection.execute(
            insert(User),
            [
                {
                    "id": number,
                    "email": f"{number}@example.org",
                    "name": f"Assessor {number}",
                    "is_admin": False,
                    "disabled": False,
                    "created_at": 0.0,
                }
                for number in range(1, people + 1)
            ],
        )
        project_id = create_project(connection, 1, ProjectSettings(name="Benchmark", **settings))
        connection.execute(
            insert(Membership),
            [
                {"project_id": project_id, "user_id": number, "role": Role.ASSESSOR.value}
                for number in range(2, people + 1)
            ],
        )
        connection.execute(
            insert(ApiToken),
            [
                {
                    "user_id": number,
                    "name": "benchmark",
                    "key": digest(token),
                    "created_at": 0.0,
                    "expires_at": 1e12,
                }
                for number, token in enumerate(tokens, 1)
            ],
        )
        project = project_row(connection, project_id)
        for number in range(queries):
            add_query(connection, project, _query(number, items))
        return project_id

    project_id = in_transaction(engine, work)
    # A server that has run for a minute has done this by itself.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()
    return project_id, tokens


def _query(number: int, items: int) -> CandidateList:
    documents = tuple(
        Candidate(f"d{item:03}", title=f"Document {item}", text=f"Its text, {item}. " * 20)
        for item in range(items)
    )
    return CandidateList(f"q{number:05}", f"query {number}", documents, "What it means")


class Server:
    """A server process of its own, which can be killed and started again."""

    def __init__(
        self, database: str, port: int, *, workers: int = 1, pool: int = 10, **settings: str
    ) -> None:
        self.port = port
        self._workers = workers
        exports = tempfile.mkdtemp(prefix="podium-exports-")
        weakref.finalize(self, shutil.rmtree, exports, ignore_errors=True)
        self._environment = {
            **os.environ,
            "PODIUM_STUDIO_EXPORTS": exports,
            "PODIUM_STUDIO_DATABASE": database,
            "PODIUM_STUDIO_POOL_SIZE": str(pool),
            **{f"PODIUM_STUDIO_{name.upper()}": value for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; `wait` until it answers."""
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _RUN, str(self.port), str(self._workers)
            ],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until it takes connections."""
        end = time.monotonic() + seconds
        while not self.is_up():
            ended = self._process is not None and self._process.poll() is not None
            if ended or time.monotonic() > end:
                raise ConnectionError(f"nobody answers at port {self.port}")
            time.sleep(0.05)

    def is_up(self) -> bool:
        """Whether it takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    @property
    def process(self) -> int:
        """The id of the process that was started; that of its supervisor if it has several."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a crash would: the process and its workers."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None


@contextmanager
def running(servers: Sequence[Server]) -> Iterator[None]:
    """Run servers while something is measured."""
    for server in servers:
        server.start()
    try:
        for server in servers:
            server.wait()
        yield
    finally:
        for server in servers:
            server.kill()

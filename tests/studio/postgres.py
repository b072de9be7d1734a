"""A PostgreSQL server of the tests' own, in a temporary folder, which can be killed and started."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

from tests.ports import free_port

BINARIES = Path("/usr/lib/postgresql/15/bin")


class Postgres:
    """A server of its own. PostgreSQL refuses to run as root, so it runs as user postgres."""

    def __init__(self, **settings: str) -> None:
        # Not in pytest's folders: those are closed to all but their owner.
        self.folder = Path(tempfile.mkdtemp(prefix="podium-postgres-"))
        self.port = free_port()
        self.settings = {"max_connections": "200", "shared_buffers": "256MB", **settings}
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run(
            BINARIES / "initdb", "-D", self.data, "-A", "trust", "-U", "podium", "-E", "UTF8",
            "--locale=C.UTF-8",
        )  # fmt: skip

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql+psycopg://podium@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = " ".join(f"-c {name}={value}" for name, value in self.settings.items())
        options += f" -p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        self._run(
            BINARIES / "pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-t", "60",
            "-o", options, "start",
        )  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; ``immediate`` is as if the machine went down."""
        self._run(BINARIES / "pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        # Hundreds of databases are a hundred thousand files: nobody waits for that.
        subprocess.run(
            ["sh", "-c", 'rm -rf "$0" &', str(self.folder)], check=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def create(self, database: str, template: str = "template0") -> str:
        """Make a database, by default an empty one, and return its address."""
        with psycopg.connect(self.url().replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                    sql.Identifier(database), sql.Identifier(template)
                )
            )
        return self.url(database)

    def _run(self, *command: object) -> None:
        words = [str(word) for word in command]
        if os.getuid() == 0:
            words = ["runuser", "-u", "postgres", "--", *words]
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=self.folder, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")


def wait_until(holds, seconds: float = 120.0) -> None:  # type: ignore[no-untyped-def]
    """Wait for something, and fail if it takes too long."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)

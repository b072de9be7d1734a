"""Databases for tests: copies of one that has the studio's tables, since migrations take long."""

from __future__ import annotations

import itertools
import os
import tempfile
from functools import cache
from pathlib import Path

from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.store.migrate import upgrade
from tests.studio.postgres import Postgres

BOTH = ("sqlite", "postgresql")
"""What a module names as its ``DATABASES`` if it is about SQL or concurrency."""
_numbers = itertools.count()


def new_name(prefix: str = "studio") -> str:
    """A name that no other database of this process has."""
    return f"{prefix}_{os.getpid()}_{next(_numbers)}"


def sqlite_with_tables(file: Path) -> str:
    """Make a file with the studio's tables, and return its address."""
    file.write_bytes(_sqlite_template())
    file.chmod(0o600)
    return f"sqlite:///{file}"


def postgres_with_tables(server: Postgres) -> str:
    """Make a database with the studio's tables on a server, and return its address."""
    return server.create(new_name(), _postgres_template(server))


@cache
def _sqlite_template() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "studio.db"
        _migrate(f"sqlite:///{file}")
        return file.read_bytes()


@cache
def _postgres_template(server: Postgres) -> str:
    _migrate(server.create("studio_template"))
    return "studio_template"


def _migrate(database: str) -> None:
    engine = connect(Settings(database=database))
    upgrade(engine)
    engine.dispose()

"""Both databases, an application over them, and projects in it."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from podium.studio.judging.service import JudgingService
from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.store.migrate import upgrade
from tests.studio.judging_helpers import ByNumber, Clock
from tests.studio.postgres import BINARIES, Postgres

_numbers = itertools.count()


def next_number() -> int:
    """A number that no other database of this process has."""
    return next(_numbers)


@pytest.fixture(autouse=True)
def _exports(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that servers write go with the test."""
    monkeypatch.setenv("PODIUM_STUDIO_EXPORTS", str(tmp_path / "exports"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    if not (BINARIES / "initdb").exists():
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is missing: .ci/run installs it")
        pytest.skip("needs PostgreSQL 15: apt-get install postgresql")
    # Statistics are renewed when a test says so, and at no other time.
    with Postgres(fsync="off", autovacuum="off") as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path) -> str:
    """The address of an empty database, in turn of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studio.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create(f"studio_{os.getpid()}_{next_number()}")


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """A database with its tables."""
    found = connect(Settings(database=database))
    upgrade(found)
    yield found
    found.dispose()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(engine: Engine, clock: Clock) -> ByNumber:
    return ByNumber(engine, JudgingService(engine, clock, random.Random(7)))

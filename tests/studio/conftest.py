"""Both databases, an application over them, and projects in it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher
from sqlalchemy import Engine

from podium.studio.settings import Settings
from podium.studio.store.database import connect
from tests.studio.databases import new_name, postgres_with_tables, sqlite_with_tables
from tests.studio.judging_helpers import Clock, Judges
from tests.studio.postgres import BINARIES, Postgres


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module's tests on the databases that it names, but for a test that names its own."""
    kinds = getattr(metafunc.module, "DATABASES", None)
    own = any(
        "database_kind" in each.args for each in metafunc.definition.iter_markers("parametrize")
    )
    if kinds and not own and "database_kind" in metafunc.fixturenames:
        metafunc.parametrize("database_kind", kinds)


@pytest.fixture(autouse=True, scope="session")
def _quick_passwords() -> Iterator[None]:
    """Hash passwords with as little work as Argon2 allows: no test is about that work."""
    with pytest.MonkeyPatch.context() as patched:
        quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patched.setattr("podium.studio.accounts.service._HASHER", quick)
        yield


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


@pytest.fixture
def database_kind() -> str:
    """SQLite, which is quicker, where a module does not say ``DATABASES = BOTH``."""
    return "sqlite"


@pytest.fixture
def database(request: pytest.FixtureRequest, database_kind: str, tmp_path) -> str:
    """The address of a database with the studio's tables."""
    if database_kind == "sqlite":
        return sqlite_with_tables(tmp_path / "studio.db")
    return postgres_with_tables(request.getfixturevalue("postgres"))


@pytest.fixture
def empty_database(request: pytest.FixtureRequest, database_kind: str, tmp_path) -> str:
    """The address of a database without tables; the file of SQLite is not there yet."""
    if database_kind == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create(new_name())


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """A connection to the database."""
    engine = connect(Settings(database=database))
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(engine: Engine, clock: Clock) -> Judges:
    return Judges(engine, clock, random.Random(7))

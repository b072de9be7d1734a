"""A running server on PostgreSQL, programs that judge on it, and browsers where a page matters."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import httpx
import pytest

from podium.studio.settings import Settings
from tests.studio.attacks.judge_client import JudgeClient
from tests.studio.browser.conftest import browser, judging, person_browser  # noqa: F401
from tests.studio.http_client import program
from tests.studio.postgres import Postgres
from tests.studio.server import serving

_numbers = itertools.count()


@pytest.fixture
def database(postgres: Postgres) -> str:
    return postgres.create(f"attacks_{os.getpid()}_{next(_numbers)}")


@pytest.fixture
def address(engine, database, tmp_path) -> Iterator[str]:  # noqa: ARG001 (the engine makes the tables)
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


@pytest.fixture
def server(database: str, engine: object) -> Iterator[str]:  # noqa: ARG001 (the engine makes the tables)
    """The address of a running server with the default settings."""
    with serving(Settings(database=database)) as found:
        yield found


@pytest.fixture
def api(engine, address) -> Iterator[Callable[[int], httpx.Client]]:
    """Gives someone's client."""
    clients: list[httpx.Client] = []

    def open_one(user: int) -> httpx.Client:
        clients.append(program(engine, address, user))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


@pytest.fixture
def judge(api) -> Callable[[int, int], JudgeClient]:
    """Gives someone who judges in a project over HTTP."""
    return lambda user, project: JudgeClient(api(user), project)

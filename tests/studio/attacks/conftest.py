"""A running server on PostgreSQL, programs that judge on it, and browsers where a page matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx2
import pytest

from podium.studio.settings import Settings
from tests.studio.attacks.judge_client import JudgeClient
from tests.studio.browser.conftest import browser, judging, person_browser  # noqa: F401
from tests.studio.http_client import program
from tests.studio.server import serving


@pytest.fixture
def database_kind() -> str:
    return "postgresql"


@pytest.fixture
def address(database, tmp_path) -> Iterator[str]:
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


@pytest.fixture
def server(database: str) -> Iterator[str]:
    """The address of a running server with the default settings."""
    with serving(Settings(database=database)) as found:
        yield found


@pytest.fixture
def api(engine, address) -> Iterator[Callable[[int], httpx2.Client]]:
    """Gives someone's client."""
    clients: list[httpx2.Client] = []

    def open_one(user: int) -> httpx2.Client:
        clients.append(program(engine, address, user))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


@pytest.fixture
def judge(api) -> Callable[[int, int], JudgeClient]:
    """Gives someone who judges in a project over HTTP."""
    return lambda user, project: JudgeClient(api(user), project)

"""Attacks are on servers with PostgreSQL, which teams run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from podium.studio.settings import Settings
from tests.studio.conftest import next_number
from tests.studio.postgres import Postgres
from tests.studio.serving import serving


@pytest.fixture
def database(postgres: Postgres) -> str:
    return postgres.create(f"attacked_{os.getpid()}_{next_number()}")


@pytest.fixture
def server(database: str, engine: object) -> Iterator[str]:
    """The address of a running server with the default settings."""
    with serving(Settings(database=database)) as address:
        yield address

"""Helpers shared by the ``podium studio`` commands: database, confirmation and messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from podium.cli.text import shown
from podium.errors import ArgumentError, MissingPackageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from podium.studio.settings import Settings

Database = Annotated[
    str | None,
    typer.Option(
        help="The database URL, for example postgresql+psycopg://user@host/name; by default "
        "PODIUM_STUDIO_DATABASE, else SQLite in this folder."
    ),
]


def need_studio() -> None:
    """Raise an error if the studio's packages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingPackageError("FastAPI", extra="studio") from error


def settings_for(database: str | None) -> Settings:
    """Read the settings from the environment, with another database if one is named."""
    need_studio()
    from podium.studio.settings import Settings

    if database is not None:
        # Server processes read the environment: they must use the same database.
        os.environ["PODIUM_STUDIO_DATABASE"] = database
    return Settings()


@contextmanager
def engine_for(database: str | None) -> Iterator[Engine]:
    """Connect to a database."""
    from podium.studio.store.database import connect

    engine = connect(settings_for(database))
    try:
        yield engine
    finally:
        engine.dispose()


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless `yes`; without a terminal, refuse."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ArgumentError("There is no terminal to ask on", hint="Add --yes if you are sure.")
    typer.confirm(question, abort=True, err=True)


def say(text: str) -> None:
    """Print a message to standard error; standard output is for results."""
    Console(stderr=True).print(shown(text), soft_wrap=True)

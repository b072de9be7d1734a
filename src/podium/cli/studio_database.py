"""Helpers shared by the ``podium studio`` commands: database, confirmation and messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from podium.cli.outputs import require_other_file
from podium.cli.text import shown
from podium.errors import ArgumentError, DataError, MissingPackageError

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

_MIGRATE = "Run podium studio migrate first."
NEWER = (
    "A newer version of Podium has changed it: install that version, or restore an older backup."
)
_SQLITE_HINTS = {
    "unable to open": "Give a file in a folder that exists and that you may write to.",
    "not a database": "Give another file, or move this one away.",
    "moved away": "Stop all servers, then move the files that end in -wal and -shm after it.",
    "is locked": "Another program keeps it locked: end that one, then try again.",
    "readonly": "Make the file and its folder writable.",
    "malformed": "The file is damaged: restore a backup to a new file.",
    "no such table": _MIGRATE,
    "no such column": _MIGRATE,
}
"""What to do, by what SQLite says."""


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


def engine_for(database: str | None) -> AbstractContextManager[Engine]:
    """Connect to a database."""
    return connected(settings_for(database))


@contextmanager
def connected(settings: Settings) -> Iterator[Engine]:
    """Connect to the settings' database; if it cannot be opened, say why and what to do."""
    from alembic.util import CommandError
    from sqlalchemy import exc, make_url

    from podium.studio.store.database import connect

    try:
        url = make_url(settings.database)
        name = url.render_as_string(hide_password=True)
        engine = connect(settings)
    except (exc.ArgumentError, exc.NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
        raise ArgumentError(
            "the studio cannot use this database URL",
            hint="Give postgresql+psycopg://user@host/name or sqlite:///file.db, as --database or "
            "PODIUM_STUDIO_DATABASE.",
        ) from error
    try:
        yield engine
    except CommandError as error:
        raise DataError(str(error), path=name, hint=NEWER) from error
    except exc.DatabaseError as error:
        problem = " ".join(str(error.orig).partition("\nLINE")[0].split()).rstrip("?.")
        hint = _hint(url.get_backend_name(), problem, isinstance(error, exc.OperationalError))
        if not hint:
            raise
        raise DataError(problem, path=name, hint=hint) from error
    finally:
        engine.dispose()


def _hint(backend: str, problem: str, operational: bool) -> str:
    """What to do about a database that cannot be used; empty for errors of another kind."""
    if backend != "sqlite":
        if operational:
            return "Does its server run, and let this user in?"
        return _MIGRATE if problem.endswith("does not exist") else ""
    return next((hint for words, hint in _SQLITE_HINTS.items() if words in problem), "")


def require_not_database(output: Path, engine: Engine) -> None:
    """Refuse an output that is a file of the SQLite database in use, or may become one."""
    from podium.studio.store.database import reading, sqlite_file

    if engine.dialect.name == "sqlite" and (file := reading(engine, sqlite_file)):
        files = (f"{file}{ending}" for ending in ("", "-wal", "-shm", "-journal"))
        require_other_file(str(output), *files)


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

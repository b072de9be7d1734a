"""Bring a database's tables up to date, or back."""

from __future__ import annotations

from collections.abc import Callable

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

_LOCK = 7_064_975
"""Names PostgreSQL's advisory lock: servers that start together migrate one after the other."""


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "podium.studio.store:migrations")
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the tables forward to a revision, by default the newest."""
    _run(engine, lambda config: command.upgrade(config, revision))


def downgrade(engine: Engine, revision: str) -> None:
    """Bring the tables back to a revision; ``base`` takes them all away."""
    _run(engine, lambda config: command.downgrade(config, revision))


def revisions(engine: Engine) -> tuple[str | None, str | None]:
    """The revision that a database has, and the newest there is."""
    with engine.connect() as connection:
        present = MigrationContext.configure(connection).get_current_revision()
    return present, ScriptDirectory.from_config(_config()).get_current_head()


def known_revisions() -> set[str]:
    """All revisions that this version knows."""
    scripts = ScriptDirectory.from_config(_config())
    return {script.revision for script in scripts.walk_revisions()}


def _run(engine: Engine, step: Callable[[Config], None]) -> None:
    config = _config()
    with engine.begin() as connection:
        _wait_for_others(connection)
        config.attributes["connection"] = connection
        step(config)


def _wait_for_others(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})

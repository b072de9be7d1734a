"""Backups of a whole server in one file, and restoring them into an empty database.

A backup is a zip with the database's own dump and a manifest. The manifest has a digest of the
judgments as of the dump's snapshot: after restoring, the digest of the new database must be the
same. Uploads and exported files are not part of it; they can be made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import zipfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    column,
    inspect,
    make_url,
    select,
    table,
    text,
    update,
)

import podium
from podium.data.files import writing
from podium.errors import ArgumentError, DataError
from podium.studio.settings import Settings
from podium.studio.store.database import reading, sqlite_file
from podium.studio.store.migrate import known_revisions, revisions, upgrade
from podium.studio.store.tables import Project

_MANIFEST, _DUMP = "manifest.json", "database.dump"
_PAGE = 10_000


@dataclass(frozen=True)
class Manifest:
    """What a backup holds.

    Attributes:
        podium: The version that made it.
        database: ``postgresql`` or ``sqlite``.
        revision: The revision of the tables.
        log_entries: How many judgments and other entries the log has.
        log_digest: Their digest, see `log_digest`.
    """

    podium: str
    database: str
    revision: str
    log_entries: int
    log_digest: str


def log_digest(connection: Connection) -> tuple[int, str]:
    """How many entries the log of all judgments has, and a digest of every column of them."""
    names = [column["name"] for column in inspect(connection).get_columns("log")]
    log = table("log", *(column(name) for name in names))
    result, count, last = hashlib.sha256(), 0, 0
    while rows := connection.execute(
        select(log).where(log.c.id > last).order_by(log.c.id).limit(_PAGE)
    ).all():
        for row in rows:
            result.update(json.dumps([str(value) for value in row]).encode())
        count += len(rows)
        last = rows[-1].id
    return count, result.hexdigest()


def back_up(engine: Engine, settings: Settings, target: Path) -> Manifest:
    """Write a backup; it appears under its name only when it is complete."""
    kind = engine.dialect.name
    revision = revisions(engine)[0]
    if revision is None:
        raise DataError("the database has no Podium Studio tables", hint="Check --database.")
    # Nobody else can look into this folder: a backup holds addresses and hashes of passwords.
    with writing(target), tempfile.TemporaryDirectory(dir=target.parent) as folder:
        dump, unfinished = Path(folder) / _DUMP, Path(folder) / "unfinished.zip"
        with engine.connect() as connection:
            count, digest = _dump(connection, settings, dump)
        manifest = Manifest(podium.__version__, kind, revision, count, digest)
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as file:
            file.writestr(_MANIFEST, json.dumps(asdict(manifest), indent=1))
            file.write(dump, _DUMP)
        unfinished.chmod(0o600)
        unfinished.replace(target)
    return manifest


def restore(engine: Engine, settings: Settings, source: Path) -> Manifest:
    """Restore a backup into a database that is empty, and check that all judgments are there.

    Tables of an older version are brought up to date afterwards.
    """
    with _opened(source) as file:
        manifest = Manifest(**json.loads(file.read(_MANIFEST)))
        if manifest.database != engine.dialect.name:
            raise DataError(
                f"is a backup of {manifest.database}",
                path=source,
                hint="Restore it into that kind of database.",
            )
        if manifest.revision not in known_revisions():
            raise DataError(
                "was made by a newer version of Podium", path=source, hint="Install that version."
            )
        if inspect(engine).get_table_names():
            raise ArgumentError(
                "the database is not empty", hint="Create a new one and pass it with --database."
            )
        with tempfile.TemporaryDirectory() as folder:
            file.extract(_DUMP, folder)
            _load(engine, settings, Path(folder) / _DUMP)
    engine.dispose()
    with engine.connect() as connection:
        if log_digest(connection) != (manifest.log_entries, manifest.log_digest):
            raise DataError(
                "the restored log differs from the backup's", path=source, hint="Restore it again."
            )
    upgrade(engine)
    with engine.begin() as connection:
        # Servers that ran meanwhile keep queries in memory: they must not take them for these.
        connection.execute(update(Project).values(incarnation=new_incarnation()))
    return manifest


def _opened(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(
            "is not a backup that can be read", path=source, hint="Name a file written by backup."
        ) from error


def new_incarnation() -> int:
    """A number that no other state of a database has."""
    return random.SystemRandom().getrandbits(62)


def _dump(connection: Connection, settings: Settings, target: Path) -> tuple[int, str]:
    if connection.dialect.name == "sqlite":
        # The transaction that reads the log keeps others from writing until it is copied, by a
        # connection of its own: one within a transaction would wait for itself.
        result = log_digest(connection)
        with (
            closing(sqlite3.connect(sqlite_file(connection))) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
        return result
    connection = connection.execution_options(isolation_level="REPEATABLE READ")
    snapshot = connection.scalar(text("SELECT pg_export_snapshot()"))
    result = log_digest(connection)
    _run(
        settings, "pg_dump", "--format=custom", "--no-owner", f"--snapshot={snapshot}",
        f"--file={target}",
    )  # fmt: skip
    return result


def _load(engine: Engine, settings: Settings, source: Path) -> None:
    if engine.dialect.name == "sqlite":
        shutil.copyfile(source, reading(engine, sqlite_file))
        return
    _run(
        settings, "pg_restore", "--no-owner", "--exit-on-error", "--single-transaction",
        str(source),
    )  # fmt: skip


def _run(settings: Settings, program: str, *words: str) -> None:
    """Run a program of PostgreSQL's on the database."""
    path = shutil.which(program) or _newest(program)
    if path is None:
        raise ArgumentError(
            f"{program} is not installed", hint="Install PostgreSQL's client programs."
        )
    # Everyone on the machine can see a program's arguments, but not its environment.
    url, password = _without_password(settings.database)
    environment = os.environ | ({"PGPASSWORD": password} if password else {})
    done = subprocess.run(  # noqa: S603 - our own words
        [path, f"--dbname={url}", *words],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        raise DataError(f"{program} failed: {done.stderr.strip()[-500:]}", hint="See above.")


def _newest(program: str) -> str | None:
    """Debian keeps the programs of each version in a folder of its own."""
    result = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(result[-1]) if result else None


def _without_password(database: str) -> tuple[str, str | None]:
    """A database's URL as PostgreSQL's programs take it, without the password, and that."""
    url = make_url(database)
    asked = url.query.get("password")
    password = url.password or (asked if isinstance(asked, str) else None)
    plain = url.set(drivername="postgresql").difference_update_query(["password"])
    # Not set(password=None), which would leave it as it is.
    bare = URL.create(plain.drivername, plain.username, None, plain.host, plain.port,
                      plain.database, plain.query)  # fmt: skip
    return bare.render_as_string(hide_password=False), password

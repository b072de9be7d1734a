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
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    column,
    delete,
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
from podium.studio.store.database import connect, reading, sqlite_file
from podium.studio.store.migrate import known_revisions, revisions, upgrade
from podium.studio.store.tables import AssessorProgress, Exhausted

_MANIFEST, _DUMP = "manifest.json", "database.dump"
_PAGE = 10_000
_ALL = 2**62


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


def log_digest(connection: Connection, most: int = _ALL) -> tuple[int, str]:
    """How many entries the log of all judgments has, and a digest of every column of them.

    Args:
        connection: The database.
        most: How many of the oldest entries to look at.
    """
    names = [column["name"] for column in inspect(connection).get_columns("log")]
    log = table("log", *(column(name) for name in names))
    result, count, last = hashlib.sha256(), 0, 0
    while rows := connection.execute(
        select(log).where(log.c.id > last).order_by(log.c.id).limit(min(_PAGE, most - count))
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
            dump = Path(file.extract(_DUMP, folder))
            if manifest.database == "sqlite":
                _restore_sqlite(engine, manifest, source, dump)
            else:
                _load(settings, dump)
                _check_log(engine, manifest, source)
                upgrade(engine)
    with engine.begin() as connection:
        # Numbers of transactions may have come from another server, see `reset_if_restored`.
        connection.execute(
            update(AssessorProgress).values(
                open_changed=0, open_id=0, assigned_changed=0, assigned_id=0
            )
        )
        connection.execute(delete(Exhausted))
    return manifest


def _restore_sqlite(engine: Engine, manifest: Manifest, source: Path, dump: Path) -> None:
    """Prepare the database apart, and copy it in one transaction: nobody meets half of it."""
    apart = connect(Settings(database=f"sqlite:///{dump}"))
    try:
        _check_log(apart, manifest, source)
        upgrade(apart)
        with apart.begin() as connection:
            connection.execute(text(_renumbering()))
    finally:
        apart.dispose()
    with (
        closing(sqlite3.connect(dump)) as prepared,
        closing(sqlite3.connect(reading(engine, sqlite_file))) as target,
    ):
        prepared.backup(target)


def _check_log(engine: Engine, manifest: Manifest, source: Path) -> None:
    """Check that all judgments are there; people may have judged since they are."""
    with engine.connect() as connection:
        if log_digest(connection, manifest.log_entries) != (
            manifest.log_entries,
            manifest.log_digest,
        ):
            raise DataError(
                "the restored log differs from the backup's", path=source, hint="Restore it again."
            )


def _renumbering() -> str:
    """Servers that run meanwhile keep queries in memory: they must not take them for these."""
    number = random.SystemRandom().getrandbits(62)
    return f"UPDATE projects SET incarnation = {number}"  # noqa: S608 - our own number


def _opened(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(
            "is not a backup that can be read", path=source, hint="Name a file written by backup."
        ) from error


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


def _load(settings: Settings, source: Path) -> None:
    """Load a dump in one transaction: servers see nothing of it before it is complete."""
    with (
        tempfile.TemporaryFile() as problems,
        _program(
            settings, "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1",
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=problems,
        ) as loading,
    ):  # fmt: skip
        assert loading.stdin is not None
        is_complete = False
        with suppress(BrokenPipeError):  # it has ended, and said why
            loading.stdin.write(b"BEGIN;\n")
            loading.stdin.flush()
            script = subprocess.run(  # noqa: S603 - our own words
                [_path("pg_restore"), "--no-owner", "--file=-", str(source)],
                stdout=loading.stdin, stderr=problems, check=False,
            )  # fmt: skip
            if not script.returncode:
                end = f"RESET search_path;\n{_renumbering()};\nCOMMIT;\n"
                loading.stdin.write(end.encode())
                is_complete = True
            loading.stdin.close()
        code = loading.wait() if is_complete else 1
        problems.seek(0)
        _check("pg_restore", code, problems.read())


def _run(settings: Settings, program: str, *words: str) -> None:
    """Run a program of PostgreSQL's on the database."""
    with _program(settings, program, *words, stderr=subprocess.PIPE) as running:
        _, problems = running.communicate()
    _check(program, running.returncode, problems)


def _check(program: str, code: int, problems: bytes) -> None:
    if code:
        last = problems.decode(errors="replace").strip()[-500:]
        raise DataError(f"{program} failed: {last}", hint="See above.")


def _path(program: str) -> str:
    path = shutil.which(program) or _newest(program)
    if path is None:
        raise ArgumentError(
            f"{program} is not installed", hint="Install PostgreSQL's client programs."
        )
    return path


def _program(
    settings: Settings,
    program: str,
    *words: str,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | IO[bytes],
) -> subprocess.Popen[bytes]:
    """Start a program of PostgreSQL's on the database."""
    # Everyone on the machine can see a program's arguments, but not its environment.
    url, password = _without_password(settings.database)
    environment = os.environ | ({"PGPASSWORD": password} if password else {})
    return subprocess.Popen(  # noqa: S603 - our own words
        [_path(program), f"--dbname={url}", *words], env=environment, stdin=stdin, stdout=stdout,
        stderr=stderr,
    )  # fmt: skip


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

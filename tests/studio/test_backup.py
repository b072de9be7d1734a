"""A backup is taken while people judge, restored elsewhere, and has every judgment."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path

import pytest
from sqlalchemy import func, inspect, select, text
from sqlalchemy.exc import DatabaseError, OperationalError

from podium.errors import ArgumentError, DataError
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.settings import Settings
from podium.studio.store.backup import _without_password, back_up, log_digest, restore
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.migrate import downgrade, revisions, upgrade
from podium.studio.store.tables import LogEntry, Project, ProjectQuery
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges
from tests.studio.postgres import BINARIES

DATABASES = BOTH


def judge(engine, service, project, people, answers):
    for number in range(answers):
        person = people[number % len(people)]
        given = service.next(row_of(engine, project), person, f"t{person}")
        if not isinstance(given, LeasedTask):
            continue
        choice = "left" if given.task.left < given.task.right else "right"
        service.answer(
            row_of(engine, project), person, given.token, choice, seconds=1, tab=f"t{person}"
        )


def entries(engine) -> int:
    return reading(engine, lambda c: c.scalar(select(func.count()).select_from(LogEntry)))


def test_everything_is_in_the_restored_database(engine, database, empty_database, tmp_path):
    people = make_people(engine, 3)
    project = make_project(engine, people, queries=3)
    judge(engine, Judges(engine), project, people, 12)
    made = back_up(engine, Settings(database=database), tmp_path / "b.zip")
    assert made.log_entries == entries(engine) > 5
    before = reading(engine, log_digest)
    assert before == (made.log_entries, made.log_digest)
    assert (tmp_path / "b.zip").stat().st_mode & 0o777 == 0o600
    judge(engine, Judges(engine), project, people, 3)  # what came later is not in it
    assert reading(engine, log_digest) != before

    settings = Settings(database=empty_database)
    other = connect(settings)
    assert restore(other, settings, tmp_path / "b.zip") == made
    assert reading(other, log_digest) == before
    assert revisions(other)[0] == revisions(engine)[0]
    # An independent look: every column of every entry, in order.
    every = text("SELECT * FROM log ORDER BY id LIMIT :n")
    rows = [
        reading(each, lambda c: c.execute(every, {"n": made.log_entries}).all())
        for each in (engine, other)
    ]
    assert rows[0] == rows[1]
    judge(other, Judges(other), project, people, 4)  # and it goes on from there
    assert entries(other) > made.log_entries
    with pytest.raises(ArgumentError, match="not empty"):
        restore(other, settings, tmp_path / "b.zip")
    other.dispose()


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_nobody_else_can_read_a_backup_and_a_failed_one_is_removed(
    engine, database, tmp_path, monkeypatch
):
    settings, folder = Settings(database=database), tmp_path / "backups"
    (folder / "folder.zip").mkdir(parents=True)
    open_to_others = []
    write = zipfile.ZipFile.write

    def look_and_write(*words):
        others = (path for path in folder.iterdir() if path.name != "folder.zip")
        open_to_others.extend(path for path in others if path.stat().st_mode & 0o077)
        write(*words)

    monkeypatch.setattr(zipfile.ZipFile, "write", look_and_write)
    mask = os.umask(0)
    try:
        back_up(engine, settings, folder / "b.zip")
        with pytest.raises(DataError, match="cannot be written"):
            back_up(engine, settings, folder / "folder.zip")
    finally:
        os.umask(mask)
    assert open_to_others == []
    assert sorted(path.name for path in folder.iterdir()) == ["b.zip", "folder.zip"]
    assert (folder / "b.zip").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_the_password_of_the_database_is_not_among_the_arguments_of_programs(
    engine, database, empty_database, tmp_path, monkeypatch
):
    programs, log = tmp_path / "programs", tmp_path / "log"
    programs.mkdir()
    for name in ("pg_dump", "psql"):
        (programs / name).write_text(
            f'#!/bin/sh\necho "{name} $PGPASSWORD $*" >> "{log}"\nexec "{BINARIES / name}" "$@"\n'
        )
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    source, target = (
        Settings(database=url.replace("podium@", "podium:s%40cret@"))
        for url in (database, empty_database)
    )
    back_up(engine, source, tmp_path / "b.zip")
    other = connect(target)
    restore(other, target, tmp_path / "b.zip")
    other.dispose()
    dump, load = log.read_text().splitlines()
    for line, name in ((dump, "pg_dump"), (load, "psql")):
        assert line.startswith(f"{name} s@cret --")
        assert line.count("cret") == 1


def test_a_server_notices_that_the_database_went_back(engine, database, empty_database, tmp_path):
    """Its memory has as many entries as the restored log, and others: it must not use it."""
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=1, items=5)
    judge(engine, Judges(engine), project, people, 2)
    back_up(engine, Settings(database=database), tmp_path / "b.zip")
    other = connect(Settings(database=empty_database))
    restore(other, Settings(database=empty_database), tmp_path / "b.zip")
    numbers = [
        reading(each, lambda c: c.scalar(select(Project.incarnation))) for each in (engine, other)
    ]
    assert numbers[0] != numbers[1]
    service = Judges(engine)
    judge(engine, service, project, people, 1)  # the board is in its memory now, with 3 entries
    judge(other, Judges(other), project, people, 1)  # another third entry
    in_transaction(
        other, lambda c: c.execute(text("UPDATE log SET value = -value WHERE position = 2"))
    )
    service._engine = service.service._engine = other
    query = reading(other, lambda c: c.scalar(select(ProjectQuery.id)))
    state, truth = service.state(project, query), Judges(other).state(project, query)
    assert state.last_answer(people[0]) == truth.last_answer(people[0])
    other.dispose()


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_nothing_is_written_to_a_file_that_a_backup_replaced(engine, database, tmp_path):
    """Connections that a server kept are of the file that was removed."""
    people = make_people(engine, 2)
    file = Path(database.removeprefix("sqlite:///"))
    back_up(engine, Settings(database=database), tmp_path / "backup.zip")
    make_project(engine, people)  # by a connection that stays in the pool
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    other = connect(Settings(database=database))
    restore(other, Settings(database=database), tmp_path / "backup.zip")
    project = make_project(engine, people)
    found = reading(other, lambda c: c.execute(select(Project.id)).scalars().all())
    other.dispose()
    assert found == [project]


def test_a_damaged_backup_is_refused(engine, database, empty_database, tmp_path):
    people = make_people(engine, 1)
    judge(engine, Judges(engine), make_project(engine, people), people, 3)
    path = tmp_path / "b.zip"
    back_up(engine, Settings(database=database), path)
    with zipfile.ZipFile(path) as file:
        manifest = json.loads(file.read("manifest.json"))
        dump = file.read("database.dump")
    wrong = tmp_path / "w.zip"
    with zipfile.ZipFile(wrong, "w") as file:
        digest = hashlib.sha256(b"other").hexdigest()
        file.writestr("manifest.json", json.dumps({**manifest, "log_digest": digest}))
        file.writestr("database.dump", dump)
    other = connect(Settings(database=empty_database))
    with pytest.raises(DataError, match="differs from the backup"):
        restore(other, Settings(database=empty_database), wrong)
    other.dispose()


def test_an_older_backup_is_restored_and_migrated(engine, database, empty_database, tmp_path):
    people = make_people(engine, 1)
    judge(engine, Judges(engine), make_project(engine, people), people, 3)
    downgrade(engine, "0008")
    made = back_up(engine, Settings(database=database), tmp_path / "b.zip")
    assert (made.revision, made.log_entries) == ("0008", 3)
    other = connect(Settings(database=empty_database))
    restore(other, Settings(database=empty_database), tmp_path / "b.zip")
    present, newest = revisions(other)
    assert present == newest != "0008"
    assert entries(other) == 3
    other.dispose()
    with zipfile.ZipFile(tmp_path / "n.zip", "w") as file:
        file.writestr("manifest.json", json.dumps({**asdict(made), "revision": "9999"}))
    with pytest.raises(DataError, match="newer version"):
        restore(engine, Settings(database=database), tmp_path / "n.zip")


def test_a_backup_may_have_the_name_of_what_is_in_it(engine, database, empty_database, tmp_path):
    made = back_up(engine, Settings(database=database), tmp_path / "database.dump")
    other = connect(Settings(database=empty_database))
    assert restore(other, Settings(database=empty_database), tmp_path / "database.dump") == made
    other.dispose()


@pytest.mark.parametrize(
    ("given", "url", "password"),
    [
        ("+psycopg://ann:se%40cret@db:5432/studio", "://ann@db:5432/studio", "se@cret"),
        ("+psycopg://ann@/studio?host=/pg&password=x", "://ann@/studio?host=%2Fpg", "x"),
        ("://ann@db/studio?options=a@b", "://ann@db/studio?options=a%40b", None),
    ],
)
def test_the_password_is_taken_out_of_the_url(given, url, password):
    assert _without_password(f"postgresql{given}") == (f"postgresql{url}", password)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_a_folder_that_cannot_be_written_is_told(engine, database, tmp_path):
    target = tmp_path / "absent" / "b.zip"
    with pytest.raises(DataError, match=r"absent/b\.zip: cannot be written"):
        back_up(engine, Settings(database=database), target)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_urls_with_parameters_and_links(engine, database, tmp_path):
    """What is backed up and restored is the database itself, and nothing is left beside it."""
    make_project(engine, make_people(engine, 1), name="Shoes")
    (tmp_path / "link.db").symlink_to("studio.db")
    place = database.removeprefix("sqlite:///").removesuffix("studio.db")
    names = "file:{}studio.db?uri=true", "{}link.db", "{}studio.db?timeout=5"
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        folder.mkdir()
        used = Settings(database=f"sqlite:///{name.format(place)}")
        opened = connect(used)
        back_up(opened, used, tmp_path / "b.zip")
        opened.dispose()
        new = Settings(database=f"sqlite:///{name.format(f'{folder}/')}")
        other = connect(new)
        restore(other, new, tmp_path / "b.zip")
        assert row_of(other, 1).name == "Shoes"
        other.dispose()
        left = {path.name.removesuffix("-wal").removesuffix("-shm") for path in folder.iterdir()}
        assert left == {"link.db" if "link" in name else "studio.db"}


def test_a_file_that_is_no_backup_is_told(empty_database, tmp_path):
    (tmp_path / "text.zip").write_text("no zip")
    for name in ("text.zip", "absent.zip"):
        with pytest.raises(DataError, match=rf"{name}: is not a backup that can be read"):
            restore(
                connect(Settings(database=empty_database)),
                Settings(database=empty_database),
                tmp_path / name,
            )


def test_a_database_that_is_only_read_is_not_created(tmp_path):
    engine = connect(Settings(database=f"sqlite:///file:{tmp_path}/a.db?mode=ro&uri=true"))
    with pytest.raises(OperationalError, match="unable to open"):
        upgrade(engine)
    engine.dispose()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parameters", ["", "&mode=rwc"])
def test_nobody_else_can_read_a_new_database_file_of_a_uri(tmp_path, parameters):
    mask = os.umask(0)
    try:
        engine = connect(
            Settings(database=f"sqlite:///file:{tmp_path}/a%2Edb?uri=true{parameters}")
        )
        upgrade(engine)
        engine.dispose()
    finally:
        os.umask(mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["a.db"] == 0o600
    assert {name.partition("-")[0] for name in modes} == {"a.db"}


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_nobody_else_can_read_a_new_database_file(engine, database, tmp_path):
    settings, copy = Settings(database=database), tmp_path / "copy"
    mask = os.umask(0)
    try:
        back_up(engine, settings, tmp_path / "b.zip")
        copy.mkdir()
        restored = Settings(database=f"sqlite:///{copy / 'studio.db'}")
        other = connect(restored)
        restore(other, restored, tmp_path / "b.zip")
        make_people(other, 1)
        modes = {path.name: path.stat().st_mode & 0o777 for path in copy.iterdir()}
        other.dispose()
    finally:
        os.umask(mask)
    assert modes == dict.fromkeys(("studio.db", "studio.db-wal", "studio.db-shm"), 0o600)


@pytest.mark.parametrize("database_kind", ["sqlite"])
def test_nothing_is_lost_where_only_the_main_file_is_moved_away(engine, database, tmp_path):
    """Its last entries are in the log beside it, which SQLite deletes when a server connects."""
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=2)
    judge(engine, Judges(engine), project, people, 3)
    settings, file = Settings(database=database), Path(database.removeprefix("sqlite:///"))
    back_up(engine, settings, tmp_path / "b.zip")
    moved = tmp_path / "elsewhere.db"
    file.rename(moved)
    for each in (engine, connect(settings)):  # the server's, and the one that would restore
        with pytest.raises(OperationalError, match=r"studio\.db-wal is of a database that was mov"):
            restore(each, settings, tmp_path / "b.zip")
    assert not file.exists()
    for name in ("-wal", "-shm"):
        file.with_name(f"{file.name}{name}").rename(f"{moved}{name}")
    other = connect(Settings(database=f"sqlite:///{moved}"))
    assert entries(other) == 3
    other.dispose()
    restore(engine, settings, tmp_path / "b.zip")
    assert entries(engine) == 3


def _slow(monkeypatch, between):
    """Do something while a restored log is checked."""
    check = log_digest

    def checking(*words):
        between()
        return check(*words)

    monkeypatch.setattr("podium.studio.store.backup.log_digest", checking)


@pytest.mark.parametrize("database_kind", ["postgresql"])
def test_people_may_judge_as_soon_as_a_backup_is_there(
    engine, database, empty_database, tmp_path, monkeypatch
):
    """Servers that run already see the new numbers, and what is judged is no damage."""
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=2)
    judge(engine, Judges(engine), project, people, 3)
    back_up(engine, Settings(database=database), tmp_path / "b.zip")
    before = reading(engine, lambda c: c.scalar(select(Project.incarnation)))
    other = connect(Settings(database=empty_database))
    seen = []

    def meanwhile():
        if not seen:
            seen.append(reading(other, lambda c: c.scalar(select(Project.incarnation))))
            judge(other, Judges(other), project, people, 2)

    _slow(monkeypatch, meanwhile)
    restore(other, Settings(database=empty_database), tmp_path / "b.zip")
    assert seen != [before]
    assert entries(other) == 5
    other.dispose()


def test_half_of_a_backup_leaves_nothing(engine, database, empty_database, tmp_path):
    people = make_people(engine, 1)
    judge(engine, Judges(engine), make_project(engine, people), people, 3)
    back_up(engine, Settings(database=database), tmp_path / "b.zip")
    dump = tmp_path / "dump"
    with zipfile.ZipFile(tmp_path / "b.zip") as file:
        manifest, content = file.read("manifest.json"), file.read("database.dump")
    dump.write_bytes(content[: len(content) // 2])
    with zipfile.ZipFile(tmp_path / "half.zip", "w") as file:
        file.writestr("manifest.json", manifest)
        file.write(dump, "database.dump")
    other = connect(Settings(database=empty_database))
    with pytest.raises((DataError, DatabaseError)):
        restore(other, Settings(database=empty_database), tmp_path / "half.zip")
    assert inspect(other).get_table_names() == []
    restore(other, Settings(database=empty_database), tmp_path / "b.zip")
    assert entries(other) == 3
    other.dispose()

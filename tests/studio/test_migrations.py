"""The tables go up and down on both databases, and are what the code thinks they are."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, inspect, select

from podium.studio.settings import Settings
from podium.studio.store.backup import log_digest
from podium.studio.store.database import connect, write_ahead
from podium.studio.store.migrate import downgrade, revisions, upgrade
from podium.studio.store.tables import Base, ModelAnswerRecord, ModelAssessor
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, queries_of

DATABASES = BOTH


def test_up_and_down_and_up_again(empty_database):
    engine = connect(Settings(database=empty_database))
    present, newest = revisions(engine)
    assert present is None
    upgrade(engine)
    assert revisions(engine) == (newest, newest)
    make_project(engine, make_people(engine, 2))  # rows do not prevent it
    downgrade(engine, "base")
    assert set(inspect(engine).get_table_names()) == {"alembic_version"}
    upgrade(engine)
    assert make_people(engine, 1) == [1]
    engine.dispose()


def test_tables_are_as_the_code_describes_them(engine):
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_servers_that_start_together_migrate_one_after_the_other(empty_database):
    errors = []

    def start():
        engine = connect(Settings(database=empty_database))
        try:
            upgrade(engine)
        except Exception as error:
            errors.append(error)
        engine.dispose()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_write_ahead_log_waits_where_sqlite_says_at_once_that_a_file_is_locked(tmp_path):
    def file():
        return sqlite3.connect(
            tmp_path / "studio.db", timeout=0, isolation_level=None, check_same_thread=False
        )

    with closing(file()) as other, closing(file()) as own:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            own.execute("PRAGMA journal_mode=WAL")
        waiting = threading.Thread(target=write_ahead, args=(own,))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        other.execute("COMMIT")
        waiting.join()
        assert own.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_judgments_go_down_to_0_1_0_and_up_again(engine):
    """Nothing is lost on the way but what models spent without an answer."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann], queries=1, items=3, k=1)
    service, row = Judges(engine), row_of(engine, project)
    (query,) = queries_of(engine, project)
    task = service.next(row, ann, "t")
    service.answer(row, ann, task.token, "left", seconds=1, tab="t", more=False)
    with engine.begin() as connection:
        assessor = connection.scalar(
            insert(ModelAssessor)
            .values(
                project_id=project, user_id=bob, endpoint="http://x/v1", model="tiny", rubric="",
                rubric_name="pairs/1", rubric_hash="h", scope="all", repeats=1, connections=1,
                prompt_price=0, answer_price=0, created_at=0, requests=9, prompt_tokens=9,
                answer_tokens=9,
            )
            .returning(ModelAssessor.id)
        )  # fmt: skip
        for question, requests in ("a", 2), ("b", 1):
            connection.execute(
                insert(ModelAnswerRecord).values(
                    assessor_id=assessor, query_id=query.id, question=question, left=0, right=1,
                    usable=True, requests=requests, prompt_tokens=10 * requests, answer_tokens=0,
                    content={}, at=1,
                )
            )  # fmt: skip
    with engine.connect() as connection:
        before = log_digest(connection)
    downgrade(engine, "0008")
    assert "place" in {column["name"] for column in inspect(engine).get_columns("log")}
    upgrade(engine)
    with engine.connect() as connection:
        assert log_digest(connection) == before
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
        spent = ModelAssessor.requests, ModelAssessor.prompt_tokens, ModelAssessor.answer_tokens
        assert connection.execute(select(*spent)).one() == (2 + 1, 10 * 2 + 10 * 1, 0)
    again = Judges(engine).next(row_of(engine, project), ann, "t")
    assert (again.query.id, again.judged) == (query.id, 1)

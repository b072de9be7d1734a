"""The tables go up and down on both databases, and are what the code thinks they are."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, inspect, select, text, update

from podium.studio.accounts.identity import Member, Person
from podium.studio.judging import corrections
from podium.studio.settings import Settings
from podium.studio.store.database import connect, write_ahead
from podium.studio.store.enums import Role
from podium.studio.store.migrate import downgrade, revisions, upgrade
from podium.studio.store.tables import (
    AssessorProgress,
    Base,
    JudgmentCount,
    Lease,
    LogEntry,
    ModelAssessor,
    ProjectQuery,
    QueryAssignment,
    User,
)
from podium.studio.store.tokens import new_token
from tests.studio.databases import BOTH
from tests.studio.factories import NESTED, make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges, queries_of

DATABASES = BOTH


def test_up_and_down_and_up_again(empty_database):
    engine = connect(Settings(database=empty_database))
    present, newest = revisions(engine)
    assert present is None
    upgrade(engine)
    assert revisions(engine) == (newest, newest)
    make_project(engine, make_people(engine, 2))  # rows are no obstacle
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


def test_data_of_the_first_version_go_up_and_down(empty_database):
    engine = connect(Settings(database=empty_database))
    upgrade(engine, "0001")
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO users (id, email, name, subject, is_admin, disabled, created_at) VALUES"
            " (1, 'a@b.c', 'Ann', NULL, true, false, 0),"
            " (2, 'b@b.c', 'Bob', 'x#b', true, false, 0)",
            "INSERT INTO projects (id, name, mode, k, algorithm, seed, overlap_share,"
            " overlap_assessors, assigned_only, guidelines, lease_seconds, repeat_rate, gold_rate,"
            " paused, created_at) VALUES (1, 'P', 'pairs', 2, 'adaptive', 0, 0, 2, false, '', 900,"
            " 0, 0, false, 0)",
            "INSERT INTO memberships (project_id, user_id, role) VALUES (1, 1, 'owner')",
            "INSERT INTO queries (id, project_id, name, text, description, ordered, entries, free,"
            " done, expected_left) VALUES (1, 1, 'q', 'q', '', false, 0, 1, false, 1)",
            "INSERT INTO sign_in_failures (key, count, locked_until) VALUES ('account:x', 3, 0)",
        ):
            connection.execute(text(statement))
        connection.execute(
            text(
                "INSERT INTO candidates (query_id, place, item, title, text, html, url) VALUES"
                " (1, :place, :item, '', :text, :html, '')"
            ),
            [
                {"place": 0, "item": "a", "text": "", "html": "<b>x</b><script>1</script>"},
                {"place": 1, "item": "b", "text": "plain", "html": ""},
                {"place": 2, "item": "c", "text": "", "html": NESTED},
            ],
        )
    upgrade(engine)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT html, text, reference FROM candidates ORDER BY place")
        ).all()
        verified = connection.execute(text("SELECT email_verified FROM users ORDER BY id")).all()
        members = connection.execute(text("SELECT user_id FROM memberships")).all()
    assert [tuple(row[:2]) for row in rows] == [("<b>x</b>", ""), ("", "plain"), ("", NESTED)]
    assert len({row.reference for row in rows}) == 3
    assert [bool(row[0]) for row in verified] == [False, True]
    assert [row[0] for row in members] == [1]
    downgrade(engine, "0001")
    with engine.connect() as connection:
        for table, count in (("users", 2), ("memberships", 1), ("candidates", 3)):
            assert connection.scalar(text(f"SELECT count(*) FROM {table}")) == count
    upgrade(engine)
    engine.dispose()


def test_leases_of_the_version_before_are_not_shared_and_survive_going_back(engine):
    ann, bob = make_people(engine, 2)
    (row,) = queries_of(engine, make_project(engine, [ann, bob], queries=1))
    downgrade(engine, "0003")
    add = (
        'INSERT INTO leases (token, query_id, user_id, tab, "left", "right", purpose, granted_at,'
        " expires_at, released, renewed) VALUES (:token, :query, :who, 't', 0, 1, 'main', 1, 2,"
        " :released, true)"
    )
    with engine.begin() as connection:
        for who in (ann, bob):
            values = {"token": new_token().hex, "query": row.id, "who": who, "released": who == bob}
            connection.execute(text(add), values)
    upgrade(engine)
    columns = Lease.user_id, Lease.released, Lease.shared
    with engine.begin() as connection:
        found = connection.execute(select(*columns).order_by(Lease.user_id)).all()
        assert list(map(tuple, found)) == [(ann, False, False), (bob, True, False)]
        connection.execute(update(Lease).values(shared=True))
    downgrade(engine, "0003")
    with engine.connect() as connection:
        found = connection.execute(text("SELECT user_id, released FROM leases ORDER BY user_id"))
        assert [(who, bool(released)) for who, released in found] == [(ann, False), (bob, True)]
    upgrade(engine)


def test_what_was_judged_before_is_counted_by_what_stands(engine):
    """On the first tables, Ann judged two, took one back, marked both as bad, and skipped."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=6)
    query, other = (row.id for row in queries_of(engine, project))
    downgrade(engine, "0001")
    bad = new_token()
    entries = [
        # Who, what, which it takes back, whether it counts, its token and the part of it.
        (ann, "verdict", None, True, new_token(), 0),
        (ann, "verdict", None, True, new_token(), 0),
        (ann, "undo", 1, True, new_token(), 0),
        (ann, "bad", None, True, bad, 0),
        (ann, "bad", None, True, bad, 1),
        (ann, "skip", None, True, new_token(), 0),
        (bob, "verdict", None, False, new_token(), 0),
        (bob, "verdict", None, True, new_token(), 0),
    ]
    with engine.begin() as connection:
        for place, (who, kind, undoes, counts, token, part) in enumerate(entries):
            connection.execute(
                insert(LogEntry).values(
                    query_id=query, place=place, user_id=who, kind=kind, left=0, right=1, value=1,
                    undoes=undoes, purpose="main", counts=counts, late=not counts, token=token,
                    part=part, at=100.0 + place, seconds=0.0 if part else 2.0,
                )
            )  # fmt: skip
        for who, judgments in ((ann, 4), (bob, 2)):  # as they were counted then
            connection.execute(
                text("INSERT INTO tallies VALUES (:query, :who, :judgments, 9.0, 107.0)"),
                {"query": query, "who": who, "judgments": judgments},
            )
        done = "UPDATE queries SET entries = 8, done = true WHERE id = :query"
        connection.execute(text(done), {"query": query})
        assign = "INSERT INTO assigned VALUES (:query, :who)"
        for each in (query, other):
            connection.execute(text(assign), {"query": each, "who": ann})
    upgrade(engine)
    with engine.connect() as connection:
        found = connection.execute(
            select(ProjectQuery.id, ProjectQuery.judgments, ProjectQuery.available)
        ).all()
        assert {row.id: (row.judgments, row.available) for row in found} == {
            query: (3, False),  # a verdict and the two bad documents of Ann's, a verdict of Bob's
            other: (0, True),
        }
        columns = (
            JudgmentCount.user_id,
            JudgmentCount.judgments,
            JudgmentCount.seconds,
            JudgmentCount.last_at,
        )
        found = connection.execute(select(*columns).order_by(JudgmentCount.user_id)).all()
        assert list(map(tuple, found)) == [(ann, 2, 4.0, 105.0), (bob, 1, 2.0, 107.0)]
        columns = (
            AssessorProgress.user_id,
            AssessorProgress.project_id,
            AssessorProgress.judgments,
            AssessorProgress.seconds,
        )
        found = connection.execute(select(*columns).order_by(AssessorProgress.user_id)).all()
        assert list(map(tuple, found)) == [(ann, project, 2, 4.0), (bob, project, 1, 2.0)]
        found = connection.execute(select(QueryAssignment.query_id, QueryAssignment.done)).all()
        assert dict(map(tuple, found)) == {query: True, other: False}


def test_corrections_survive_going_back_as_far_as_older_code_can_read_them(engine):
    """Discarded stays discarded, restored stays restored, and what was withdrawn is back."""
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    service, row = Judges(engine), row_of(engine, project)
    for _ in range(2):
        task = service.next(row, bob, "t")
        service.answer(row, bob, task.token, "left", seconds=1, tab="t", more=False)
    first, second = (query.id for query in queries_of(engine, project))
    who = Member(Person(ann, "Ann", "a@b.c", False), Role.MANAGER, row)
    with engine.begin() as connection:
        corrections.discard(connection, who, first, 0, None)
        corrections.restore(connection, who, first, 0)
        corrections.discard(connection, who, second, 0, None)
        corrections.withdraw(connection, who, second, None)
    downgrade(engine, "0004")
    with engine.connect() as connection:
        log = connection.execute(
            text("SELECT query_id, kind, undoes FROM log ORDER BY query_id, place")
        ).all()
        done = connection.execute(text("SELECT done, available FROM queries ORDER BY id")).all()
    assert [tuple(entry) for entry in log] == [
        (first, "verdict", None),
        (first, "skip", None),  # the undo and what undid it say nothing any more
        (first, "skip", None),
        (second, "verdict", None),
        (second, "undo", 0),
        (second, "skip", None),
    ]
    assert [tuple(map(bool, query)) for query in done] == [(True, False), (False, True)]
    upgrade(engine)
    assert [query.withdrawn for query in queries_of(engine, project)] == [False, False]
    again = Judges(engine).next(row_of(engine, project), bob, "t")
    assert (again.query.id, again.judged) == (second, 0)


def test_going_back_from_models_keeps_what_people_judged(engine):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    service, row = Judges(engine), row_of(engine, project)
    (query,) = queries_of(engine, project)
    with engine.begin() as connection:
        connection.execute(
            insert(ModelAssessor).values(
                project_id=project, user_id=bob, endpoint="http://x/v1", model="tiny", rubric="",
                rubric_name="pairs/1", rubric_hash="h", scope="all", repeats=1, connections=1,
                prompt_price=0, answer_price=0, created_at=0,
            )
        )  # fmt: skip
        connection.execute(
            insert(LogEntry).values(
                query_id=query.id, place=0, user_id=bob, kind="verdict", left=0, right=1, value=1,
                purpose="model", counts=True, late=False, token=new_token(), part=0, at=1.0,
                seconds=1.0,
            )
        )  # fmt: skip
        connection.execute(update(ProjectQuery).values(entries=1))
        connection.execute(
            insert(JudgmentCount).values(
                query_id=query.id, user_id=bob, judgments=1, seconds=1, last_at=1
            )
        )
    task = service.next(row, ann, "t")
    service.answer(row, ann, task.token, "left", seconds=1, tab="t", more=False)
    downgrade(engine, "0005")
    with engine.connect() as connection:
        log = connection.execute(text("SELECT kind, purpose, user_id FROM log ORDER BY place"))
        assert list(map(tuple, log)) == [("skip", "main", bob), ("verdict", "main", ann)]
        counted = connection.execute(text("SELECT user_id FROM tallies")).all()
        assert [row.user_id for row in counted] == [ann]
    upgrade(engine)
    (query,) = queries_of(engine, project)
    assert (query.judgments, query.done, query.entries) == (1, True, 2)
    state = Judges(engine).state(row, query.id)
    assert (state.judgments, state.done) == (1, True)


def test_languages_of_accounts_go_with_their_column(engine):
    ann, bob = make_people(engine, 2)
    with engine.begin() as connection:
        connection.execute(update(User).where(User.id == ann).values(language="de"))
    downgrade(engine, "0007")
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id, name FROM users ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [(ann, "Person 0"), (bob, "Person 1")]
    assert "language" not in {column["name"] for column in inspect(engine).get_columns("users")}
    upgrade(engine)
    with engine.connect() as connection:
        assert connection.scalars(select(User.language)).all() == ["", ""]

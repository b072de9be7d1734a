"""A database that hangs, restarts, or is busy with an import."""

from __future__ import annotations

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psutil
import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from podium.errors import DataError
from podium.studio.accounts.service import add_user
from podium.studio.errors import describe_error
from podium.studio.projects.service import add_query, check_unchanged
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.migrate import upgrade
from podium.studio.store.tables import ProjectQuery, User
from tests.studio.factories import make_people, make_project, make_query
from tests.studio.http_client import program, row_of
from tests.studio.postgres import Postgres, wait_until
from tests.studio.server import serving


@pytest.fixture
def own_postgres(postgres):  # noqa: ARG001 (skips where there is none)
    """A server that a test may stop; where the tests have none, neither has this."""
    with Postgres(fsync="off", shared_buffers="32MB") as server:
        yield server


@pytest.fixture
def own_engine(own_postgres):
    engine = connect(Settings(database=own_postgres.create("own")))
    upgrade(engine)
    yield engine
    engine.dispose()


def processes(server: Postgres) -> list[psutil.Process]:
    first = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    return [first, *first.children(recursive=True)]


def test_a_database_that_hangs_hangs_nobody_for_long(own_postgres, own_engine):
    people = make_people(own_engine, 1)
    make_project(own_engine, people)
    settings = Settings(database=own_postgres.url("own"), statement_seconds=2, pool_size=4)
    with serving(settings) as address, program(own_engine, address, people[0]) as client:
        assert client.get("/api/v1/projects").status_code == 200
        stopped = processes(own_postgres)
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        try:
            started = time.monotonic()
            with ThreadPoolExecutor(8) as pool:
                asked = [pool.submit(client.get, "/api/v1/projects") for _ in range(4)]
                for _ in range(3):
                    begun = time.monotonic()
                    figures = httpx2.get(f"{address}/metrics", timeout=30)
                    assert time.monotonic() - begun < 9  # without a limit it takes 10 s or more
                    assert figures.status_code == 200
                    assert "podium_database_up 0.0" in figures.text
                    assert 'route="/api/v1/projects",status="200"} 1.0' in figures.text
                ready = httpx2.get(f"{address}/readyz", timeout=30)
                ready_after = time.monotonic() - started
                assert httpx2.get(f"{address}/healthz", timeout=30).status_code == 200
                found = [each.result() for each in asked]
            assert (ready.status_code, ready.json()) == (503, {"status": "no database"})
            assert ready_after < 30
            assert {answer.status_code for answer in found} == {503}
            assert time.monotonic() - started < 30
        finally:
            for process in stopped:
                process.send_signal(signal.SIGCONT)
        wait_until(lambda: httpx2.get(f"{address}/readyz", timeout=30).status_code == 200, 60)
        assert client.get("/api/v1/projects").status_code == 200
        assert "podium_database_up 1.0" in httpx2.get(f"{address}/metrics", timeout=30).text


def test_after_a_restart_nobody_sees_an_error(own_postgres, own_engine):
    people = make_people(own_engine, 1)
    project = make_project(own_engine, people)
    settings = Settings(database=own_postgres.url("own"), pool_size=10)
    with serving(settings) as address, program(own_engine, address, people[0]) as client:
        path = f"/api/v1/projects/{project}"
        with ThreadPoolExecutor(20) as pool:  # so that every connection of the pool is open
            list(pool.map(lambda _: client.get(path), range(60)))
        own_postgres.stop("fast")
        own_postgres.start()
        found = [client.post(f"{path}/next", json={"tab": "t"}).status_code for _ in range(15)]
        assert found == [200] * 15


def test_settings_change_while_an_import_is_under_way(engine, server):
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=0)
    importing, ended = threading.Event(), threading.Event()

    def work(connection):
        row = row_of(engine, project)
        add_query(connection, row, make_query("slow", 4))
        importing.set()
        ended.wait(60)
        check_unchanged(connection, row)

    with ThreadPoolExecutor(20) as pool, program(engine, server, people[0]) as client:
        path = f"/api/v1/projects/{project}"
        job = pool.submit(in_transaction, engine, work)
        assert importing.wait(60)
        started = time.monotonic()
        changes = [{"guidelines": f"Version {n}."} for n in range(11)]
        found = list(pool.map(lambda each: client.patch(path, json=each).status_code, changes))
        assert found == [200] * 11
        assert client.get(path).status_code == 200
        assert time.monotonic() - started < 30
        ended.set()
        job.result()
        assert len(client.get(f"{path}/results").json()["queries"]) == 1


def test_an_import_for_settings_that_were_changed_meanwhile_is_undone(engine, server):
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=0)
    with program(engine, server, people[0]) as client:

        def work(connection):
            row = row_of(engine, project)
            add_query(connection, row, make_query("slow", 4))
            changed = client.patch(f"/api/v1/projects/{project}", json={"mode": "grades"})
            assert changed.status_code == 200
            check_unchanged(connection, row)

        with pytest.raises(DataError, match="changed during the import"):
            in_transaction(engine, work)
    assert reading(engine, lambda c: c.scalars(select(ProjectQuery.id)).all()) == []


def test_errors_of_the_database_quote_no_values(engine):
    email = "secret-address@example.org"
    in_transaction(engine, lambda c: add_user(c, email, "Ann", None))

    def twice(connection):
        connection.execute(
            insert(User).values(
                email=email, name="x", email_verified=False, is_admin=False, disabled=False,
                created_at=0.0, password="$argon2id$secret",
            )
        )  # fmt: skip

    with pytest.raises(IntegrityError) as found:
        in_transaction(engine, twice)
    assert "$argon2id$secret" not in str(found.value)
    described = describe_error(found.value)
    assert (described["error"], described["sqlstate"]) == ("UniqueViolation", "23505")
    assert "secret-address" not in str(described)
    assert "test_database.py" in described["trace"]

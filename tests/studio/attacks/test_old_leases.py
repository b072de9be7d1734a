"""Leases that nobody will answer go, and deleting queries does not look through all leases."""

from __future__ import annotations

from sqlalchemy import insert, select, text

from podium.studio.app import create_app
from podium.studio.judging.unit_of_work import KEPT_DAYS, delete_old_leases
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Lease
from podium.studio.store.tokens import new_token
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import queries_of

NOW = 1e9


def put(engine, query, user, *expiries):
    def work(connection):
        for expires_at in expiries:
            connection.execute(
                insert(Lease).values(
                    token=new_token(), query_id=query, user_id=user, tab="t", left=0, right=1,
                    purpose="main", granted_at=1.0, expires_at=expires_at, released=False,
                )
            )  # fmt: skip

    in_transaction(engine, work)


def expiries(engine):
    return sorted(reading(engine, lambda c: c.scalars(select(Lease.expires_at)).all()))


def test_leases_that_ended_long_ago_are_forgotten(engine):
    (ann,) = make_people(engine, 1)
    query = queries_of(engine, make_project(engine, [ann], queries=1))[0].id
    oldest = NOW - 86400 * KEPT_DAYS
    put(engine, query, ann, oldest - 1, oldest, oldest + 1, NOW)
    assert in_transaction(engine, lambda c: delete_old_leases(c, NOW)) == 1
    assert expiries(engine) == [oldest, oldest + 1, NOW]


def test_a_server_forgets_them_by_itself(engine, database):
    (ann,) = make_people(engine, 1)
    query = queries_of(engine, make_project(engine, [ann], queries=1))[0].id
    put(engine, query, ann, 1.0, 1e12)
    app = create_app(Settings(database=database))
    app.state.workers[0]._clean_up()
    for worker in app.state.workers:
        worker._engine.dispose()
    app.state.engine.dispose()
    assert expiries(engine) == [1e12]


def test_deleting_a_query_finds_its_leases_by_an_index(engine):
    (ann,) = make_people(engine, 1)
    query = queries_of(engine, make_project(engine, [ann], queries=1))[0].id
    put(engine, query, ann, 1.0)
    in_transaction(engine, lambda c: c.execute(text("ANALYZE leases")))

    def plan(connection):
        # Reading all would be quicker with a handful of rows.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        statement = text("EXPLAIN DELETE FROM leases WHERE query_id = :query")
        return "\n".join(connection.scalars(statement, {"query": query}))

    assert "ix_leases_query_id" in in_transaction(engine, plan)

"""The tables go up and down on both databases, and are what the code thinks they are."""

from __future__ import annotations

import threading

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from podium.studio.database import connect
from podium.studio.migrate import downgrade, revisions, upgrade
from podium.studio.settings import Settings
from podium.studio.tables import Base
from tests.studio.making import make_people, make_project


def test_up_and_down_and_up_again(database):
    engine = connect(Settings(database=database))
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


def test_servers_that_start_together_migrate_one_after_the_other(database):
    errors = []

    def start():
        engine = connect(Settings(database=database))
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

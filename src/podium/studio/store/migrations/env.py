"""What Alembic runs: it takes the connection that `podium.studio.store.migrate` gives."""

from __future__ import annotations

from alembic import context

from podium.studio.store.tables import Base

connection = context.config.attributes["connection"]
# SQLite changes a table by writing it anew, which Alembic calls a batch.
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()

"""Open work that is found without looking through what is finished; judgments that stand."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_STANDS = (
    "log.part = 0 AND log.counts AND log.kind NOT IN ('undo', 'skip') AND NOT EXISTS ("
    "SELECT 1 FROM log AS later WHERE later.query_id = log.query_id AND later.undoes = log.place)"
)
_CAN_BE_TAKEN_BACK = (
    "log.kind <> 'undo' AND NOT EXISTS ("
    "SELECT 1 FROM log AS later WHERE later.query_id = log.query_id AND later.undoes = log.place)"
)


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(
        name,
        table,
        columns,
        unique=False,
        postgresql_where=sa.text(where),
        sqlite_where=sa.text(where),
    )


def upgrade() -> None:
    """Go forward."""
    op.add_column(
        "queries", sa.Column("available", sa.Boolean(), nullable=False, server_default=sa.true())
    )
    op.add_column("queries", sa.Column("changed", _ID, nullable=False, server_default="0"))
    op.add_column("queries", sa.Column("judgments", _ID, nullable=False, server_default="0"))
    op.add_column(
        "assigned", sa.Column("done", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column(
        "leases", sa.Column("renewed", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_table(
        "exhausted",
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("changed", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_exhausted_query_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_exhausted_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "query_id", name=op.f("pk_exhausted")),
    )
    op.create_index(op.f("ix_exhausted_query_id"), "exhausted", ["query_id"], unique=False)
    op.create_table(
        "judges",
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("judgments", _ID, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("open_changed", _ID, nullable=False),
        sa.Column("open_id", _ID, nullable=False),
        sa.Column("assigned_changed", _ID, nullable=False),
        sa.Column("assigned_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_judges_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_judges_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", "project_id", name=op.f("pk_judges")),
    )
    op.create_index(op.f("ix_judges_project_id"), "judges", ["project_id"], unique=False)
    _count()
    _partial("ix_queries_available", "queries", ["project_id", "changed", "id"], "available")
    _partial(
        "ix_queries_leased", "queries", ["project_id", "lease_expiry"], "lease_expiry IS NOT NULL"
    )
    _partial("ix_assigned_open", "assigned", ["user_id", "query_id"], "NOT done")
    op.drop_index("ix_leases_held", table_name="leases")
    op.drop_index("ix_leases_tab", table_name="leases")
    op.create_index("ix_leases_query_id", "leases", ["query_id"], unique=False)
    op.create_index("ix_leases_recent", "leases", ["user_id", "granted_at"], unique=False)
    op.drop_index(op.f("ix_tallies_user_id"), table_name="tallies")
    op.create_index("ix_tallies_recent", "tallies", ["user_id", "last_at"], unique=False)


def _count() -> None:
    """Count what stands in the logs, and say where there is work."""
    op.execute("UPDATE queries SET available = NOT done")
    op.execute(
        "UPDATE queries SET judgments = (SELECT count(*) FROM log"  # noqa: S608 - constants only
        f" WHERE log.query_id = queries.id AND {_STANDS}) WHERE entries > 0"
    )
    op.execute(
        "UPDATE assigned SET done = true WHERE query_id IN (SELECT id FROM queries WHERE done)"
    )
    op.execute(
        "UPDATE tallies SET"  # noqa: S608 - constants only
        " judgments = (SELECT count(*) FROM log WHERE log.query_id = tallies.query_id"
        f" AND log.user_id = tallies.user_id AND {_STANDS}),"
        " seconds = (SELECT coalesce(sum(log.seconds), 0) FROM log"
        f" WHERE log.query_id = tallies.query_id AND log.user_id = tallies.user_id AND {_STANDS}),"
        " last_at = (SELECT coalesce(max(log.at), 0) FROM log"
        " WHERE log.query_id = tallies.query_id AND log.user_id = tallies.user_id"
        f" AND {_CAN_BE_TAKEN_BACK})"
    )
    op.execute(
        "INSERT INTO judges (user_id, project_id, judgments, seconds, open_changed, open_id,"
        " assigned_changed, assigned_id) SELECT tallies.user_id, queries.project_id,"
        " sum(tallies.judgments), sum(tallies.seconds), 0, 0, 0, 0 FROM tallies"
        " JOIN queries ON queries.id = tallies.query_id"
        " GROUP BY tallies.user_id, queries.project_id"
    )


def downgrade() -> None:
    """Go back."""
    op.drop_index("ix_tallies_recent", table_name="tallies")
    op.create_index(op.f("ix_tallies_user_id"), "tallies", ["user_id"], unique=False)
    op.drop_index("ix_leases_recent", table_name="leases")
    op.drop_index("ix_leases_query_id", table_name="leases")
    op.create_index("ix_leases_tab", "leases", ["user_id", "tab"], unique=False)
    op.create_index(
        "ix_leases_held", "leases", ["query_id"], unique=False, postgresql_where="NOT released"
    )
    op.drop_index("ix_assigned_open", table_name="assigned")
    op.drop_index("ix_queries_leased", table_name="queries")
    op.drop_index("ix_queries_available", table_name="queries")
    op.drop_table("judges")
    op.drop_table("exhausted")
    op.drop_column("leases", "renewed")
    op.drop_column("assigned", "done")
    for name in ("judgments", "changed", "available"):
        op.drop_column("queries", name)

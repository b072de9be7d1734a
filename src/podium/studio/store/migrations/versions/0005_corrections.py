"""Corrections by managers, figures to sort queries by, and archived projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.add_column(
        "queries", sa.Column("withdrawn", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column(
        "projects", sa.Column("archived", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("log", sa.Column("manager_id", _ID, nullable=True))
    op.create_index("ix_log_user", "log", ["user_id", "id"])
    # They are worked out again for the next report.
    op.execute("DELETE FROM query_figures")
    op.add_column("query_figures", sa.Column("agreement", sa.Double(), nullable=True))
    for name in ("contradictions", "skips"):
        op.add_column("query_figures", sa.Column(name, _ID, nullable=False, server_default="0"))


def downgrade() -> None:
    """Go back: what was withdrawn comes back, what was undone stays undone, or not, as it was."""
    _open_withdrawn_queries()
    _silence_newer_entries()
    for name in ("skips", "contradictions", "agreement"):
        op.drop_column("query_figures", name)
    op.drop_index("ix_log_user", table_name="log")
    op.drop_column("log", "manager_id")
    op.drop_column("projects", "archived")
    op.drop_column("queries", "withdrawn")


def _open_withdrawn_queries() -> None:
    """Queries with something withdrawn are looked at again by whoever looks for work."""
    op.execute(
        "UPDATE queries SET done = false, available = true"
        " WHERE id IN (SELECT query_id FROM log WHERE kind = 'withdraw')"
    )
    op.execute(
        "UPDATE assigned SET done = false"
        " WHERE query_id IN (SELECT query_id FROM log WHERE kind = 'withdraw')"
    )
    op.execute(
        "UPDATE judges SET open_changed = 0, open_id = 0, assigned_changed = 0, assigned_id = 0"
    )
    op.execute("DELETE FROM exhausted")


def _silence_newer_entries() -> None:
    """Entries that older code cannot read become skips of nothing: a log has no gaps.

    Those are withdrawals with their undos, and undos that were undone with what undid them.
    """
    log = sa.table("log", *(sa.column(name) for name in ("query_id", "place", "kind", "undoes")))
    other = log.alias("other")
    connection = op.get_bind()
    undoes = sa.and_(other.c.query_id == log.c.query_id, other.c.place == log.c.undoes)
    later = sa.and_(
        other.c.query_id == log.c.query_id, other.c.undoes == log.c.place, other.c.kind == "undo"
    )
    newer = connection.execute(
        sa.select(log.c.query_id, log.c.place).where(
            sa.or_(
                log.c.kind == "withdraw",
                sa.and_(
                    log.c.kind == "undo",
                    sa.or_(
                        sa.exists().where(undoes, other.c.kind.in_(["undo", "withdraw"])),
                        sa.exists().where(later),
                    ),
                ),
            )
        )
    ).all()
    if newer:
        connection.execute(
            sa.text(
                'UPDATE log SET kind = \'skip\', "left" = -1, "right" = -1, undoes = NULL,'
                " counts = false WHERE query_id = :query_id AND place = :place"
            ),
            [row._asdict() for row in newer],
        )

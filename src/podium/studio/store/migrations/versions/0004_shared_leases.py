"""Leases that two tabs of one person share."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Go forward. Which leases are shared already is not known: their next renewal tells."""
    op.add_column(
        "leases", sa.Column("shared", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Go back."""
    op.drop_column("leases", "shared")

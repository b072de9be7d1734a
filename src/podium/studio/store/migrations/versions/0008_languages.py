"""The language of everyone's pages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Go forward: until they choose one, people read the language that their browser asks for."""
    op.add_column(
        "users", sa.Column("language", sa.String(length=20), server_default="", nullable=False)
    )


def downgrade() -> None:
    """Go back: choices of languages are gone."""
    op.drop_column("users", "language")

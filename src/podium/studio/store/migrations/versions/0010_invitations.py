"""Invitations know for whom they are, members by which they came, projects whom they removed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Go forward."""
    op.add_column("invitations", sa.Column("email", sa.String(320), nullable=True))
    op.add_column("memberships", sa.Column("invitation_id", _ID, nullable=True))
    op.create_table(
        "removed_members",
        sa.Column(
            "project_id",
            _ID,
            sa.ForeignKey("projects.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column(
            "user_id",
            _ID,
            sa.ForeignKey("users.id", ondelete="CASCADE"),
            primary_key=True,
        ),
    )
    op.create_index("ix_removed_members_user_id", "removed_members", ["user_id"])


def downgrade() -> None:
    """Go back: people who were removed may come back by a link that still works."""
    op.drop_table("removed_members")
    op.drop_column("memberships", "invitation_id")
    op.drop_column("invitations", "email")

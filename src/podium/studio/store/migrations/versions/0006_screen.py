"""What the judging page shows and asks: fields of documents, own grades, questions; tasks ahead."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Go forward."""
    op.add_column("candidates", sa.Column("extra", sa.JSON(), nullable=False, server_default="{}"))
    for name in ("display", "scale", "questions"):
        op.add_column("projects", sa.Column(name, sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("log", sa.Column("replies", sa.JSON(), nullable=True))
    op.add_column(
        "leases", sa.Column("ahead", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Go back. Older code knows five grades: higher ones become skips, as a log has no gaps."""
    op.execute(
        'UPDATE log SET kind = \'skip\', "left" = -1, "right" = -1, value = NULL,'
        " counts = false WHERE kind = 'grade' AND value > 4"
    )
    op.drop_column("leases", "ahead")
    op.drop_column("log", "replies")
    for name in ("questions", "scale", "display"):
        op.drop_column("projects", name)
    op.drop_column("candidates", "extra")

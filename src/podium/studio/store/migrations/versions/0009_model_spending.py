"""What models spent, requests without an answer included."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COLUMNS = ("requests", "prompt_tokens", "answer_tokens")


def upgrade() -> None:
    """Go forward: until now, what answers took was all that was known."""
    for name in _COLUMNS:
        column = sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)
        op.add_column("model_assessors", column)
    sums = ", ".join(
        f"{name} = (SELECT coalesce(sum({name}), 0) FROM model_answers "  # noqa: S608 - our own
        "WHERE assessor_id = model_assessors.id)"
        for name in _COLUMNS
    )
    op.execute(f"UPDATE model_assessors SET {sums}")  # noqa: S608 - our own names


def downgrade() -> None:
    """Go back: requests without an answer are forgotten."""
    for name in _COLUMNS:
        op.drop_column("model_assessors", name)

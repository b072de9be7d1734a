"""Positions are called so, and what models spent counts requests without an answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_SPENT = ("requests", "prompt_tokens", "answer_tokens")


def upgrade() -> None:
    """Go forward: until now, what answers took was all that was known of spending."""
    _rename("place", "position")
    for name in _SPENT:
        column = sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)
        op.add_column("model_assessors", column)
    sums = ", ".join(
        f"{name} = (SELECT coalesce(sum({name}), 0) FROM model_answers "  # noqa: S608 - our own
        "WHERE assessor_id = model_assessors.id)"
        for name in _SPENT
    )
    op.execute(f"UPDATE model_assessors SET {sums}")  # noqa: S608 - our own names


def downgrade() -> None:
    """Go back: requests without an answer are forgotten."""
    for name in _SPENT:
        op.drop_column("model_assessors", name)
    _rename("position", "place")


def _rename(old: str, new: str) -> None:
    for table in ("candidates", "rankings"):
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    # SQLite cannot rename a constraint: it writes the table anew, to which no other table refers.
    with op.batch_alter_table("log") as log:
        log.drop_constraint(f"uq_log_query_id_{old}", type_="unique")
        log.alter_column(old, new_column_name=new)
    with op.batch_alter_table("log") as log:
        log.create_unique_constraint(f"uq_log_query_id_{new}", ["query_id", new])

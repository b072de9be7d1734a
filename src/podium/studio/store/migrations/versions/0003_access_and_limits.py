"""Verified addresses, sign-in limits, random names of documents, and sanitised HTML."""

from __future__ import annotations

import random

import sqlalchemy as sa
from alembic import op

from podium.errors import DataError
from podium.studio.store.sanitizing import sanitized

revision = "0003"
down_revision = "0002"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CANDIDATES = sa.table(
    "candidates",
    sa.column("query_id"),
    sa.column("place"),
    sa.column("reference"),
    sa.column("html"),
    sa.column("text"),
)
_PAGE = 500


def upgrade() -> None:
    """Go forward."""
    # Columns are added with a default and not by writing tables anew, which SQLite would take for
    # the removal of every row that other tables refer to.
    op.add_column(
        "users",
        sa.Column("email_verified", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.execute("UPDATE users SET email_verified = (subject IS NOT NULL)")
    op.add_column(
        "sign_in_failures", sa.Column("last_at", sa.Double(), nullable=False, server_default="0")
    )
    op.create_table(
        "known_addresses",
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_known_addresses_user_id_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "address", name=op.f("pk_known_addresses")),
    )  # fmt: skip
    op.add_column("projects", sa.Column("incarnation", _ID, nullable=False, server_default="0"))
    op.add_column("candidates", sa.Column("reference", _ID, nullable=False, server_default="0"))
    _name_documents()
    op.create_index("ix_candidates_reference", "candidates", ["query_id", "reference"], unique=True)
    _sanitize_documents()


def downgrade() -> None:
    """Go back. HTML stays sanitised."""
    op.drop_index("ix_candidates_reference", table_name="candidates")
    op.drop_column("candidates", "reference")
    op.drop_column("projects", "incarnation")
    op.drop_table("known_addresses")
    op.drop_column("sign_in_failures", "last_at")
    op.drop_column("users", "email_verified")


def _name_documents() -> None:
    connection = op.get_bind()
    draw = random.SystemRandom()
    counts = connection.execute(
        sa.select(_CANDIDATES.c.query_id, sa.func.count()).group_by(_CANDIDATES.c.query_id)
    ).all()
    statement = (
        _CANDIDATES.update()
        .where(
            _CANDIDATES.c.query_id == sa.bindparam("query"),
            _CANDIDATES.c.place == sa.bindparam("number"),
        )
        .values(reference=sa.bindparam("name"))
    )
    for query, count in counts:
        names = draw.sample(range(2**31), count)
        connection.execute(
            statement,
            [{"query": query, "number": number, "name": name} for number, name in enumerate(names)],
        )


def _sanitize_documents() -> None:
    """HTML was stored as it came; what cannot be sanitised becomes text."""
    connection = op.get_bind()
    locked = (_CANDIDATES.c.query_id, _CANDIDATES.c.place)
    last = (0, -1)
    while rows := connection.execute(
        sa.select(*locked, _CANDIDATES.c.html, _CANDIDATES.c.text)
        .where(_CANDIDATES.c.html != "", sa.tuple_(*locked) > sa.tuple_(*last))
        .order_by(*locked)
        .limit(_PAGE)
    ).all():
        for row in rows:
            try:
                values = {"html": sanitized(row.html), "text": row.text}
            except DataError:
                values = {"html": "", "text": row.text or row.html}
            connection.execute(
                _CANDIDATES.update()
                .where(_CANDIDATES.c.query_id == row.query_id, _CANDIDATES.c.place == row.place)
                .values(**values)
            )
        last = (rows[-1].query_id, rows[-1].place)

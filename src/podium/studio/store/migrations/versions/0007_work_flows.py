"""Language models as assessors, adjudication, training, webhooks, e-mail and links for crowds."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    _create_model_tables()
    _create_adjudicators()
    _create_training_tables()
    _create_delivery_tables()
    _create_crowd_tables()


def downgrade() -> None:
    """Go back: what models judged and adjudicators decided is gone, what people judged stays."""
    _silence_newer_entries()
    for table in ("crowd_workers", "crowd_links", "password_resets", "deliveries", "webhooks"):
        op.drop_table(table)
    for table in ("qualifications", "training_answers", "training_examples", "training"):
        op.drop_table(table)
    op.drop_column("query_figures", "disputes")
    op.drop_table("adjudicators")
    op.drop_table("model_answers")
    op.drop_table("model_assessors")


def _create_model_tables() -> None:
    op.create_table(
        "model_assessors",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("endpoint", sa.String(length=500), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("rubric", sa.Text(), nullable=False),
        sa.Column("rubric_name", sa.String(length=200), nullable=False),
        sa.Column("rubric_hash", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=10), nullable=False),
        sa.Column("repeats", sa.SmallInteger(), nullable=False),
        sa.Column("connections", sa.SmallInteger(), nullable=False),
        sa.Column("max_requests", _ID, nullable=True),
        sa.Column("max_tokens", _ID, nullable=True),
        sa.Column("max_money", sa.Double(), nullable=True),
        sa.Column("prompt_price", sa.Double(), nullable=False),
        sa.Column("answer_price", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_model_assessors_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_model_assessors_user_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_assessors")),
        sa.UniqueConstraint("user_id", name=op.f("uq_model_assessors_user_id")),
    )  # fmt: skip
    op.create_index("ix_model_assessors_project_id", "model_assessors", ["project_id"])
    op.create_table(
        "model_answers",
        sa.Column("id", _ID, nullable=False),
        sa.Column("assessor_id", _ID, nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("question", sa.String(length=64), nullable=False),
        sa.Column("left", _ID, nullable=False),
        sa.Column("right", _ID, nullable=False),
        sa.Column("usable", sa.Boolean(), nullable=False),
        sa.Column("requests", _ID, nullable=False),
        sa.Column("prompt_tokens", _ID, nullable=False),
        sa.Column("answer_tokens", _ID, nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assessor_id"], ["model_assessors.id"], name=op.f("fk_model_answers_assessor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_model_answers_query_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_answers")),
        sa.UniqueConstraint(
            "assessor_id", "query_id", "question", "left", "right",
            name=op.f("uq_model_answers_assessor_id_query_id_question_left_right"),
        ),
    )  # fmt: skip
    op.create_index("ix_model_answers_query_id", "model_answers", ["query_id"])


def _create_adjudicators() -> None:
    op.create_table(
        "adjudicators",
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_adjudicators_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_adjudicators_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_adjudicators")),
    )  # fmt: skip
    op.create_index("ix_adjudicators_user_id", "adjudicators", ["user_id"])
    # They are worked out again for the next report.
    op.execute("DELETE FROM query_figures")
    op.add_column("query_figures", sa.Column("disputes", _ID, nullable=False, server_default="0"))


def _create_training_tables() -> None:
    op.create_table(
        "training",
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("pass_mark", sa.Double(), nullable=False),
        _reference("training", "project_id", "projects.id"),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_training")),
    )
    op.create_table(
        "training_examples",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("left", _ID, nullable=False),
        sa.Column("right", _ID, nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        _reference("training_examples", "project_id", "projects.id"),
        _reference("training_examples", "query_id", "queries.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_examples")),
    )
    for column in ("project_id", "query_id"):
        op.create_index(f"ix_training_examples_{column}", "training_examples", [column])
    op.create_table(
        "training_answers",
        sa.Column("example_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("value", sa.SmallInteger(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        _reference("training_answers", "example_id", "training_examples.id"),
        _reference("training_answers", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("example_id", "user_id", name=op.f("pk_training_answers")),
    )
    op.create_index("ix_training_answers_user_id", "training_answers", ["user_id"])
    op.create_table(
        "qualifications",
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("correct", _ID, nullable=False),
        sa.Column("total", _ID, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        _reference("qualifications", "project_id", "projects.id"),
        _reference("qualifications", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_qualifications")),
    )
    op.create_index("ix_qualifications_user_id", "qualifications", ["user_id"])


def _create_delivery_tables() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        _reference("webhooks", "project_id", "projects.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_project_id", "webhooks", ["project_id"])
    op.create_table(
        "deliveries",
        sa.Column("id", _ID, nullable=False),
        sa.Column("webhook_id", _ID, nullable=True),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        _reference("deliveries", "webhook_id", "webhooks.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_index("ix_deliveries_webhook_id", "deliveries", ["webhook_id"])
    waiting = sa.text("state = 'waiting'")
    op.create_index(
        "ix_deliveries_due", "deliveries", ["next_at"],
        postgresql_where=waiting, sqlite_where=waiting,
    )  # fmt: skip
    op.create_table(
        "password_resets",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        _reference("password_resets", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_password_resets")),
    )
    op.create_index("ix_password_resets_user_id", "password_resets", ["user_id"])


def _create_crowd_tables() -> None:
    op.create_table(
        "crowd_links",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("parameter", sa.String(length=50), nullable=False),
        sa.Column("code", sa.String(length=100), nullable=False),
        sa.Column("judgments", _ID, nullable=False),
        sa.Column("workers_left", _ID, nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        _reference("crowd_links", "project_id", "projects.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crowd_links")),
        sa.UniqueConstraint("key", name=op.f("uq_crowd_links_key")),
    )
    op.create_index("ix_crowd_links_project_id", "crowd_links", ["project_id"])
    op.create_table(
        "crowd_workers",
        sa.Column("link_id", _ID, nullable=False),
        sa.Column("external_id", sa.String(length=200), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("completed_at", sa.Double(), nullable=True),
        _reference("crowd_workers", "link_id", "crowd_links.id"),
        _reference("crowd_workers", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("link_id", "external_id", name=op.f("pk_crowd_workers")),
    )
    op.create_index("ix_crowd_workers_user_id", "crowd_workers", ["user_id"])


def _reference(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [other], name=name, ondelete="CASCADE")


def _silence_newer_entries() -> None:
    """Entries that older code cannot read become skips of nothing: a log has no gaps."""
    op.execute(
        "UPDATE queries SET judgments = judgments - (SELECT count(*) FROM log"
        " WHERE log.query_id = queries.id AND purpose = 'adjudicate' AND kind <> 'undo'"
        " AND counts AND NOT EXISTS (SELECT 1 FROM log AS later"
        " WHERE later.query_id = log.query_id AND later.undoes = log.place))"
    )
    op.execute(
        'UPDATE log SET kind = \'skip\', "left" = -1, "right" = -1, undoes = NULL,'
        " purpose = 'main', counts = false WHERE purpose IN ('model', 'adjudicate')"
    )
    for table in ("tallies", "judges"):
        op.execute(
            f"DELETE FROM {table} WHERE user_id IN (SELECT user_id FROM model_assessors)"  # noqa: S608
        )
    op.execute("DELETE FROM query_figures")

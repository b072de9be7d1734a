"""The tables of 0.1.0, the first release."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TABLES = sa.MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def upgrade() -> None:
    """Go forward."""
    _TABLES.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    """Go back: everything is gone."""
    _TABLES.drop_all(op.get_bind(), checkfirst=False)


def _refers(column: str, *, cascades: bool = True) -> sa.ForeignKey:
    return sa.ForeignKey(column, ondelete="CASCADE" if cascades else None)


def _column(
    name: str,
    kind: sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]],
    *references: sa.ForeignKey,
    nullable: bool = False,
    primary_key: bool = False,
    server_default: str | sa.False_ | sa.True_ | None = None,
) -> sa.Column[Any]:
    return sa.Column(
        name, kind, *references, nullable=nullable, primary_key=primary_key,
        server_default=server_default,
    )  # fmt: skip


def _partial_index(name: str, *columns: str, where: str) -> sa.Index:
    condition = sa.text(where)
    return sa.Index(name, *columns, postgresql_where=condition, sqlite_where=condition)


sa.Table(
    "audit",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("at", sa.Double),
    _column("user_id", _ID, nullable=True),
    _column("project_id", _ID, nullable=True),
    _column("action", sa.String(100)),
    _column("details", sa.JSON),
    sa.Index("ix_audit_project", "project_id", "id"),
)
sa.Table(
    "projects",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("name", sa.String(200)),
    _column("mode", sa.String(10)),
    _column("k", _ID),
    _column("algorithm", sa.String(100)),
    _column("seed", _ID),
    _column("budget", _ID, nullable=True),
    _column("overlap_share", sa.Double),
    _column("overlap_assessors", _ID),
    _column("assigned_only", sa.Boolean),
    _column("guidelines", sa.Text),
    _column("lease_seconds", sa.Double),
    _column("repeat_rate", sa.Double),
    _column("gold_rate", sa.Double),
    _column("paused", sa.Boolean),
    _column("created_at", sa.Double),
    _column("incarnation", _ID, server_default="0"),
    _column("archived", sa.Boolean, server_default=sa.false()),
    _column("display", sa.JSON, server_default="[]"),
    _column("scale", sa.JSON, server_default="[]"),
    _column("questions", sa.JSON, server_default="[]"),
)
sa.Table(
    "sign_in_failures",
    _TABLES,
    _column("key", sa.String(400), primary_key=True),
    _column("count", _ID),
    _column("locked_until", sa.Double),
    _column("last_at", sa.Double, server_default="0"),
)
sa.Table(
    "users",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("email", sa.String(320)),
    _column("email_verified", sa.Boolean, server_default=sa.false()),
    _column("name", sa.String(200)),
    _column("password", sa.String(200), nullable=True),
    _column("subject", sa.String(600), nullable=True),
    _column("language", sa.String(20), server_default=""),
    _column("is_admin", sa.Boolean),
    _column("disabled", sa.Boolean),
    _column("created_at", sa.Double),
    sa.UniqueConstraint("email"),
    sa.UniqueConstraint("subject"),
)
sa.Table(
    "adjudicators",
    _TABLES,
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id")),
    sa.Index("ix_adjudicators_user_id", "user_id"),
)
sa.Table(
    "api_tokens",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("user_id", _ID, _refers("users.id")),
    _column("name", sa.String(200)),
    _column("key", sa.String(64)),
    _column("created_at", sa.Double),
    _column("expires_at", sa.Double),
    sa.UniqueConstraint("key"),
    sa.Index("ix_api_tokens_user_id", "user_id"),
)
sa.Table(
    "auth_sessions",
    _TABLES,
    _column("key", sa.String(64), primary_key=True),
    _column("user_id", _ID, _refers("users.id")),
    _column("csrf", sa.String(64)),
    _column("expires_at", sa.Double),
    sa.Index("ix_auth_sessions_user_id", "user_id"),
)
sa.Table(
    "crowd_links",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("key", sa.String(64)),
    _column("parameter", sa.String(50)),
    _column("code", sa.String(100)),
    _column("judgments", _ID),
    _column("workers_left", _ID),
    _column("expires_at", sa.Double),
    sa.UniqueConstraint("key"),
    sa.Index("ix_crowd_links_project_id", "project_id"),
)
sa.Table(
    "invitations",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("role", sa.String(10)),
    _column("key", sa.String(64)),
    _column("uses_left", _ID),
    _column("expires_at", sa.Double),
    sa.UniqueConstraint("key"),
    sa.Index("ix_invitations_project_id", "project_id"),
)
sa.Table(
    "jobs",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("user_id", _ID, _refers("users.id", cascades=False)),
    _column("kind", sa.String(20)),
    _column("parameters", sa.JSON),
    _column("state", sa.String(10)),
    _column("progress", sa.Double),
    _column("file", sa.String(400), nullable=True),
    _column("error", sa.Text, nullable=True),
    _column("created_at", sa.Double),
    _column("alive_at", sa.Double),
    _column("worker", sa.String(64), nullable=True),
    _column("attempts", sa.SmallInteger),
    _column("result", sa.JSON),
    sa.Index("ix_jobs_project_id", "project_id"),
    sa.Index("ix_jobs_waiting", "state", "id"),
)
sa.Table(
    "judges",
    _TABLES,
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("judgments", _ID),
    _column("seconds", sa.Double),
    _column("open_changed", _ID),
    _column("open_id", _ID),
    _column("assigned_changed", _ID),
    _column("assigned_id", _ID),
    sa.Index("ix_judges_project_id", "project_id"),
)
sa.Table(
    "known_addresses",
    _TABLES,
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("address", sa.String(64), primary_key=True),
    _column("last_at", sa.Double),
)
sa.Table(
    "memberships",
    _TABLES,
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("role", sa.String(10)),
    sa.Index("ix_memberships_user_id", "user_id"),
)
sa.Table(
    "model_assessors",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("user_id", _ID, _refers("users.id", cascades=False)),
    _column("endpoint", sa.String(500)),
    _column("model", sa.String(200)),
    _column("rubric", sa.Text),
    _column("rubric_name", sa.String(200)),
    _column("rubric_hash", sa.String(64)),
    _column("scope", sa.String(10)),
    _column("repeats", sa.SmallInteger),
    _column("connections", sa.SmallInteger),
    _column("max_requests", _ID, nullable=True),
    _column("max_tokens", _ID, nullable=True),
    _column("max_money", sa.Double, nullable=True),
    _column("prompt_price", sa.Double),
    _column("answer_price", sa.Double),
    _column("created_at", sa.Double),
    sa.UniqueConstraint("user_id"),
    sa.Index("ix_model_assessors_project_id", "project_id"),
)
sa.Table(
    "password_resets",
    _TABLES,
    _column("key", sa.String(64), primary_key=True),
    _column("user_id", _ID, _refers("users.id")),
    _column("expires_at", sa.Double),
    sa.Index("ix_password_resets_user_id", "user_id"),
)
sa.Table(
    "qualifications",
    _TABLES,
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("state", sa.String(10)),
    _column("correct", _ID),
    _column("total", _ID),
    _column("at", sa.Double),
    sa.Index("ix_qualifications_user_id", "user_id"),
)
sa.Table(
    "queries",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("name", sa.String(400)),
    _column("text", sa.Text),
    _column("description", sa.Text),
    _column("ordered", sa.Boolean),
    _column("entries", _ID),
    _column("free", _ID),
    _column("lease_expiry", sa.Double, nullable=True),
    _column("available", sa.Boolean, server_default=sa.true()),
    _column("changed", _ID, server_default="0"),
    _column("judgments", _ID, server_default="0"),
    _column("done", sa.Boolean),
    _column("expected_left", sa.Double),
    _column("withdrawn", sa.Boolean, server_default=sa.false()),
    sa.UniqueConstraint("project_id", "name"),
    _partial_index("ix_queries_available", "project_id", "changed", "id", where="available"),
    _partial_index(
        "ix_queries_leased", "project_id", "lease_expiry", where="lease_expiry IS NOT NULL"
    ),
    sa.Index("ix_queries_open", "project_id", "done", "id"),
)
sa.Table(
    "reports",
    _TABLES,
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("kind", sa.String(20), primary_key=True),
    _column("content", sa.JSON),
    _column("entries", _ID),
    _column("made_at", sa.Double),
)
sa.Table(
    "training",
    _TABLES,
    _column("project_id", _ID, _refers("projects.id"), primary_key=True),
    _column("pass_mark", sa.Double),
)
sa.Table(
    "webhooks",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("url", sa.String(2000)),
    _column("secret", sa.String(64)),
    _column("created_at", sa.Double),
    sa.Index("ix_webhooks_project_id", "project_id"),
)
sa.Table(
    "assigned",
    _TABLES,
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("done", sa.Boolean, server_default=sa.false()),
    _partial_index("ix_assigned_open", "user_id", "query_id", where="NOT done"),
    sa.Index("ix_assigned_user_id", "user_id"),
)
sa.Table(
    "candidates",
    _TABLES,
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("place", _ID, primary_key=True),
    _column("reference", _ID, server_default="0"),
    _column("item", sa.String(1000)),
    _column("title", sa.Text),
    _column("text", sa.Text),
    _column("html", sa.Text),
    _column("url", sa.Text),
    _column("score", sa.Double, nullable=True),
    _column("extra", sa.JSON, server_default="{}"),
    sa.Index("ix_candidates_reference", "query_id", "reference", unique=True),
)
sa.Table(
    "crowd_workers",
    _TABLES,
    _column("link_id", _ID, _refers("crowd_links.id"), primary_key=True),
    _column("external_id", sa.String(200), primary_key=True),
    _column("user_id", _ID, _refers("users.id")),
    _column("completed_at", sa.Double, nullable=True),
    sa.Index("ix_crowd_workers_user_id", "user_id"),
)
sa.Table(
    "deliveries",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("webhook_id", _ID, _refers("webhooks.id"), nullable=True),
    _column("content", sa.JSON),
    _column("state", sa.String(10)),
    _column("attempts", sa.SmallInteger),
    _column("next_at", sa.Double),
    _column("error", sa.Text, nullable=True),
    _column("created_at", sa.Double),
    _partial_index("ix_deliveries_due", "next_at", where="state = 'waiting'"),
    sa.Index("ix_deliveries_webhook_id", "webhook_id"),
)
sa.Table(
    "exhausted",
    _TABLES,
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("changed", _ID),
    sa.Index("ix_exhausted_query_id", "query_id"),
)
sa.Table(
    "gold",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("query_id", _ID, _refers("queries.id")),
    _column("left", _ID),
    _column("right", _ID),
    _column("outcome", sa.SmallInteger),
    sa.Index("ix_gold_query_id", "query_id"),
)
sa.Table(
    "leases",
    _TABLES,
    _column("token", sa.Uuid, primary_key=True),
    _column("query_id", _ID, _refers("queries.id")),
    _column("user_id", _ID, _refers("users.id")),
    _column("tab", sa.String(64)),
    _column("left", _ID),
    _column("right", _ID),
    _column("purpose", sa.String(10)),
    _column("granted_at", sa.Double),
    _column("expires_at", sa.Double),
    _column("released", sa.Boolean),
    _column("renewed", sa.Boolean, server_default=sa.false()),
    _column("shared", sa.Boolean, server_default=sa.false()),
    _column("ahead", sa.Boolean, server_default=sa.false()),
    sa.Index("ix_leases_query_id", "query_id"),
    sa.Index("ix_leases_recent", "user_id", "granted_at"),
)
sa.Table(
    "log",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("query_id", _ID, _refers("queries.id")),
    _column("place", _ID),
    _column("user_id", _ID, _refers("users.id", cascades=False)),
    _column("kind", sa.String(12)),
    _column("left", _ID, nullable=True),
    _column("right", _ID, nullable=True),
    _column("value", sa.SmallInteger, nullable=True),
    _column("undoes", _ID, nullable=True),
    _column("purpose", sa.String(10)),
    _column("counts", sa.Boolean),
    _column("late", sa.Boolean),
    _column("token", sa.Uuid),
    _column("part", sa.SmallInteger),
    _column("reason", sa.Text, nullable=True),
    _column("at", sa.Double),
    _column("seconds", sa.Double),
    _column("manager_id", _ID, nullable=True),
    _column("replies", sa.JSON, nullable=True),
    sa.UniqueConstraint("query_id", "place"),
    sa.UniqueConstraint("token", "part"),
    sa.Index("ix_log_user", "user_id", "id"),
)
sa.Table(
    "model_answers",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("assessor_id", _ID, _refers("model_assessors.id")),
    _column("query_id", _ID, _refers("queries.id")),
    _column("question", sa.String(64)),
    _column("left", _ID),
    _column("right", _ID),
    _column("usable", sa.Boolean),
    _column("requests", _ID),
    _column("prompt_tokens", _ID),
    _column("answer_tokens", _ID),
    _column("content", sa.JSON),
    _column("at", sa.Double),
    sa.UniqueConstraint("assessor_id", "query_id", "question", "left", "right"),
    sa.Index("ix_model_answers_query_id", "query_id"),
)
sa.Table(
    "query_figures",
    _TABLES,
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("entries", _ID),
    _column("content", sa.JSON),
    _column("agreement", sa.Double, nullable=True),
    _column("contradictions", _ID, server_default="0"),
    _column("skips", _ID, server_default="0"),
    _column("disputes", _ID, server_default="0"),
)
sa.Table(
    "rankings",
    _TABLES,
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("place", _ID, primary_key=True),
    _column("name", sa.String(400)),
    _column("items", sa.JSON),
)
sa.Table(
    "tallies",
    _TABLES,
    _column("query_id", _ID, _refers("queries.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("judgments", _ID),
    _column("seconds", sa.Double),
    _column("last_at", sa.Double),
    sa.Index("ix_tallies_recent", "user_id", "last_at"),
)
sa.Table(
    "training_examples",
    _TABLES,
    _column("id", _ID, primary_key=True),
    _column("project_id", _ID, _refers("projects.id")),
    _column("query_id", _ID, _refers("queries.id")),
    _column("left", _ID),
    _column("right", _ID),
    _column("value", sa.SmallInteger),
    _column("explanation", sa.Text),
    sa.Index("ix_training_examples_project_id", "project_id"),
    sa.Index("ix_training_examples_query_id", "query_id"),
)
sa.Table(
    "training_answers",
    _TABLES,
    _column("example_id", _ID, _refers("training_examples.id"), primary_key=True),
    _column("user_id", _ID, _refers("users.id"), primary_key=True),
    _column("value", sa.SmallInteger),
    _column("correct", sa.Boolean),
    _column("at", sa.Double),
    sa.Index("ix_training_answers_user_id", "user_id"),
)

"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Go forward."""
    op.create_table(
        "audit",
        sa.Column("id", _ID, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("user_id", _ID, nullable=True),
        sa.Column("project_id", _ID, nullable=True),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index("ix_audit_project", "audit", ["project_id", "id"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("k", _ID, nullable=False),
        sa.Column("algorithm", sa.String(length=100), nullable=False),
        sa.Column("seed", _ID, nullable=False),
        sa.Column("budget", _ID, nullable=True),
        sa.Column("overlap_share", sa.Double(), nullable=False),
        sa.Column("overlap_assessors", _ID, nullable=False),
        sa.Column("assigned_only", sa.Boolean(), nullable=False),
        sa.Column("guidelines", sa.Text(), nullable=False),
        sa.Column("lease_seconds", sa.Double(), nullable=False),
        sa.Column("repeat_rate", sa.Double(), nullable=False),
        sa.Column("gold_rate", sa.Double(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("key", sa.String(length=400), nullable=False),
        sa.Column("count", _ID, nullable=False),
        sa.Column("locked_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sign_in_failures")),
    )
    op.create_table(
        "users",
        sa.Column("id", _ID, nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("password", sa.String(length=200), nullable=True),
        sa.Column("subject", sa.String(length=600), nullable=True),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("email", name=op.f("uq_users_email")),
        sa.UniqueConstraint("subject", name=op.f("uq_users_subject")),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_api_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("key", name=op.f("uq_api_tokens_key")),
    )
    op.create_index(op.f("ix_api_tokens_user_id"), "api_tokens", ["user_id"], unique=False)
    op.create_table(
        "auth_sessions",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("csrf", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_auth_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_auth_sessions")),
    )
    op.create_index(op.f("ix_auth_sessions_user_id"), "auth_sessions", ["user_id"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("uses_left", _ID, nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_invitations_project_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("key", name=op.f("uq_invitations_key")),
    )
    op.create_index(op.f("ix_invitations_project_id"), "invitations", ["project_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("file", sa.String(length=400), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("alive_at", sa.Double(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("attempts", sa.SmallInteger(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_jobs_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_jobs_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_project_id"), "jobs", ["project_id"], unique=False)
    op.create_index("ix_jobs_waiting", "jobs", ["state", "id"], unique=False)
    op.create_table(
        "memberships",
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"],
            ["projects.id"],
            name=op.f("fk_memberships_project_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_memberships_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_memberships")),
    )
    op.create_index(op.f("ix_memberships_user_id"), "memberships", ["user_id"], unique=False)
    op.create_table(
        "queries",
        sa.Column("id", _ID, nullable=False),
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("name", sa.String(length=400), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("ordered", sa.Boolean(), nullable=False),
        sa.Column("entries", _ID, nullable=False),
        sa.Column("free", _ID, nullable=False),
        sa.Column("lease_expiry", sa.Double(), nullable=True),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.Column("expected_left", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_queries_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queries")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_queries_project_id_name")),
    )
    op.create_index("ix_queries_open", "queries", ["project_id", "done", "id"], unique=False)
    op.create_table(
        "reports",
        sa.Column("project_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("entries", _ID, nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_reports_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "kind", name=op.f("pk_reports")),
    )
    op.create_table(
        "assigned",
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_assigned_query_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_assigned_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", "user_id", name=op.f("pk_assigned")),
    )
    op.create_index(op.f("ix_assigned_user_id"), "assigned", ["user_id"], unique=False)
    op.create_table(
        "candidates",
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("place", _ID, nullable=False),
        sa.Column("item", sa.String(length=1000), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("html", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_candidates_query_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", "place", name=op.f("pk_candidates")),
    )
    op.create_table(
        "gold",
        sa.Column("id", _ID, nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("left", _ID, nullable=False),
        sa.Column("right", _ID, nullable=False),
        sa.Column("outcome", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_gold_query_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gold")),
    )
    op.create_index(op.f("ix_gold_query_id"), "gold", ["query_id"], unique=False)
    op.create_table(
        "leases",
        sa.Column("token", sa.Uuid(), nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("tab", sa.String(length=64), nullable=False),
        sa.Column("left", _ID, nullable=False),
        sa.Column("right", _ID, nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("granted_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("released", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_leases_query_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_leases_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token", name=op.f("pk_leases")),
    )
    op.create_index(
        "ix_leases_held", "leases", ["query_id"], unique=False, postgresql_where="NOT released"
    )
    op.create_index("ix_leases_tab", "leases", ["user_id", "tab"], unique=False)
    op.create_table(
        "log",
        sa.Column("id", _ID, nullable=False),
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("place", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("left", _ID, nullable=True),
        sa.Column("right", _ID, nullable=True),
        sa.Column("value", sa.SmallInteger(), nullable=True),
        sa.Column("undoes", _ID, nullable=True),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("token", sa.Uuid(), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_log_query_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_log_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log")),
        sa.UniqueConstraint("query_id", "place", name=op.f("uq_log_query_id_place")),
        sa.UniqueConstraint("token", "part", name=op.f("uq_log_token_part")),
    )
    op.create_table(
        "query_figures",
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("entries", _ID, nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_query_figures_query_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", name=op.f("pk_query_figures")),
    )
    op.create_table(
        "rankings",
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("place", _ID, nullable=False),
        sa.Column("name", sa.String(length=400), nullable=False),
        sa.Column("items", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_rankings_query_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", "place", name=op.f("pk_rankings")),
    )
    op.create_table(
        "tallies",
        sa.Column("query_id", _ID, nullable=False),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("judgments", _ID, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["query_id"], ["queries.id"], name=op.f("fk_tallies_query_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_tallies_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("query_id", "user_id", name=op.f("pk_tallies")),
    )
    op.create_index(op.f("ix_tallies_user_id"), "tallies", ["user_id"], unique=False)


def downgrade() -> None:
    """Go back."""
    op.drop_index(op.f("ix_tallies_user_id"), table_name="tallies")
    op.drop_table("tallies")
    op.drop_table("rankings")
    op.drop_table("query_figures")
    op.drop_table("log")
    op.drop_index("ix_leases_tab", table_name="leases")
    op.drop_index("ix_leases_held", table_name="leases", postgresql_where="NOT released")
    op.drop_table("leases")
    op.drop_index(op.f("ix_gold_query_id"), table_name="gold")
    op.drop_table("gold")
    op.drop_table("candidates")
    op.drop_index(op.f("ix_assigned_user_id"), table_name="assigned")
    op.drop_table("assigned")
    op.drop_table("reports")
    op.drop_index("ix_queries_open", table_name="queries")
    op.drop_table("queries")
    op.drop_index(op.f("ix_memberships_user_id"), table_name="memberships")
    op.drop_table("memberships")
    op.drop_index("ix_jobs_waiting", table_name="jobs")
    op.drop_index(op.f("ix_jobs_project_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_invitations_project_id"), table_name="invitations")
    op.drop_table("invitations")
    op.drop_index(op.f("ix_auth_sessions_user_id"), table_name="auth_sessions")
    op.drop_table("auth_sessions")
    op.drop_index(op.f("ix_api_tokens_user_id"), table_name="api_tokens")
    op.drop_table("api_tokens")
    op.drop_table("users")
    op.drop_table("sign_in_failures")
    op.drop_table("projects")
    op.drop_index("ix_audit_project", table_name="audit")
    op.drop_table("audit")

"""The tables. The log of judgments is append-only; a query's state is its replay.

Items are identified by their position in the query's list, people by their account id, and times
are seconds since 1970, as in `podium.judging`.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import (
    JSON,
    ForeignKey,
    Index,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.json_types import JsonObject
from podium.studio.store.crowd_tables import CrowdLink as CrowdLink
from podium.studio.store.crowd_tables import CrowdWorker as CrowdWorker
from podium.studio.store.delivery_tables import Delivery as Delivery
from podium.studio.store.delivery_tables import PasswordReset as PasswordReset
from podium.studio.store.delivery_tables import Webhook as Webhook
from podium.studio.store.flow_tables import Adjudicator as Adjudicator
from podium.studio.store.flow_tables import Qualification as Qualification
from podium.studio.store.flow_tables import Training as Training
from podium.studio.store.flow_tables import TrainingAnswer as TrainingAnswer
from podium.studio.store.flow_tables import TrainingExample as TrainingExample
from podium.studio.store.model_tables import ModelAnswerRecord as ModelAnswerRecord
from podium.studio.store.model_tables import ModelAssessor as ModelAssessor
from podium.studio.store.table_base import Base as Base
from podium.studio.store.work_tables import AssessorProgress as AssessorProgress
from podium.studio.store.work_tables import Exhausted as Exhausted


class User(Base):
    """Someone with an account."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(String(320), unique=True)
    email_verified: Mapped[bool]
    """Whether an administrator or the OpenID provider vouches for the address."""
    name: Mapped[str] = mapped_column(String(200))
    password: Mapped[str | None] = mapped_column(String(200))
    subject: Mapped[str | None] = mapped_column(String(600), unique=True)
    """Who they are to the OpenID provider, with its issuer."""
    language: Mapped[str] = mapped_column(String(20), default="", server_default="")
    """The language of their pages; empty for the one that their browser asks for."""
    is_admin: Mapped[bool] = mapped_column(default=False)
    disabled: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[float]


class SignInFailure(Base):
    """How often signing in failed lately, for an account or an address."""

    __tablename__ = "sign_in_failures"

    key: Mapped[str] = mapped_column(String(400), primary_key=True)
    count: Mapped[int]
    locked_until: Mapped[float]
    last_at: Mapped[float]


class KnownAddress(Base):
    """Where someone has signed in from: strangers who fail elsewhere do not lock them out there."""

    __tablename__ = "known_addresses"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    address: Mapped[str] = mapped_column(String(64), primary_key=True)
    last_at: Mapped[float]


class AuthSession(Base):
    """A browser that signed in; its cookie is kept as a digest only."""

    __tablename__ = "auth_sessions"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    csrf: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[float]


class ApiToken(Base):
    """A program's way in, kept as a digest only."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    key: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[float]
    expires_at: Mapped[float]


class Project(Base):
    """Queries that are judged in one way."""

    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    mode: Mapped[str] = mapped_column(String(10))
    k: Mapped[int]
    algorithm: Mapped[str] = mapped_column(String(100))
    seed: Mapped[int]
    budget: Mapped[int | None]
    overlap_share: Mapped[float]
    overlap_assessors: Mapped[int]
    assigned_only: Mapped[bool]
    """Whether people judge only the queries that were assigned to them."""
    guidelines: Mapped[str] = mapped_column(Text)
    lease_seconds: Mapped[float]
    repeat_rate: Mapped[float]
    gold_rate: Mapped[float]
    paused: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[float]
    incarnation: Mapped[int]
    """Drawn when it is made and when a backup is restored: what servers keep in memory of another
    state of the database is told from this one by it."""
    archived: Mapped[bool] = mapped_column(default=False)
    """Whether it is out of the way: paused, unchangeable, and listed separately."""
    display: Mapped[list[JsonObject]] = mapped_column(JSON, default=list)
    """The fields of a document that assessors see, in order; empty is title, address and text."""
    scale: Mapped[list[JsonObject]] = mapped_column(JSON, default=list)
    """The grades, worst first; empty is the usual five."""
    questions: Mapped[list[JsonObject]] = mapped_column(JSON, default=list)
    """What assessors are asked besides the verdict."""


class Membership(Base):
    """A member of a project, and their role."""

    __tablename__ = "memberships"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    role: Mapped[str] = mapped_column(String(10))


class Invitation(Base):
    """An invitation link to a project."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    role: Mapped[str] = mapped_column(String(10))
    key: Mapped[str] = mapped_column(String(64), unique=True)
    uses_left: Mapped[int]
    expires_at: Mapped[float]


class ProjectQuery(Base):
    """A query, and its judging state as of the last entry."""

    __tablename__ = "queries"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        Index("ix_queries_open", "project_id", "done", "id"),
        # What `podium.studio.judging.open_work` looks through: queries with something free, and
        # those with leases that may have ended. Both leave out queries that are done.
        Index(
            "ix_queries_available",
            "project_id",
            "changed",
            "id",
            postgresql_where=sql("available"),
            sqlite_where=sql("available"),
        ),
        Index(
            "ix_queries_leased",
            "project_id",
            "lease_expiry",
            postgresql_where=sql("lease_expiry IS NOT NULL"),
            sqlite_where=sql("lease_expiry IS NOT NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    name: Mapped[str] = mapped_column(String(400))
    text: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text)
    ordered: Mapped[bool]
    """Whether its candidates are in the order of a prior ranking."""
    entries: Mapped[int] = mapped_column(default=0)
    free: Mapped[int] = mapped_column(default=1)
    """How many tasks nobody holds, as of the last change."""
    lease_expiry: Mapped[float | None]
    """When to look for leases that ended, at the latest when the first does; 0 is at once."""
    available: Mapped[bool] = mapped_column(default=True)
    """Whether anything is free, as of the last change."""
    changed: Mapped[int] = mapped_column(default=0)
    """The number of the transaction in which something in it last became free."""
    judgments: Mapped[int] = mapped_column(default=0)
    """How many answers stand: neither skipped, nor taken back, nor too late to count."""
    done: Mapped[bool] = mapped_column(default=False)
    expected_left: Mapped[float]
    withdrawn: Mapped[bool] = mapped_column(default=False)
    """Whether a manager took it out of the project, for the time being or for good."""


class QueryCandidate(Base):
    """A document of a query. Its HTML was sanitised before it was stored."""

    __tablename__ = "candidates"
    __table_args__ = (Index("ix_candidates_reference", "query_id", "reference", unique=True),)

    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    reference: Mapped[int]
    """Names it in browsers; drawn at random, because the position may be the prior rank."""
    item: Mapped[str] = mapped_column(String(1000))
    title: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    html: Mapped[str] = mapped_column(Text)
    url: Mapped[str] = mapped_column(Text)
    score: Mapped[float | None]
    extra: Mapped[JsonObject] = mapped_column(default=dict)
    """Whatever else was imported of it, by the names of the fields."""


class Ranking(Base):
    """A system's ranking of a query's candidates, for verdicts on whole rankings."""

    __tablename__ = "rankings"

    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(400))
    items: Mapped[list[int]] = mapped_column(JSON)


class Gold(Base):
    """A gold pair: its outcome is known."""

    __tablename__ = "gold"

    id: Mapped[int] = mapped_column(primary_key=True)
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), index=True)
    left: Mapped[int]
    right: Mapped[int]
    outcome: Mapped[int] = mapped_column(SmallInteger)


class QueryAssignment(Base):
    """A query assigned to an assessor."""

    __tablename__ = "assigned"
    __table_args__ = (
        Index(
            "ix_assigned_open",
            "user_id",
            "query_id",
            postgresql_where=sql("NOT done"),
            sqlite_where=sql("NOT done"),
        ),
        Index("ix_assigned_user_id", "user_id"),
    )

    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    done: Mapped[bool] = mapped_column(default=False)
    """Whether the query is done, so that nobody has to look through what they finished."""


class Lease(Base):
    """A task leased to someone. An answer deletes it; expired leases stay for late answers."""

    __tablename__ = "leases"
    __table_args__ = (
        # Of all leases: without it, deleting queries would look through the table for each.
        Index("ix_leases_query_id", "query_id"),
        Index("ix_leases_recent", "user_id", "granted_at"),
    )

    token: Mapped[UUID] = mapped_column(primary_key=True)
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    tab: Mapped[str] = mapped_column(String(64))
    """The browser tab that has it; empty if nobody wants it back."""
    left: Mapped[int]
    right: Mapped[int]
    purpose: Mapped[str] = mapped_column(String(10))
    granted_at: Mapped[float]
    expires_at: Mapped[float]
    released: Mapped[bool] = mapped_column(default=False)
    renewed: Mapped[bool] = mapped_column(default=False)
    """Whether its page says every few seconds that someone is there."""
    shared: Mapped[bool] = mapped_column(default=False)
    """Whether another tab of the same person shows it too."""
    ahead: Mapped[bool] = mapped_column(default=False)
    """Whether it was fetched ahead: its page shows another task first."""


class LogEntry(Base):
    """An entry of a query's log. Rows are added, never changed."""

    __tablename__ = "log"
    __table_args__ = (
        UniqueConstraint("query_id", "position"),
        UniqueConstraint("token", "part"),
        # What someone answered, newest first.
        Index("ix_log_user", "user_id", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"))
    position: Mapped[int]
    """From 0, without gaps in each query."""
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str] = mapped_column(String(12))
    left: Mapped[int | None]
    """The item on the left, or the only one; a ranking, where those are compared."""
    right: Mapped[int | None]
    value: Mapped[int | None] = mapped_column(SmallInteger)
    """The outcome, the grade or the choice."""
    undoes: Mapped[int | None]
    """The position of the entry that no longer stands."""
    purpose: Mapped[str] = mapped_column(String(10))
    counts: Mapped[bool] = mapped_column(default=True)
    """Whether it takes part in the replay: late answers to what went to others do not."""
    late: Mapped[bool] = mapped_column(default=False)
    token: Mapped[UUID]
    """The lease it answers, or what the browser named its undo: saying it twice changes nothing."""
    part: Mapped[int] = mapped_column(SmallInteger, default=0)
    reason: Mapped[str | None] = mapped_column(Text)
    """Why it was skipped or undone, or a comment on the answer."""
    at: Mapped[float]
    seconds: Mapped[float]
    manager_id: Mapped[int | None]
    """Who undid someone else's entry, or brought it back."""
    replies: Mapped[JsonObject | None]
    """The replies to the project's own questions, by the names of those."""


class JudgmentCount(Base):
    """How much someone has judged of a query, so that no dashboard has to count the log.

    Like `ProjectQuery.judgments`, it counts only answers that were not undone.
    """

    __tablename__ = "tallies"
    __table_args__ = (Index("ix_tallies_recent", "user_id", "last_at"),)

    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    judgments: Mapped[int]
    seconds: Mapped[float]
    last_at: Mapped[float]
    """When the last of their answers that can be taken back was given; 0 if there is none."""


class AuditRecord(Base):
    """Who changed what, apart from judging, which has its own log."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_project", "project_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float]
    user_id: Mapped[int | None]
    project_id: Mapped[int | None]
    action: Mapped[str] = mapped_column(String(100))
    details: Mapped[JsonObject]


class Job(Base):
    """An import, export or report job."""

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_waiting", "state", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str] = mapped_column(String(20))
    parameters: Mapped[JsonObject]
    state: Mapped[str] = mapped_column(String(10))
    progress: Mapped[float] = mapped_column(default=0.0)
    file: Mapped[str | None] = mapped_column(String(400))
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[float]
    alive_at: Mapped[float]
    """The last heartbeat of its worker."""
    worker: Mapped[str | None] = mapped_column(String(64))
    """The worker that runs it: one whose job was taken over must not finish it."""
    attempts: Mapped[int] = mapped_column(SmallInteger, default=0)
    result: Mapped[JsonObject]
    """What it came to, in figures."""


class Report(Base):
    """A figure that takes long to work out, as it was last."""

    __tablename__ = "reports"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    content: Mapped[JsonObject]
    entries: Mapped[int]
    made_at: Mapped[float]


class QueryFigures(Base):
    """What a query adds to its project's reports, so that only queries that moved are read again.

    `entries` tells up to which entry of the log they go.
    """

    __tablename__ = "query_figures"

    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True
    )
    entries: Mapped[int]
    content: Mapped[JsonObject]
    agreement: Mapped[float | None]
    """The share of every two votes on the same thing that are the same; None without any."""
    contradictions: Mapped[int]
    skips: Mapped[int]
    disputes: Mapped[int]
    """How many pairs or documents people disagree on, and nobody has decided."""

"""The tables. The log of judgments is append-only; a query's state is its replay.

Items are identified by their position in the query's list, people by their account id, and times
are seconds since 1970, as in `podium.judging`.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import (
    JSON,
    BigInteger,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Text,
    UniqueConstraint,
    Uuid,
)
from sqlalchemy import text as sql
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from podium.studio.json_types import JsonObject

_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only in an INTEGER


class Base(DeclarativeBase):
    """All tables, with names for their constraints, which migrations need."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {int: _ID, float: Double, UUID: Uuid, JsonObject: JSON}  # noqa: RUF012


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
    state of the database has another number."""
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
    invitation_id: Mapped[int | None]
    """The invitation by which they came, which ends when they are removed; `BY_NO_LINK` if they
    know none, and null if that is unknown."""


BY_NO_LINK = 0
"""In place of an invitation: a manager added them, or a platform sent them."""


class RemovedMember(Base):
    """Someone whom a manager removed from a project: no link brings them back."""

    __tablename__ = "removed_members"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )


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
    email: Mapped[str | None] = mapped_column(String(320))
    """For whom it is, if a manager said so."""


class ProjectQuery(Base):
    """A query, and its judging state as of the last entry."""

    __tablename__ = "queries"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        Index("ix_queries_open", "project_id", "done", "id"),
        # What `podium.studio.judging.next_task` looks through: queries with something free, and
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
        # For all leases: without it, each deletion of a query would scan the table.
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

    They go up to entry number `entries` of the log.
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


class Exhausted(Base):
    """A query in which someone found nothing for themselves, although something was free.

    It holds for as long as the query's number is the same.
    """

    __tablename__ = "exhausted"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    query_id: Mapped[int] = mapped_column(
        ForeignKey("queries.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    changed: Mapped[int]


class AssessorProgress(Base):
    """What someone has done in a project, and how far they have looked for work there."""

    __tablename__ = "judges"

    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    judgments: Mapped[int] = mapped_column(default=0)
    seconds: Mapped[float] = mapped_column(default=0.0)
    open_changed: Mapped[int] = mapped_column(default=0)
    """Up to this `ProjectQuery.changed`, and this id among those with the same, no query has
    anything for them."""
    open_id: Mapped[int] = mapped_column(default=0)
    assigned_changed: Mapped[int] = mapped_column(default=0)
    """The same of the queries that are assigned to them."""
    assigned_id: Mapped[int] = mapped_column(default=0)


class ModelAssessor(Base):
    """A language model that judges in a project. Its judgments are in the log, by its account."""

    __tablename__ = "model_assessors"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), unique=True)
    """The account that stands for it in the log; nobody can sign in with it."""
    endpoint: Mapped[str] = mapped_column(String(500))
    """The base of its URLs, without the key, as the server's settings list it; empty if its labels
    are those of a file."""
    model: Mapped[str] = mapped_column(String(200))
    rubric: Mapped[str] = mapped_column(Text)
    """What it is asked, as TOML, or its labels; it never changes."""
    rubric_name: Mapped[str] = mapped_column(String(200))
    """The rubric's name and version."""
    rubric_hash: Mapped[str] = mapped_column(String(64))
    scope: Mapped[str] = mapped_column(String(10))
    """``judged`` for what people judged, ``all`` for every query as a whole."""
    repeats: Mapped[int] = mapped_column(SmallInteger)
    connections: Mapped[int] = mapped_column(SmallInteger)
    max_requests: Mapped[int | None]
    max_tokens: Mapped[int | None]
    max_money: Mapped[float | None]
    prompt_price: Mapped[float]
    answer_price: Mapped[float]
    created_at: Mapped[float]
    requests: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Requests of all its runs, counted before they are sent."""
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    answer_tokens: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")


class ModelAnswerRecord(Base):
    """One answer of a model, with all that it came from. Rows are added, never changed."""

    __tablename__ = "model_answers"
    __table_args__ = (UniqueConstraint("assessor_id", "query_id", "question", "left", "right"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    assessor_id: Mapped[int] = mapped_column(ForeignKey("model_assessors.id", ondelete="CASCADE"))
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), index=True)
    question: Mapped[str] = mapped_column(String(64))
    """The hash of what was asked."""
    left: Mapped[int]
    """The document that was shown first, or alone."""
    right: Mapped[int]
    """The one shown second; -1 if there is none."""
    usable: Mapped[bool]
    requests: Mapped[int]
    prompt_tokens: Mapped[int]
    answer_tokens: Mapped[int]
    content: Mapped[JsonObject]
    """The answer as `podium.judging.ModelAnswer` writes it."""
    at: Mapped[float]


class Adjudicator(Base):
    """Who decides in a project where people disagree."""

    __tablename__ = "adjudicators"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)


class Training(Base):
    """That people are trained before they judge in a project, and how many they must get right."""

    __tablename__ = "training"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    pass_mark: Mapped[float]
    """The share of right answers that qualifies, from 0 to 1."""


class TrainingExample(Base):
    """A pair, or a document, whose answer is known, with an explanation."""

    __tablename__ = "training_examples"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    query_id: Mapped[int] = mapped_column(ForeignKey("queries.id", ondelete="CASCADE"), index=True)
    left: Mapped[int]
    right: Mapped[int]
    """The position of the second document; -1 if there is one alone."""
    value: Mapped[int] = mapped_column(SmallInteger)
    """The outcome or the grade."""
    explanation: Mapped[str] = mapped_column(Text)


class TrainingAnswer(Base):
    """What someone answered to an example."""

    __tablename__ = "training_answers"

    example_id: Mapped[int] = mapped_column(
        ForeignKey("training_examples.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    value: Mapped[int] = mapped_column(SmallInteger)
    correct: Mapped[bool]
    at: Mapped[float]


class Qualification(Base):
    """What came of someone's training."""

    __tablename__ = "qualifications"

    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True
    )
    user_id: Mapped[int] = mapped_column(
        ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    state: Mapped[str] = mapped_column(String(10))
    """``passed``, ``failed``, or ``allowed`` by a manager."""
    correct: Mapped[int]
    total: Mapped[int]
    at: Mapped[float]


class Webhook(Base):
    """A URL that is called when queries and projects are done."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    url: Mapped[str] = mapped_column(String(2000))
    secret: Mapped[str] = mapped_column(String(64))
    """Signs what is sent; it is shown once."""
    created_at: Mapped[float]


class Delivery(Base):
    """Something to send, until it is sent or given up."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index(
            "ix_deliveries_due",
            "next_at",
            postgresql_where=sql("state = 'waiting'"),
            sqlite_where=sql("state = 'waiting'"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    webhook_id: Mapped[int | None] = mapped_column(
        ForeignKey("webhooks.id", ondelete="CASCADE"), index=True
    )
    """The webhook that it goes to; None for e-mail."""
    content: Mapped[JsonObject]
    """What is sent to a webhook, or an e-mail's recipient, subject and text."""
    state: Mapped[str] = mapped_column(String(10))
    """``waiting``, ``sent`` or ``failed``."""
    attempts: Mapped[int] = mapped_column(SmallInteger)
    next_at: Mapped[float]
    """When to try next; while someone tries, when another may."""
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[float]


class PasswordReset(Base):
    """A link that lets someone choose a new password, kept as a digest only."""

    __tablename__ = "password_resets"

    key: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    expires_at: Mapped[float]


class CrowdLink(Base):
    """A link by which the workers of a crowd platform join a project."""

    __tablename__ = "crowd_links"

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(
        ForeignKey("projects.id", ondelete="CASCADE"), index=True
    )
    key: Mapped[str] = mapped_column(String(64), unique=True)
    parameter: Mapped[str] = mapped_column(String(50))
    """The parameter of the URL that has the platform's id of a worker."""
    code: Mapped[str] = mapped_column(String(100))
    """What workers give the platform when they are done."""
    judgments: Mapped[int]
    """How many judgments a worker is to make."""
    workers_left: Mapped[int]
    expires_at: Mapped[float]


class CrowdWorker(Base):
    """The account of a worker, by the platform's id of them."""

    __tablename__ = "crowd_workers"

    link_id: Mapped[int] = mapped_column(
        ForeignKey("crowd_links.id", ondelete="CASCADE"), primary_key=True
    )
    external_id: Mapped[str] = mapped_column(String(200), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    completed_at: Mapped[float | None]
    """When they were first shown the code."""

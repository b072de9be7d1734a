"""The tables of language models that judge: who they are, and every answer they gave."""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKey, SmallInteger, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.json_types import JsonObject
from podium.studio.store.table_base import Base


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
    """The base of its URLs, without the key, as the server's settings list it."""
    model: Mapped[str] = mapped_column(String(200))
    rubric: Mapped[str] = mapped_column(Text)
    """What it is asked, as TOML; it never changes."""
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

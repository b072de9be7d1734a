"""The tables of what leaves the server: webhooks, and a queue of requests and e-mail to send."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, SmallInteger, String, Text
from sqlalchemy import text as sql
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.json_types import JsonObject
from podium.studio.store.table_base import Base


class Webhook(Base):
    """A URL that is told when queries and projects are done."""

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
    """What a webhook is told, or an e-mail's recipient, subject and text."""
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

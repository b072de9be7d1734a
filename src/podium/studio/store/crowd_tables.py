"""The tables of links for crowd workers."""

from __future__ import annotations

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.store.table_base import Base


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

"""The tables by which people find open work; see `podium.studio.judging.open_work`."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.store.table_base import Base


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

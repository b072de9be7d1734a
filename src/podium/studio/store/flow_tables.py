"""The tables of people's work flows: adjudication and training."""

from __future__ import annotations

from sqlalchemy import ForeignKey, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from podium.studio.store.table_base import Base


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

"""A small project to try everything with: a few queries and short texts of our own."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, select

from podium.data import CandidateList, read_jsonl
from podium.studio.accounts.service import add_user
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.tables import Project, User

EMAIL = "you@localhost"

_QUERIES = Path(__file__).with_name("demo.jsonl")

_GUIDELINES = """
Which of the two documents would help you more if you had typed the query?

- Judge what the text says, not how long it is.
- If both help as much, say that they are *equally good*.
- Mark a document as *bad* if nobody who typed the query would want it.
"""


def demo_queries() -> list[CandidateList]:
    """The queries of the demonstration.

    Example:
        >>> demo_queries()[0].query
        'keep bread fresh'
    """
    return list(read_jsonl(_QUERIES))


def prepare_demo(connection: Connection) -> int:
    """The administrator's account, made with a first project unless there is one already."""
    admin = connection.scalar(
        select(User.id).where(User.is_admin, User.disabled.is_(False)).order_by(User.id).limit(1)
    )
    if admin is None:
        admin = add_user(connection, EMAIL, "You", None, admin=True)
    if connection.scalar(select(Project.id).limit(1)) is None:
        settings = ProjectSettings(
            name="Demonstration", k=3, guidelines=_GUIDELINES, repeat_rate=0.1
        )
        project = project_row(connection, create_project(connection, admin, settings))
        add_queries(connection, project, demo_queries())
    return int(admin)

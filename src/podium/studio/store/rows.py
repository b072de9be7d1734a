"""Typed rows of the tables, and how to fetch them.

A row has its table's columns in order, so that ``select(Project.__table__)`` fills a `ProjectRow`.
Rows are plain tuples: unlike ORM objects they need no session, and cost no more than the driver's
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.sql import Executable

from podium.studio.json_types import JsonObject

AnyRow = TypeVar("AnyRow")


def fetch_all(
    connection: Connection, statement: Executable, row_type: Callable[..., AnyRow]
) -> list[AnyRow]:
    """All rows of a statement, which must select the fields of `row_type` in order."""
    return [row_type(*row) for row in connection.execute(statement)]


def fetch_one(
    connection: Connection,
    statement: Executable,
    row_type: Callable[..., AnyRow],
    **values: object,
) -> AnyRow | None:
    """The only row of a statement, or None; `values` are those of its `bindparam`s."""
    row = connection.execute(statement, values).one_or_none()
    return None if row is None else row_type(*row)


class ProjectRow(NamedTuple):
    """A row of `podium.studio.store.tables.Project`."""

    id: int
    name: str
    mode: str
    k: int
    algorithm: str
    seed: int
    budget: int | None
    overlap_share: float
    overlap_assessors: int
    assigned_only: bool
    guidelines: str
    lease_seconds: float
    repeat_rate: float
    gold_rate: float
    paused: bool
    created_at: float
    incarnation: int
    archived: bool
    display: list[JsonObject]
    scale: list[JsonObject]
    questions: list[JsonObject]


class ProjectQueryRow(NamedTuple):
    """A row of `podium.studio.store.tables.ProjectQuery`."""

    id: int
    project_id: int
    name: str
    text: str
    description: str
    ordered: bool
    entries: int
    free: int
    lease_expiry: float | None
    available: bool
    changed: int
    judgments: int
    done: bool
    expected_left: float
    withdrawn: bool


class LeaseRow(NamedTuple):
    """A row of `podium.studio.store.tables.Lease`."""

    token: UUID
    query_id: int
    user_id: int
    tab: str
    left: int
    right: int
    purpose: str
    granted_at: float
    expires_at: float
    released: bool
    renewed: bool
    shared: bool
    ahead: bool


class JobRow(NamedTuple):
    """A row of `podium.studio.store.tables.Job`."""

    id: int
    project_id: int
    user_id: int
    kind: str
    parameters: JsonObject
    state: str
    progress: float
    file: str | None
    error: str | None
    created_at: float
    alive_at: float
    worker: str | None
    attempts: int
    result: JsonObject


class UserRow(NamedTuple):
    """A row of `podium.studio.store.tables.User`."""

    id: int
    email: str
    email_verified: bool
    name: str
    password: str | None
    subject: str | None
    language: str
    is_admin: bool
    disabled: bool
    created_at: float


class InvitationRow(NamedTuple):
    """A row of `podium.studio.store.tables.Invitation`."""

    id: int
    project_id: int
    role: str
    key: str
    uses_left: int
    expires_at: float
    email: str | None


class ReportRow(NamedTuple):
    """A row of `podium.studio.store.tables.Report`."""

    project_id: int
    kind: str
    content: JsonObject
    entries: int
    made_at: float

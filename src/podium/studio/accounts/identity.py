"""The signed-in person, their membership of a project, and the audit log of what they change."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import Connection, insert

from podium.studio.errors import RefusedError
from podium.studio.store.enums import Role
from podium.studio.store.rows import ProjectRow
from podium.studio.store.tables import AuditRecord

_RANK = {Role.ASSESSOR: 0, Role.MANAGER: 1, Role.OWNER: 2}


@dataclass(frozen=True)
class Person:
    """Someone who signed in.

    Attributes:
        id: The account's number.
        name: What they are called.
        email: Their address.
        is_admin: Whether they administer the server: its projects and accounts.
        csrf: Their CSRF token; empty for programs.
        language: The language of their pages; empty for the one that their browser asks for.
    """

    id: int
    name: str
    email: str
    is_admin: bool
    csrf: str = ""
    language: str = ""


@dataclass(frozen=True)
class Member:
    """A person in one of their projects.

    Attributes:
        person: The person.
        role: Their role in the project.
        project: The project's row.
    """

    person: Person
    role: Role
    project: ProjectRow

    def may(self, role: Role) -> bool:
        """Whether their role includes the given one."""
        return _RANK[self.role] >= _RANK[role]


def check_not_archived(project: ProjectRow) -> None:
    """Refuse to change an archived project."""
    if project.archived:
        raise RefusedError(409, "The project is archived: restore it first.")


def record(
    connection: Connection,
    user_id: int | None,
    project_id: int | None,
    action: str,
    **details: object,
) -> None:
    """Record an action in the audit log, in the transaction that performs it."""
    connection.execute(
        insert(AuditRecord).values(
            at=time.time(),
            user_id=user_id,
            project_id=project_id,
            action=action,
            details=details,
        )
    )

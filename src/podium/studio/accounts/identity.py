"""Who is asking: someone who signed in, and someone in a project of theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.studio.store.enums import Role

_RANK = {Role.ASSESSOR: 0, Role.MANAGER: 1, Role.OWNER: 2}


@dataclass(frozen=True)
class Person:
    """Someone who signed in.

    Attributes:
        id: The account's number.
        name: What they are called.
        email: Their address.
        is_admin: Whether they run the server: make projects, see all of them, change accounts.
        csrf: The word that their forms repeat; empty for programs.
    """

    id: int
    name: str
    email: str
    is_admin: bool
    csrf: str = ""


@dataclass(frozen=True)
class Member:
    """Someone in a project of theirs.

    Attributes:
        person: Who.
        role: What they are there.
        project: The project's row.
    """

    person: Person
    role: Role
    project: Any

    def may(self, role: Role) -> bool:
        """Whether they are at least this."""
        return _RANK[self.role] >= _RANK[role]

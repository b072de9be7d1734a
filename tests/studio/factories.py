"""People and projects for tests."""

from __future__ import annotations

from sqlalchemy import Engine, insert

from podium.data import Candidate, CandidateList
from podium.studio.accounts.service import add_user
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Role
from podium.studio.store.tables import Membership

PASSWORD = "correct horse battery"


def make_people(engine: Engine, count: int, *, admin: bool = False) -> list[int]:
    """Accounts without passwords, which take long to hash."""

    def work(connection):
        return [
            add_user(connection, f"p{n}@example.org", f"Person {n}", None, admin=admin)
            for n in range(count)
        ]

    return in_transaction(engine, work)


def make_query(name: str, items: int) -> CandidateList:
    """A query whose documents are best first by their names: d00 is better than d01."""
    candidates = tuple(
        Candidate(f"d{n:02}", title=f"Title {n}", text=f"Text of {n} for {name}")
        for n in range(items)
    )
    return CandidateList(name, f"the words of {name}", candidates, "What it means")


def make_project(
    engine: Engine, people: list[int], *, queries: int = 2, items: int = 6, **settings
) -> int:
    """A project that the first owns and the others judge in."""

    def work(connection):
        project_id = create_project(
            connection, people[0], ProjectSettings(**{"name": "Test", "k": 3, **settings})
        )
        for person in people[1:]:
            connection.execute(
                insert(Membership).values(
                    project_id=project_id, user_id=person, role=Role.ASSESSOR.value
                )
            )
        project = project_row(connection, project_id)
        names = [f"q{n}" for n in range(queries)]
        rankings = {
            name: {
                "old": [f"d{n:02}" for n in reversed(range(items))],
                "new": [f"d{n:02}" for n in range(items)],
            }
            for name in names
        }
        add_queries(
            connection,
            project,
            [make_query(name, items) for name in names],
            rankings if project.mode == "rankings" else None,
        )
        return project_id

    return in_transaction(engine, work)


NESTED = "<p>" + "".join(f"<b title={n}>" for n in range(2500)) + "<p>x" * 2500

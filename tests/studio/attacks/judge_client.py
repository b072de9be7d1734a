"""Someone who judges over HTTP, as a page does, and what the database has of it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx2
from sqlalchemy import select, update

from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Lease, LogEntry, ProjectQuery


class JudgeClient:
    """A person's program; every call names the tab it is from."""

    def __init__(self, client: httpx2.Client, project: int) -> None:
        self.client = client
        self.path = f"/api/v1/projects/{project}"

    def post(self, what: str, **body: Any) -> httpx2.Response:
        return self.client.post(f"{self.path}/{what}", json=body)

    def next(self, tab: str = "t", *, renews: bool = True) -> dict[str, Any]:
        answer = self.post("next", tab=tab, renews=renews)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def answer(self, task: dict[str, Any], choice: str | None = None, tab: str = "t", **more):
        given = {"token": task["token"], "choice": choice or best(task), "seconds": 1, "tab": tab}
        answer = self.post("answers", **given, renews=True, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def undo(self, tab: str = "t") -> dict[str, Any]:
        answer = self.post("undo", token=str(uuid4()), tab=tab)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def judge_all(self, tab: str = "t") -> tuple[int, dict[str, Any]]:
        """Judge until there is no task; how many answers that took, and what was said then."""
        found, count = self.next(tab), 0
        while found["state"] == "task":
            found, count = self.answer(found["task"], tab=tab)["next"], count + 1
        return count, found


def best(task: dict[str, Any]) -> str:
    """Documents are better the lower their position; there is something to say of a single one."""
    positions = [side["documents"][0]["reference"] for side in task["sides"]]
    if len(positions) == 1:
        return "good"
    return "left" if positions[0] < positions[1] else "right"


def pair(task: dict[str, Any]) -> tuple[int, int, int]:
    one, other = sorted(side["documents"][0]["reference"] for side in task["sides"])
    return task["query_id"], one, other


def let_leases_end(engine) -> None:
    """As if the time of all leases had passed."""

    def work(connection):
        # Queries first, as the server locks them: no two meet in a deadlock.
        connection.execute(
            update(ProjectQuery)
            .where(ProjectQuery.lease_expiry.is_not(None))
            .values(lease_expiry=1.0)
        )
        connection.execute(update(Lease).values(expires_at=1.0))

    in_transaction(engine, work)


def log(engine) -> list[Any]:
    rows = select(LogEntry.__table__).order_by(LogEntry.id)
    return reading(engine, lambda c: list(c.execute(rows)))

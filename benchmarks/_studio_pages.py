"""How long a manager waits for pages, figures and exports of a large project."""

from __future__ import annotations

import statistics
import time

import httpx2
from sqlalchemy import Connection, select, text

from benchmarks._studio_server import Server, create_data, running
from podium.studio.judging.service import Answer, JudgingService
from podium.studio.judging.unit_of_work import LeasedTask, LeaseHolder, UnitOfWork
from podium.studio.projects.service import project_row
from podium.studio.settings import Settings
from podium.studio.store.database import connect, in_transaction, reading
from podium.studio.store.tables import (
    JudgmentCount,
    LogEntry,
    ProjectQuery,
    QueryCandidate,
)
from tests.ports import free_port

_PEOPLE = 10
_PAGES = ("dashboard", "queries", "people", "quality", "assignment", "export", "audit", "settings")
_EXPORTS = (("log", "jsonl"), ("log", "csv"), ("preferences", "pairs"), ("labels", "qrels"))


def fill_project(url: str, queries: int, documents: int, judgments: int) -> tuple[int, str]:
    """Make a project in which every query is judged alike; the project, and its owner's token.

    The first query is judged by the service, and the others are copies with people rotated.

    Args:
        url: An empty database on PostgreSQL.
        queries: How many queries.
        documents: How many documents each has.
        judgments: How many judgments each has at most.
    """
    project, tokens = create_data(
        url, people=_PEOPLE, queries=1, items=documents, k=10, overlap_share=0.3
    )
    engine = connect(Settings(database=url))
    row = reading(engine, lambda c: project_row(c, project))
    service = JudgingService(engine)
    for number in range(judgments):
        holder = LeaseHolder(1 + number % _PEOPLE, "tab")

        def work(unit: UnitOfWork, holder: LeaseHolder = holder) -> None:
            assessor = service.assessor(unit, row, holder)
            lease = assessor.next()
            if isinstance(lease, LeasedTask):
                better = "left" if lease.task.left < lease.task.right else "right"
                assessor.answer(lease.token, Answer(better, 5.0))

        service.transact(work)
    in_transaction(engine, lambda c: _copy(c, project, queries - 1))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    engine.dispose()
    return project, tokens[0]


def seconds_to_wait(url: str, project: int, token: str, rounds: int) -> dict[str, float]:
    """The median seconds of pages, and those of the first figures and of each export.

    Args:
        url: The database of `fill_project`.
        project: The project.
        token: The owner's API token.
        rounds: How often each page is opened.
    """
    server = Server(url, free_port(), workers=1, pool=4, job_seconds="3600")
    took: dict[str, float] = {}
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{server.port}"
    with (
        running([server]),
        httpx2.Client(base_url=address, headers=headers, timeout=600) as client,
    ):
        base = f"/projects/{project}"
        begun = time.perf_counter()
        while client.get(f"/api/v1{base}/report").raise_for_status().json()["made_at"] is None:
            time.sleep(0.1)
        took["first figures"] = time.perf_counter() - begun
        for page in _PAGES:
            client.get(f"{base}/{page}").raise_for_status()
            seconds = []
            for _ in range(rounds):
                begun = time.perf_counter()
                client.get(f"{base}/{page}").raise_for_status()
                seconds.append(time.perf_counter() - begun)
            took[page] = statistics.median(seconds)
        for content, form in _EXPORTS:
            begun = time.perf_counter()
            sent = {"content": content, "format": form}
            job = client.post(f"/api/v1{base}/exports", json=sent).raise_for_status().json()
            while job["state"] in ("waiting", "running"):
                time.sleep(0.05)
                job = client.get(f"/api/v1{base}/jobs/{job['id']}").raise_for_status().json()
            if job["state"] != "done":
                raise RuntimeError(job["error"])
            took[f"export {content} {form}"] = time.perf_counter() - begun
    return took


def _copy(connection: Connection, project: int, copies: int) -> None:
    """Copy the first query; its people take turns, so that all have done as much."""
    first = connection.scalar(
        select(ProjectQuery.id).where(ProjectQuery.project_id == project).limit(1)
    )
    values = {"first": first, "copies": copies, "people": _PEOPLE, "project": project}
    rotated = "1 + (user_id + n) % :people"
    for model, key, changes in (
        (ProjectQuery, "id", {"id": ":first + n", "name": "name || n"}),
        (QueryCandidate, "query_id", {"query_id": ":first + n"}),
        (
            LogEntry,
            "query_id",
            {
                "query_id": ":first + n",
                "user_id": rotated,
                "token": "gen_random_uuid()",
                "at": "at + 60 * n",
            },
        ),
        (JudgmentCount, "query_id", {"query_id": ":first + n", "user_id": rotated}),
    ):
        names = [
            column.name
            for column in model.__table__.columns
            if column.name != "id" or model is ProjectQuery
        ]
        quoted = ", ".join(f'"{name}"' for name in names)
        chosen = ", ".join(changes.get(name, f'"{name}"') for name in names)
        connection.execute(
            text(
                f"INSERT INTO {model.__table__} ({quoted}) SELECT {chosen} "
                f"FROM {model.__table__}, generate_series(1, :copies) n WHERE {key} = :first"
            ),
            values,
        )
    connection.execute(text("SELECT setval('queries_id_seq', (SELECT max(id) FROM queries))"))
    connection.execute(
        text(
            "UPDATE judges SET judgments = t.judgments, seconds = t.seconds FROM (SELECT user_id, "
            "sum(judgments) judgments, sum(seconds) seconds FROM tallies GROUP BY user_id) t "
            "WHERE judges.user_id = t.user_id AND project_id = :project"
        ),
        values,
    )

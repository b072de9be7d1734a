"""One project's import keeps no other project waiting, and ends within its time."""

from __future__ import annotations

import json

import pytest

from podium.studio.settings import Settings
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import ended, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving

HOSTILE = "<ul><li><dl><dd>" * 2200
"""A third of a second of sanitising."""


@pytest.fixture
def projects(engine):
    """Two projects, one with a judgment, and who owns both."""
    (ann,) = make_people(engine, 1)
    hostile, honest = make_project(engine, [ann], queries=0), make_project(engine, [ann])
    service, row = Judges(engine), row_of(engine, honest)
    task = service.next(row, ann, "t")
    service.answer(row, ann, task.token, "left", seconds=1.0, tab="t", more=False)
    return ann, hostile, honest


def start_import(client, project, name, documents, html):
    candidates = [{"document_id": f"d{n}", "html": html} for n in range(documents)]
    line = {"query_id": name, "query": "words", "candidates": candidates}
    answer = client.post(
        f"/api/v1/projects/{project}/imports",
        data={"source": "candidates"},
        files={"candidates": ("c.jsonl", json.dumps(line).encode())},
    )
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_an_export_does_not_wait_behind_another_projects_import(
    engine, database, tmp_path, projects
):
    ann, hostile, honest = projects
    settings = Settings(database=database, exports=tmp_path / "files")
    with serving(settings) as address, program(engine, address, ann) as client:
        slow = start_import(client, hostile, "q", 900, HOSTILE)
        path = f"/api/v1/projects/{honest}/exports"
        job = client.post(path, json={"content": "labels", "format": "csv"}).json()
        assert ended(client, honest, job)["state"] == "done"
        jobs = f"/api/v1/projects/{hostile}/jobs/{slow['id']}"
        assert client.get(jobs).json()["state"] in ("waiting", "running")
        client.post(f"{jobs}/cancel")


def test_an_import_ends_within_its_time(engine, database, tmp_path, projects):
    ann, hostile, _ = projects
    settings = Settings(database=database, exports=tmp_path / "files", job_seconds=1.0)
    with serving(settings) as address, program(engine, address, ann) as client:
        slow = start_import(client, hostile, "q", 900, HOSTILE)
        job = ended(client, hostile, slow)
        assert (job["state"], "took longer than 1 s" in job["error"]) == ("failed", True)
        assert client.get(f"/api/v1/projects/{hostile}/results").json()["queries"] == []
        assert list((tmp_path / "files").glob("*.upload")) == []

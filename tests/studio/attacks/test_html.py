"""HTML that is made to exhaust whoever parses it."""

from __future__ import annotations

import json
import time
from statistics import median

import httpx2
import nh3
import pytest
from sqlalchemy import select

from podium.errors import DataError
from podium.studio.store.database import reading
from podium.studio.store.sanitizing import MAX_CLEANED, MAX_HTML, Sanitizer, sanitized
from podium.studio.store.tables import QueryCandidate
from tests.studio.factories import NESTED, make_people, make_project
from tests.studio.http_client import ended, program

# Formatting elements that a paragraph leaves open are opened again in each paragraph after it: the
# tree grows with the square of the text.


def test_nested_tags_fail_an_import_while_the_server_answers(engine, server):
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=0)
    bad = _line("bad", ["<p>fine</p>", NESTED])
    good = _line("good", ["<p>fine</p><script>alert(1)</script>", "<b>also</b>"])
    with program(engine, server, people[0]) as client:
        begun = time.monotonic()
        job = _import(client, project, bad)
        took = []
        while job["state"] in ("waiting", "running"):
            started = time.monotonic()
            assert client.get("/healthz").status_code == 200
            took.append(time.monotonic() - started)
            time.sleep(0.02)
            job = client.get(f"/api/v1/projects/{project}/jobs/{job['id']}").json()
        assert job["state"] == "failed"
        assert "'d1' of query 'bad'" in job["error"]
        assert "HTML" in job["error"]
        # An answer that waited for the sanitiser would take most of the time.
        assert median(took) < max(1, (time.monotonic() - begun) / 4)
        job = ended(client, project, _import(client, project, good))
        assert job["state"] == "done", job
        query = client.get(f"/api/v1/projects/{project}/results").json()["queries"][0]["id"]
        kept = reading(
            engine,
            lambda c: c.scalars(
                select(QueryCandidate.html).order_by(QueryCandidate.position)
            ).all(),
        )
        assert kept == ["<p>fine</p>", "<b>also</b>"]
        reference = reading(engine, lambda c: c.scalar(select(QueryCandidate.reference)))
        page = client.get(f"/api/v1/projects/{project}/queries/{query}/documents/{reference}/page")
        assert "script" not in page.text.partition("<body>")[2]


def test_limits_of_size_and_time(monkeypatch):
    limited = Sanitizer(seconds=60)
    try:
        limited.clean("<b>x</b>")  # it has started, however long that took
        started = time.monotonic()
        with monkeypatch.context() as changed:
            changed.setattr(limited, "_seconds", 0.3)
            with pytest.raises(DataError, match=r"takes longer than 0.3 seconds"):
                limited.clean(NESTED)
        assert time.monotonic() - started < 30
        # The next document finds a new child process.
        assert limited.clean("<b>x</b>") == "<b>x</b>"
    finally:
        limited.close()
    patient = Sanitizer(seconds=60)  # memory runs out first, however slow the machine is
    try:
        with pytest.raises(DataError, match="too much memory"):
            patient.clean(NESTED)
    finally:
        patient.close()
    with pytest.raises(DataError, match=f"longer than {MAX_HTML >> 10} KiB"):
        sanitized("ä" * (MAX_HTML // 2 + 1))
    assert sanitized("a" * MAX_HTML) == "a" * MAX_HTML
    with pytest.raises(DataError, match=f"more than {MAX_CLEANED >> 10} KiB"):
        sanitized("&" * (MAX_HTML - 1))  # each becomes five characters


@pytest.mark.parametrize(
    "markup",
    [
        '<p onclick="x()">Hi<script>alert(1)</script></p>',
        '<a href="javascript:x()">a</a><a href="https://e.org">b</a>',
        "<table><tr><td>ä €</table>",
    ],
)
def test_the_child_process_sanitises_as_the_library_does(markup):
    assert sanitized(markup) == nh3.clean(markup, url_schemes={"http", "https", "mailto"})


def _line(query: str, markups: list[str]) -> bytes:
    candidates = [{"document_id": f"d{n}", "html": html} for n, html in enumerate(markups)]
    return json.dumps({"query_id": query, "query": query, "candidates": candidates}).encode()


def _import(client: httpx2.Client, project: int, content: bytes) -> dict:
    sent = client.post(
        f"/api/v1/projects/{project}/imports",
        data={"source": "candidates"},
        files={"candidates": ("c.jsonl", content)},
    )
    assert sent.status_code == 202, sent.text
    return sent.json()

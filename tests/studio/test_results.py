"""Pages and API of results: the list of queries, one query, one person, and the buttons on them."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import func, insert, select

from podium.studio.accounts.service import add_user
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.reporting.query_list import PAGE, QueryFilter, list_queries
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry, ProjectQuery
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, ended, program, row_of
from tests.studio.judging_helpers import Judges, make_report, queries_of, say
from tests.studio.postgres import wait_until
from tests.studio.server import serving


def names(page):
    return [row.name for row in page.rows]


@pytest.fixture
def listed(engine):
    """q0: Ann and Bob agree; q1: they differ, and a loop; q2: skipped; q3 and q4: nothing."""
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=5, items=4, k=3, overlap_share=1.0, overlap_assessors=2
    )
    first, second, third, *_ = (row.id for row in queries_of(engine, project))
    say(engine, first, ann, (0, 1, 1))
    say(engine, first, bob, (0, 1, 1))
    for who in (ann, bob):
        say(engine, second, who, (0, 1, 1), (1, 2, 1), (2, 0, 1))
    say(engine, second, ann, (0, 3, 1))
    say(engine, second, bob, (0, 3, -1))
    service = Judges(engine)
    row = row_of(engine, project)
    task = service.next(row, bob, "t")
    assert task.query.id == first
    service.answer(row, bob, task.token, "skip", seconds=1, tab="t", reason="no idea", more=False)
    make_report(engine, project, ann)
    return project, ann, bob, first, second, third


def chosen(engine, project, **values):
    return reading(engine, lambda c: list_queries(c, project, QueryFilter(**values)))


def test_queries_are_filtered_sorted_and_searched(engine, listed):
    project, _, bob, *_ = listed
    assert names(chosen(engine, project)) == ["q0", "q1", "q2", "q3", "q4"]
    assert names(chosen(engine, project, state="skips")) == ["q0"]
    assert names(chosen(engine, project, state="contradictions")) == ["q1"]
    assert names(chosen(engine, project, state="disagreement")) == ["q1"]
    assert names(chosen(engine, project, state="withdrawn")) == []
    assert names(chosen(engine, project, search="WORDS of q3")) == ["q3"]
    assert names(chosen(engine, project, search="%")) == []
    assert names(chosen(engine, project, search="Q4")) == ["q4"]
    assert names(chosen(engine, project, sort="name", descending=True))[0] == "q4"
    # Those without agreement are last, whatever the direction.
    assert names(chosen(engine, project, sort="agreement"))[:2] == ["q1", "q0"]
    assert names(chosen(engine, project, sort="agreement", descending=True))[:2] == ["q0", "q1"]
    page = chosen(engine, project, person=bob)
    assert names(page) == []  # `say` counts nobody's judgments


def test_the_figures_of_a_listed_query(engine, listed):
    project, *_ = listed
    first, second, *_ = chosen(engine, project).rows
    assert (first.agreement, first.contradictions, first.skips) == (1.0, 0, 1)
    assert second.agreement == 3 / 4
    assert second.contradictions == 1


def test_pages_of_very_many_queries(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2)
    (row,) = queries_of(engine, project)
    copies = [
        {**row._asdict(), "id": None, "name": f"c{number:05}", "judgments": number % 7}
        for number in range(2 * PAGE)
    ]
    for copy in copies:
        del copy["id"]
    in_transaction(engine, lambda c: c.execute(insert(ProjectQuery), copies))
    page = chosen(engine, project, page=3)
    assert (page.total, page.pages, names(page)) == (2 * PAGE + 1, 3, [f"c{2 * PAGE - 1:05}"])
    top = chosen(engine, project, sort="judgments", descending=True)
    assert {row.judgments for row in top.rows} == {6, 5, 4, 3}
    assert names(top)[0] == "c00006"


one_database = pytest.mark.parametrize("database_kind", ["sqlite"])
"""What pages show does not depend on it."""


@pytest.fixture
def address(database, tmp_path):
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


def test_a_manager_looks_and_corrects_by_the_api(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=3, k=2)
    service, row = Judges(engine), row_of(engine, project)
    given = service.next(row, bob, "t")
    while isinstance(given, LeasedTask):
        choice = "left" if given.task.left < given.task.right else "right"
        _, given = service.answer(
            row, bob, given.token, choice, seconds=2, tab="t", reason="because <b>"
        )
    query = queries_of(engine, project)[0].id
    path = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        page = client.get(f"{path}/results", params={"sort": "judgments"}).json()
        assert (page["total"], page["pages"]) == (2, 1)
        assert page["queries"][0]["state"] == "done"
        assert page["queries"][0]["people"][0]["name"] == "Person 1"
        assert client.get(f"{path}/results", params={"sort": "password"}).status_code == 422

        results = client.get(f"{path}/queries/{query}/results").json()
        documents = results["documents"]
        ranked = [(each["rank"], each["document_id"], each["label"]) for each in documents]
        assert ranked == [(1, "d00", 2.0), (2, "d01", 1.0), (None, "d02", 0.0)]
        first, second, last = documents
        assert 0.5 < first["ahead"] < 1
        assert second["ahead"] is None
        assert first["in_top"] > second["in_top"] > 0.5
        assert last["in_top"] is None

        log = client.get(f"{path}/queries/{query}/log").json()
        assert {entry["reason"] for entry in log} == {"because <b>"}
        assert {entry["relation"] for entry in log} <= {"better than", "worse than"}
        assert log[0]["undone"] is None
        where = f"{path}/queries/{query}/log/{log[-1]['position']}"
        after = client.post(f"{where}/discard", json={"reason": "typo"}).json()
        assert (after["complete"], after["judgments"]) == (False, len(log) - 1)
        undone = client.get(f"{path}/queries/{query}/log").json()[-1]["undone"]
        assert (undone["manager"], undone["reason"]) == ("Person 0", "typo")
        after = client.post(f"{where}/restore").json()
        assert (after["complete"], after["judgments"]) == (True, len(log))
        assert client.post(f"{where}/restore").status_code == 409
        assert client.post(f"{path}/queries/{query}/log/99/discard", json={}).status_code == 404

        after = client.post(f"{path}/queries/{query}/withdraw", json={"document": 2}).json()
        assert [each["withdrawn"] for each in after["documents"]] == [False, False, True]
        client.post(f"{path}/queries/{query}/readmit", json={"document": 2})
        assert client.post(f"{path}/queries/{query}/withdraw", json={}).json()["withdrawn"]
        page = client.get(f"{path}/results", params={"state": "withdrawn"}).json()
        assert [each["id"] for each in page["queries"]] == [query]
        assert not client.post(f"{path}/queries/{query}/readmit", json={}).json()["withdrawn"]

        person = client.get(f"{path}/people/{bob}/results").json()
        judgments = sum(each.judgments for each in queries_of(engine, project))
        assert (person["name"], person["judgments"]) == ("Person 1", judgments)
        assert len(client.get(f"{path}/people/{bob}/log").json()) == judgments
        job = ended(client, project, client.post(f"{path}/people/{bob}/discard", json={}).json())
        assert job["result"] == {"judgments": judgments, "queries": 2}
        assert [each.judgments for each in queries_of(engine, project)] == [0, 0]
        job = ended(client, project, client.post(f"{path}/discards/{job['id']}/restore").json())
        assert job["result"] == {"judgments": judgments, "queries": 2}
        assert client.get(f"{path}/people/999/results").status_code == 404


@one_database
@pytest.mark.parametrize("mode", ["pairs", "grades", "rankings"])
def test_the_pages_and_their_buttons(engine, address, mode):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann <i>", PASSWORD))
    (bob,) = make_people(engine, 1)
    project = make_project(engine, [ann, bob], queries=1, items=3, k=2, mode=mode)
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, bob, "t")
    choice = {"pairs": "left", "grades": "good", "rankings": "left-much"}[mode]
    service.answer(
        row, bob, task.token, choice, seconds=2, tab="t", reason="a <script>", more=False
    )
    task = service.next(row, bob, "t")
    if isinstance(task, LeasedTask):
        service.answer(
            row, bob, task.token, "skip", seconds=2, tab="t", reason="cannot read", more=False
        )
    query = queries_of(engine, project)[0].id
    base = f"/projects/{project}"
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        page = browser.get(f"{base}/queries").text
        assert "the words of q0" in page
        assert f'href="{base}/people/{bob}">Person 0</a> (1)' in page
        page = browser.get(f"{base}/queries/{query}").text
        assert "a &lt;script&gt;" in page
        assert "<script>a" not in page
        assert ("cannot read" in page) == (mode != "rankings")
        words = {"pairs": "better than", "grades": "good", "rankings": "much better than"}
        assert f"<em>{words[mode]}</em>" in page
        reference = re.search(rf"{base}/queries/{query}/documents/(\d+)", page)
        assert "Text of" in browser.get(reference.group(0)).text
        log = f"{base}/queries/{query}/log/0"
        gone = browser.submit(f"{log}/discard", {"reason": "wrong"})
        assert (gone.status_code, gone.headers["location"]) == (303, f"{base}/queries/{query}")
        page = browser.get(f"{base}/queries/{query}").text
        assert "by Ann &lt;i&gt;" in page
        assert queries_of(engine, project)[0].judgments == 0
        assert browser.submit(f"{log}/restore").status_code == 303
        assert queries_of(engine, project)[0].judgments == 1
        away = f"{base}/queries/{query}/withdraw"
        assert browser.submit(away, {"document": "1"}).status_code == 303
        assert browser.get(f"{base}/queries/{query}").text.count(">withdrawn<") == 1
        assert browser.submit(away, {"document": "x"}).status_code == 422
        page = browser.get(f"{base}/people/{bob}").text
        assert "Person 0" in page
        assert "cannot read" in page or mode == "rankings"
        since = {"since": "2001-01-01T00:00", "reason": "left"}
        assert "Person 0 would be asked the same again" in page
        assert browser.submit(f"{base}/people/{bob}/discard", since).status_code == 303
        poll = {"hx-request": "true"}
        wait_until(
            lambda: "hx-refresh" in browser.get(f"{base}/people/{bob}", headers=poll).headers
        )
        assert 'hx-trigger="every 2s"' not in browser.get(f"{base}/people/{bob}").text
        assert browser.submit(f"{base}/people/{bob}/discard", {"since": "soon"}).status_code == 422


@one_database
def test_entries_come_a_page_at_a_time(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=20)
    query = queries_of(engine, project)[0].id
    pairs = [(left, right, 1) for left in range(20) for right in range(left)]
    say(engine, query, bob, *pairs[:150])
    path = f"/api/v1/projects/{project}/queries/{query}/log"
    with program(engine, address, ann) as client:
        first = client.get(path).json()
        rest = client.get(path, params={"before": first[-1]["id"]}).json()
    assert [entry["position"] for entry in first + rest] == list(range(149, -1, -1))
    assert reading(engine, lambda c: c.scalar(select(func.count()).select_from(LogEntry))) == 150

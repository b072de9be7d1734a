"""Projects over REST and by pages: making, changing, pausing, deleting."""

from __future__ import annotations

import re

import pytest

from podium.errors import DataError
from podium.studio.accounts.crowd import worker_account
from podium.studio.accounts.service import accept, add_user, invite
from podium.studio.errors import RefusedError
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.projects.changes import change_project
from podium.studio.projects.progress import ProjectProgress
from podium.studio.projects.service import add_queries, check_unchanged
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import ProjectQuery
from tests.studio.factories import PASSWORD, make_people, make_project, make_query
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving


@pytest.fixture
def address(database, tmp_path):
    with serving(Settings(database=database, exports=tmp_path / "files")) as found:
        yield found


def judge_once(engine, project, user):
    service = Judges(engine)
    given = service.next(row_of(engine, project), user, "t")
    assert isinstance(given, LeasedTask)
    service.answer(row_of(engine, project), user, given.token, "left", seconds=1, tab="t")


def test_a_project_from_beginning_to_end_over_rest(engine, address):
    (ann,) = make_people(engine, 1, admin=True)
    with program(engine, address, ann) as client:
        made = client.post("/api/v1/projects", json={"name": "Shoes", "k": 5})
        assert made.status_code == 201
        number = made.json()["id"]
        assert made.json()["role"] == "owner"
        assert [each["id"] for each in client.get("/api/v1/projects").json()] == [number]
        path = f"/api/v1/projects/{number}"
        changed = client.patch(path, json={"k": 3, "guidelines": "Be *kind*.", "paused": True})
        assert changed.status_code == 200
        assert changed.json()["settings"]["k"] == 3
        assert changed.json()["paused"] is True
        assert client.get(path).json()["settings"]["guidelines"] == "Be *kind*."
        assert client.patch(path, json={"algorithm": "magic"}).status_code == 422
        assert client.request("DELETE", path, json={"name": "Boots"}).status_code == 409
        assert client.request("DELETE", path, json={"name": "Shoes"}).status_code == 204
        assert client.get(path).status_code == 404


def test_who_may_do_what(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob])
    path = f"/api/v1/projects/{project}"
    with program(engine, address, bob) as client:
        assert client.post("/api/v1/projects", json={"name": "Mine"}).status_code == 403
        assert client.patch(path, json={"paused": True}).status_code == 403
        assert client.get(f"{path}/results").status_code == 403
        assert client.request("DELETE", path, json={"name": "Test"}).status_code == 403
        assert client.get(path).json()["role"] == "assessor"
        assert client.get("/api/v1/projects/99999").status_code == 404


def test_how_pairs_are_chosen_is_fixed_once_there_are_judgments(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=6, k=3)
    path = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        before = client.get(f"{path}/results").json()["queries"]
        assert client.patch(path, json={"k": 1, "algorithm": "heap"}).status_code == 200
        after = client.get(f"{path}/results").json()["queries"]
        assert [each["query_id"] for each in after] == ["q0", "q1"]
        assert after[0]["expected_left"] < before[0]["expected_left"]
        assert client.patch(path, json={"mode": "grades"}).status_code == 409
        judge_once(engine, project, ann)
        assert client.patch(path, json={"k": 2}).status_code == 409
        assert client.patch(path, json={"k": 1, "repeat_rate": 0.1}).status_code == 200


def test_an_import_that_was_begun_before_the_project_was_archived_is_refused(engine):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    begun = row_of(engine, project)
    in_transaction(engine, lambda c: check_unchanged(c, begun))
    in_transaction(engine, lambda c: change_project(c, ann, project, {"archived": True}))
    with pytest.raises(DataError, match="settings were changed during the import"):
        in_transaction(engine, lambda c: check_unchanged(c, begun))


def test_changed_settings_count_all_rankings(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=0, mode="rankings", overlap_share=1.0)
    items = ["d00", "d01", "d02"]
    rankings = {"q": {"a": items, "b": items[::-1], "c": [items[1], items[0], items[2]]}}
    row = row_of(engine, project)
    in_transaction(engine, lambda c: add_queries(c, row, [make_query("q", 3)], rankings))
    with program(engine, address, ann) as client:
        path = f"/api/v1/projects/{project}"
        for people in (2, 3):
            change = {"overlap_assessors": people}
            assert client.patch(path, json=change).status_code == 200
            (query,) = client.get(f"{path}/results").json()["queries"]
            assert query["expected_left"] == 3 * people


def test_a_change_reaches_a_process_that_has_handed_out_before(engine):
    from podium.studio.projects.changes import change_project

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6, k=3)
    service = Judges(engine)
    service.next(row_of(engine, project), ann, "t")
    in_transaction(engine, lambda c: change_project(c, ann, project, {"k": 1}))
    given = service.next(row_of(engine, project), ann, "t")
    while isinstance(given, LeasedTask):
        choice = "left" if given.task.left < given.task.right else "right"
        _, given = service.answer(
            row_of(engine, project), ann, given.token, choice, seconds=1, tab="t"
        )
    entries = reading(
        engine,
        lambda c: c.scalar(ProjectQuery.__table__.select().with_only_columns(ProjectQuery.entries)),
    )
    assert entries == 5  # the best of six takes five judgments


def test_the_pages_of_a_project(engine, address):
    in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD, admin=True))
    with Browser(address) as browser:
        browser.sign_in("ann@example.org")
        assert "No projects yet" in browser.get("/").text
        assert browser.get("/projects/new").status_code == 200
        wrong = browser.submit("/projects", {"name": "Shoes", "k": "0"})
        assert wrong.status_code == 422
        assert "k: Input should be greater" in wrong.text
        made = browser.submit("/projects", {"name": "Shoes & <b>boots</b>", "k": "4", "budget": ""})
        assert made.status_code == 303
        home = made.headers["location"].removesuffix("/import")
        assert "Shoes &amp; &lt;b&gt;boots" in browser.get("/").text
        page = browser.get(f"{home}/judge").text
        assert "This project has no queries." in page
        assert "All done" not in page
        settings = browser.get(f"{home}/settings").text
        assert 'value="4"' in settings
        effort = {"k": "6", "effort": "balanced"}
        chosen = browser.submit(f"{home}/settings/effort", effort | {"next": "yes"})
        assert chosen.headers["location"] == f"{home}/dashboard"
        chosen = browser.submit(f"{home}/settings/effort", effort | {"k": "4"})
        assert chosen.headers["location"] == f"{home}/settings"
        settings = browser.get(f"{home}/settings").text
        assert re.search(r'value="balanced" required checked', settings)
        assert "Steps of the start" in settings
        assert "Steps of the start" in browser.get(f"{home}/settings/screen").text
        wrong = browser.submit(f"{home}/settings/effort", effort | {"k": "0"})
        assert (wrong.status_code, "k: Input should be greater" in wrong.text) == (422, True)
        assert browser.get(f"{home}/settings/costs").status_code == 200
        answer = browser.submit(
            f"{home}/settings", {"name": "Shoes", "k": "4", "guidelines": "# Look\n<script>x"}
        )
        assert answer.status_code == 303
        assert browser.submit(f"{home}/settings", {"paused": "true"}).status_code == 303
        assert "Paused: nobody" in browser.get(f"{home}/settings").text
        assert browser.submit(f"{home}/settings", {"paused": "false"}).status_code == 303
        assert browser.submit(f"{home}/delete", {"name": "no"}).status_code == 409
        assert browser.post(f"{home}/delete", data={"name": "Shoes"}).status_code == 403  # no csrf
        assert browser.submit(f"{home}/delete", {"name": "Shoes"}).status_code == 303
        assert browser.get(f"{home}/settings").status_code == 404


def test_an_assessor_sees_the_guidelines_and_no_managing(engine, address):
    ann, _ = make_people(engine, 2)
    bob = in_transaction(engine, lambda c: add_user(c, "bob@example.org", "Bob", PASSWORD))
    project = make_project(
        engine, [ann, bob], guidelines="Prefer *fresh* pages. <script>x</script>"
    )
    with Browser(address) as browser:
        browser.sign_in("bob@example.org")
        page = browser.get(f"/projects/{project}").text
        assert "Prefer <em>fresh</em> pages" in page
        assert "<script>x" not in page
        assert f'href="/projects/{project}/judge"' in page
        assert "settings" not in page
        assert browser.get(f"/projects/{project}/settings").status_code == 403
        assert browser.get("/projects/new").status_code == 403


def test_the_share_of_a_project():
    assert ProjectProgress(0, 0, 0, 0.0).share == 0
    assert ProjectProgress(3, 3, 10, 0.0).share == 1


def test_nothing_is_added_to_an_archived_project(engine, address):
    ann, bob, cem = make_people(engine, 3)
    project = make_project(engine, [ann, bob])
    path = f"/api/v1/projects/{project}"
    with program(engine, address, ann) as client:
        link = client.post(f"{path}/crowd-links", json={"code": "C"}).json()["link"]
        secret = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR))
        (row,) = client.get(f"{path}/crowd-links").json()
        assert client.patch(path, json={"archived": True}).status_code == 200
        for where, body in {
            "crowd-links": {"code": "C"},
            "invitations": {"role": "assessor"},
            "webhooks": {"url": "https://example.org/hook"},
        }.items():
            refused = client.post(f"{path}/{where}", json=body)
            assert (where, refused.status_code) == (where, 409)
        assert client.patch(f"{path}/members/{bob}", json={"role": "manager"}).status_code == 409
        for enter in (
            lambda c: worker_account(c, link.rsplit("/", 1)[1], "5f1e"),
            lambda c: accept(c, secret, cem),
        ):
            with pytest.raises(RefusedError):
                in_transaction(engine, enter)
        # What is there can be taken away.
        assert client.delete(f"{path}/members/{bob}").status_code == 204
        assert client.delete(f"{path}/crowd-links/{row['id']}").status_code == 204
        assert len(client.get(f"{path}/members").json()) == 1

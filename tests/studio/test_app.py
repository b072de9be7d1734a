"""The application over HTTP: signing in, judging, refusals."""

from __future__ import annotations

import re
import time

import httpx2
import pytest
from sqlalchemy import insert, update

from podium.studio.accounts.service import add_user, invite
from podium.studio.jobs.worker import Worker
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Role
from podium.studio.store.tables import Membership, SignInFailure
from tests.studio.factories import PASSWORD, make_people, make_project
from tests.studio.http_client import Browser, bearer
from tests.studio.server import serving


@pytest.fixture
def address(database):
    with serving(Settings(database=database)) as found:
        yield found


@pytest.fixture
def browser(address):
    with Browser(address) as client:
        yield client


def test_a_person_signs_in_and_judges(engine, browser):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    project = make_project(engine, [ann], queries=1, items=3, k=1)
    answer = browser.sign_in("Ann@example.org")
    assert answer.status_code == 303
    assert "HttpOnly" in answer.headers["set-cookie"]
    refused = browser.post(f"/api/v1/projects/{project}/next", json={"tab": "t"})
    assert refused.status_code == 403  # the word that our pages know is missing
    page = browser.get("/nowhere")
    assert page.status_code == 404


def test_programs_judge_with_a_token(engine, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=3, k=1)
    with httpx2.Client(base_url=address, headers=bearer(engine, ann), timeout=60) as client:
        found = client.post(f"/api/v1/projects/{project}/next", json={"tab": "t"}).json()
        count = 0
        while found["state"] == "task":
            task = found["task"]
            shown = [side["documents"][0] for side in task["sides"]]
            positions = [int(each["title"].removeprefix("Title ")) for each in shown]
            text = client.get(
                f"/api/v1/projects/{project}/queries/{task['query_id']}/documents/{shown[0]['reference']}"
            ).json()
            assert text["terms"] == ["q0"]  # of the query's words, those that the document has
            found = client.post(
                f"/api/v1/projects/{project}/answers",
                json={
                    "token": task["token"],
                    "choice": "left" if positions[0] < positions[1] else "right",
                    "seconds": 1.5,
                    "tab": "t",
                },
            ).json()["next"]
            count += 1
        assert found["state"] == "done"
        assert count == 2
        assert "podium_judgments_total" in client.get("/metrics").text
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.get("/healthz").json() == {"status": "alive"}


def test_an_invitation_makes_an_account(engine, browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann])
    secret = in_transaction(engine, lambda c: invite(c, project, Role.ASSESSOR))
    page = browser.get(f"/join/{secret}")
    form = re.search(r'name="form" value="([^"]+)"', page.text).group(1)
    answer = browser.post(
        f"/join/{secret}",
        data={"form": form, "name": "Bob", "email": "bob@example.org", "password": PASSWORD},
    )
    assert answer.headers["location"] == f"/projects/{project}"
    assert browser.get(f"/join/{secret}").status_code == 404  # it was for one person


def test_too_many_failures_make_one_wait(engine, browser):
    in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", PASSWORD))
    codes = [browser.sign_in("ann@example.org", "wrong password").status_code for _ in range(5)]
    assert codes == [401] * 5
    # The wait has begun; it is made longer, for machines that are slower than it is.
    waiting = update(SignInFailure).where(SignInFailure.locked_until > 0)
    in_transaction(engine, lambda c: c.execute(waiting.values(locked_until=time.time() + 60)))
    assert browser.sign_in("ann@example.org").status_code == 429


@pytest.mark.usefixtures("engine")
def test_a_large_request_is_refused(database):
    settings = Settings(database=database, largest_request=2000)
    with serving(settings) as address, httpx2.Client(base_url=address, timeout=60) as client:
        assert client.post("/sign-in", content=b"x" * 3000).status_code == 413
        chunks = (b"x" * 1000 for _ in range(3))  # no length is sent ahead
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert client.post("/sign-in", content=chunks, headers=form).status_code == 413


def test_members_of_other_projects_see_nothing(engine, address):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann])
    other = make_project(engine, [bob])
    in_transaction(
        engine,
        lambda c: c.execute(
            insert(Membership).values(project_id=other, user_id=ann, role=Role.ASSESSOR.value)
        ),
    )
    with httpx2.Client(base_url=address, headers=bearer(engine, bob), timeout=60) as client:
        for path in (f"/api/v1/projects/{project}/queries/1/documents/0",):
            assert client.get(path).status_code == 404
        # The number of a query of another project does not help.
        assert client.get(f"/api/v1/projects/{other}/queries/1/documents/0").status_code == 404


@pytest.mark.usefixtures("engine")
def test_a_server_whose_worker_stopped_is_not_ready(database, monkeypatch):
    """Imports and exports would wait for ever, and nobody would know."""
    with serving(Settings(database=database)) as address:
        assert httpx2.get(f"{address}/readyz", timeout=30).json() == {"status": "ready"}
    for name in ("start", "stop"):
        monkeypatch.setattr(Worker, name, lambda _self: None)
    with serving(Settings(database=database)) as address:
        answer = httpx2.get(f"{address}/readyz", timeout=30)
        assert (answer.status_code, answer.json()) == (503, {"status": "the worker has stopped"})

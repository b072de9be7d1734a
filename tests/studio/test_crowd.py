"""Links for crowd workers: one account for each id, a share of judgments, a code at the end."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack

import pytest
from sqlalchemy import func, insert, select, update

from podium.studio.accounts.administration import anonymise, set_admin
from podium.studio.accounts.crowd import (
    links_of,
    make_link,
    note_completion,
    remove_link,
    worker_account,
)
from podium.studio.accounts.identity import Member, Person
from podium.studio.accounts.service import invite
from podium.studio.errors import RefusedError
from podium.studio.judging.crowd_work import CrowdWork, crowd_work
from podium.studio.judging.next_task import NoTask
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.enums import Role
from podium.studio.store.tables import (
    CrowdLink,
    CrowdWorker,
    Lease,
    Membership,
    ProjectQuery,
    Qualification,
)
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import Browser, program, row_of
from tests.studio.judging_helpers import Judges
from tests.studio.server import serving

DATABASES = BOTH


@pytest.fixture
def browsers():
    """Closes what is opened."""
    with ExitStack() as opened:
        yield opened


def open_link(browsers, address, link, worker, parameter="WORKER"):
    """A worker's browser, and where the link led."""
    browser = browsers.enter_context(Browser(address))
    path = link.replace(address, "")
    page = browser.get(f"{path}?{parameter}={worker}")
    form = re.search(r'name="form" value="([^"]+)"', page.text)
    sent = browser.post(path, data={"external_id": worker, "form": form[1] if form else "none"})
    return browser, sent


@pytest.fixture
def project(engine):
    return make_project(engine, make_people(engine, 1), queries=3, items=4)


def test_workers_judge_their_share_and_get_the_code(engine, database, project, browsers):
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        wanted = {"code": "C0DE-7", "parameter": "WORKER", "judgments": 2, "workers": 2}
        link = manager.post(f"{base}/crowd-links", json=wanted).json()["link"]
        first, sent = open_link(browsers, address, link, "5f1e")
        home = sent.headers["location"]
        assert (sent.status_code, home) == (303, f"/projects/{project}")
        page = first.get(home).text
        assert ("0 of 2 judged" in page, "C0DE-7" in page) == (True, False)
        headers = {"x-csrf-token": first.csrf(home)}
        given = first.post(f"{base}/next", json={"tab": "t"}, headers=headers).json()
        for _ in range(2):
            body = {"tab": "t", "token": given["task"]["token"], "choice": "left", "seconds": 1}
            given = first.post(f"{base}/answers", json=body, headers=headers).json()["next"]
        assert given is None
        again = first.post(f"{base}/next", json={"tab": "t"}, headers=headers).json()
        assert again["state"] == "yours-done"
        assert "C0DE-7" in first.get(home).text
        # The same id is the same account, and the link has two places.
        same, _ = open_link(browsers, address, link, "5f1e")
        assert "C0DE-7" in same.get(home).text
        second, _ = open_link(browsers, address, link, "a9")
        assert "0 of 2 judged" in second.get(home).text
        _, third = open_link(browsers, address, link, "b7")
        assert third.status_code == 404
        row = manager.get(f"{base}/crowd-links").json()[0]
        counts = row["workers"], row["completed"], row["workers_left"]
        assert counts == (2, 1, 0)
        # By another link of the project, the same id is the same account with another share.
        more = manager.post(f"{base}/crowd-links", json=wanted | {"code": "MORE"}).json()["link"]
        again, _ = open_link(browsers, address, more, "5f1e")
        assert "2 of 4 judged" in again.get(home).text
        # Managers know them by the id under which the platform pays them.
        names = {each["name"] for each in manager.get(f"{base}/members").json()}
        assert {"5f1e", "a9"} < names
        # They are assessors of this project, and can see no page of managers.
        assert first.get(f"/projects/{project}/people").status_code == 403
        for wrong in ("", "a b", "x" * 201, "<b>"):
            _, refused = open_link(browsers, address, link, wrong)
            assert refused.status_code in (403, 422)
        manager.delete(f"{base}/crowd-links/{row['id']}")
        _, gone = open_link(browsers, address, link, "5f1e")
        assert gone.status_code in (403, 404)
    count = select(func.count()).select_from(Membership).where(Membership.project_id == project)
    assert reading(engine, lambda c: c.scalar(count)) == 3


def test_who_was_removed_cannot_come_back_by_another_link(engine, database, project, browsers):
    base = f"/api/v1/projects/{project}"
    wanted = {"code": "C", "parameter": "WORKER", "workers": 2}
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        first, second, elsewhere = (
            manager.post(f"{base}/crowd-links", json=body).json()["link"]
            for body in (wanted, wanted, wanted | {"parameter": "OTHER"})
        )
        open_link(browsers, address, first, "5f1e")
        worker = manager.get(f"{base}/members").json()[1]["user"]
        assert manager.delete(f"{base}/members/{worker}").status_code == 204
        for link in (first, second):
            _, refused = open_link(browsers, address, link, "5f1e")
            assert refused.status_code == 403
            assert "You cannot take part in this project any more." in refused.text
        # Nor after the links by which they are known were removed.
        for row in manager.get(f"{base}/crowd-links").json()[:2]:
            assert manager.delete(f"{base}/crowd-links/{row['id']}").status_code == 204
            assert manager.delete(f"{base}/crowd-links/{row['id']}").status_code == 404
        assert len(manager.get(f"{base}/crowd-links").json()) == 1
        third = manager.post(f"{base}/crowd-links", json=wanted).json()["link"]
        _, refused = open_link(browsers, address, third, "5f1e")
        assert refused.status_code == 403
        # Nor where the link has another name for the id.
        _, refused = open_link(browsers, address, elsewhere, "5f1e", "OTHER")
        assert refused.status_code == 403


def test_who_has_judged_all_they_can_gets_the_code(engine, database, browsers):
    project = make_project(
        engine, make_people(engine, 1), queries=2, items=2, mode="grades", overlap_share=1.0
    )
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        wanted = {"code": "C0DE-7", "parameter": "WORKER", "judgments": 50, "workers": 2}
        link = manager.post(f"{base}/crowd-links", json=wanted).json()["link"]
        worker, sent = open_link(browsers, address, link, "5f1e")
        home = sent.headers["location"]
        headers = {"x-csrf-token": worker.csrf(home)}
        given = worker.post(f"{base}/next", json={"tab": "t"}, headers=headers).json()
        for judged in range(4):
            assert f"{judged} of 50 judged" in worker.get(home).text
            body = {"tab": "t", "token": given["task"]["token"], "choice": "good", "seconds": 1}
            given = worker.post(f"{base}/answers", json=body, headers=headers).json()["next"]
        # Another person grades each document, too, but this one has nothing more to judge.
        states = [
            worker.post(f"{base}/next", json={"tab": "t"}, headers=headers).json()["state"]
            for _ in range(2)
        ]
        assert states[-1] == "yours-done"
        assert "C0DE-7" in worker.get(home).text
        second, _ = open_link(browsers, address, link, "a9")
        assert "0 of 50 judged" in second.get(home).text


def test_who_skips_everything_reads_that_there_is_no_code(engine, database, browsers):
    project = make_project(engine, make_people(engine, 1), queries=1, items=2, mode="grades")
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        wanted = {"code": "C0DE-7", "parameter": "WORKER", "judgments": 50, "workers": 2}
        link = manager.post(f"{base}/crowd-links", json=wanted).json()["link"]
        for name, choice in (("5f1e", "skip"), ("a9", "good")):
            worker, sent = open_link(browsers, address, link, name)
            home = sent.headers["location"]
            headers = {"x-csrf-token": worker.csrf(home)}
            given = worker.post(f"{base}/next", json={"tab": "t"}, headers=headers).json()
            while given and given["state"] == "task":
                body = {"tab": "t", "token": given["task"]["token"], "choice": choice, "seconds": 1}
                given = worker.post(f"{base}/answers", json=body, headers=headers).json()["next"]
        assert "C0DE-7" in worker.get(home).text
        skipper, _ = open_link(browsers, address, link, "5f1e")
        page = skipper.get(home).text
        assert "you judged 0 and skipped 2" in page
        for promise in ("C0DE-7", "shown here at the end", "Start judging"):
            assert promise not in page


def workers_of(engine, link, *ids):
    return in_transaction(
        engine, lambda c: [worker_account(c, link, external_id)[0] for external_id in ids]
    )


def link_of(engine, project, *, judgments, workers, code="C"):
    owner = Member(Person(1, "", "", False), Role.OWNER, row_of(engine, project))
    return in_transaction(
        engine,
        lambda c: make_link(
            c, owner, parameter="W", code=code, judgments=judgments, workers=workers, days=1
        ),
    )


def share(engine, project, user):
    row = row_of(engine, project)
    return reading(engine, lambda c: crowd_work(c, row, user))


def test_what_was_judged_for_a_removed_link_does_not_count_for_the_next(engine):
    project = make_project(engine, make_people(engine, 1), queries=1, items=4, mode="grades")
    first = link_of(engine, project, judgments=1, workers=1)
    (worker,) = workers_of(engine, first, "5f1e")
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, worker, "t")
    service.answer(row, worker, task.token, "good", seconds=1.0, tab="t", more=False)
    assert share(engine, project, worker) == CrowdWork(1, 1, "C", "W")
    in_transaction(engine, lambda c: note_completion(c, worker))
    owner = Member(Person(1, "", "", False), Role.OWNER, row)
    (listed,) = reading(engine, lambda c: links_of(c, project))
    in_transaction(engine, lambda c: remove_link(c, owner, listed.id))
    assert share(engine, project, worker) is None
    second = link_of(engine, project, judgments=1, workers=1, code="D")
    assert workers_of(engine, second, "5f1e") == [worker]
    assert share(engine, project, worker) == CrowdWork(2, 1, None, "W")
    task = service.next(row, worker, "t")
    service.answer(row, worker, task.token, "good", seconds=1.0, tab="t", more=False)
    assert share(engine, project, worker) == CrowdWork(2, 2, "D", "W")


@pytest.mark.parametrize(("state", "code"), [("failed", None), ("passed", "C")])
def test_who_failed_the_training_gets_no_code_when_all_is_done(engine, state, code):
    project = make_project(engine, make_people(engine, 1), queries=1, items=2, mode="grades")
    link = link_of(engine, project, judgments=5, workers=2)
    one, other = workers_of(engine, link, "a", "b")
    service, row = Judges(engine), row_of(engine, project)
    for _ in range(2):
        task = service.next(row, one, "t")
        service.answer(row, one, task.token, "good", seconds=1.0, tab="t", more=False)
    trained = insert(Qualification).values(
        project_id=project, user_id=other, state=state, correct=0, total=1, at=0.0
    )
    in_transaction(engine, lambda c: c.execute(trained))
    assert share(engine, project, other).code == code


def test_tasks_that_others_hold_may_come_back(engine):
    project = make_project(engine, make_people(engine, 1), queries=1, items=2, mode="grades")
    link = link_of(engine, project, judgments=9, workers=2)
    one, other = workers_of(engine, link, "a", "b")
    service, row = Judges(engine), row_of(engine, project)
    mine, _ = service.next(row, one, "t"), service.next(row, other, "t")
    service.answer(row, one, mine.token, "good", seconds=1.0, tab="t", more=False)
    assert isinstance(service.next(row, one, "t"), NoTask)
    assert share(engine, project, one) == CrowdWork(9, 1, None, "W")
    # The other one is gone, and nobody has looked for their task yet.
    past = time.time() - 1
    lapsed = update(Lease).values(expires_at=past)
    in_transaction(engine, lambda c: c.execute(lapsed))
    expired = update(ProjectQuery).values(lease_expiry=past)
    in_transaction(engine, lambda c: c.execute(expired))
    assert share(engine, project, one) == CrowdWork(9, 1, None, "W")
    task = service.next(row, one, "t")
    service.answer(row, one, task.token, "good", seconds=1.0, tab="t", more=False)
    assert service.next(row, one, "t").why == "done"


def test_pairs_wait_as_long_as_others_may_come(engine):
    project = make_project(
        engine, make_people(engine, 1), queries=1, items=2, k=1, overlap_share=1.0
    )
    link = link_of(engine, project, judgments=9, workers=2)
    (one,) = workers_of(engine, link, "a")
    service, row = Judges(engine), row_of(engine, project)
    task = service.next(row, one, "t")
    service.answer(row, one, task.token, "left", seconds=1.0, tab="t", more=False)
    assert service.next(row, one, "t").why == "wait"
    assert share(engine, project, one) == CrowdWork(9, 1, None, "W")
    in_transaction(engine, lambda c: c.execute(update(CrowdLink).values(workers_left=0)))
    assert share(engine, project, one) == CrowdWork(9, 1, "C", "W")
    # A code that was shown stays, whatever comes.
    in_transaction(engine, lambda c: note_completion(c, one))
    in_transaction(engine, lambda c: c.execute(update(CrowdLink).values(workers_left=1)))
    assert share(engine, project, one) == CrowdWork(9, 1, "C", "W")


def test_an_anonymised_account_is_not_found_by_the_id_of_the_platform(engine, project):
    def work(connection):
        owner = Member(Person(1, "", "", False), Role.OWNER, row_of(engine, project))
        first, second = (
            make_link(
                connection, owner, parameter="WORKER", code=code, judgments=2, workers=5, days=1
            )
            for code in ("FIRST", "SECOND")
        )
        worker, _ = worker_account(connection, first, "5f1e")
        worker_account(connection, second, "5f1e")
        anonymise(connection, None, worker)
        again, _ = worker_account(connection, first, "5f1e")
        assert again != worker
        assert worker_account(connection, second, "5f1e") == (again, project)
        rows = connection.execute(select(CrowdWorker.user_id, CrowdWorker.external_id)).all()
        left = {row.external_id for row in rows if row.user_id == worker}
        assert len(rows) == 4  # they still count among those who took part
        for external_id in left:
            with pytest.raises(RefusedError, match="lacks your participant ID"):
                worker_account(connection, first, external_id)

    in_transaction(engine, work)


def test_too_many_from_one_address(engine, database, project, browsers):
    with serving(Settings(database=database)) as address:
        with program(engine, address, 1) as manager:
            wanted = {"code": "C", "parameter": "WORKER", "workers": 100}
            path = f"/api/v1/projects/{project}/crowd-links"
            link = manager.post(path, json=wanted).json()["link"]
        browser = browsers.enter_context(Browser(address))
        secret = link.replace(address, "")
        statuses = []
        for number in range(40):
            form = re.search(r'name="form" value="([^"]+)"', browser.get(f"{secret}?WORKER=w").text)
            data = {"external_id": f"w{number}", "form": form[1]}
            statuses.append(browser.post(secret, data=data).status_code)
        assert (statuses[:30], 429 in statuses) == ([303] * 30, True)


def test_a_workers_account_gets_no_other_rights(engine, database, project, browsers):
    base = f"/api/v1/projects/{project}"
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        wanted = {"code": "C", "parameter": "WORKER", "workers": 2}
        link = manager.post(f"{base}/crowd-links", json=wanted).json()["link"]
        worker, _ = open_link(browsers, address, link, "5f1e")
        number = manager.get(f"{base}/members").json()[1]["user"]
        other = make_project(engine, [1], queries=1)
        secret = in_transaction(engine, lambda c: invite(c, other, Role.OWNER))
        joined = worker.submit(f"/join/{secret}")
        assert joined.status_code == 409
        assert "crowd worker" in joined.text
        promoted = manager.patch(f"{base}/members/{number}", json={"role": "manager"})
        assert promoted.status_code == 409
        assert manager.patch(f"{base}/members/{number}", json={"role": "assessor"}).is_success
        with pytest.raises(RefusedError, match="only judge in one project"):
            in_transaction(engine, lambda c: set_admin(c, None, number, admin=True))
        again, _ = open_link(browsers, address, link, "5f1e")
        seen = again.get("/api/v1/projects").json()
        assert [(each["id"], each["role"]) for each in seen] == [(project, "assessor")]


def test_a_form_without_the_parameter_shows_the_link(engine, database, project):
    """It is shown once: an error after it was made would lose it."""
    with (
        serving(Settings(database=database)) as address,
        program(engine, address, 1) as manager,
    ):
        made = manager.post(f"/projects/{project}/crowd", data={"code": "C0DE-7"})
    assert made.status_code == 200
    assert re.search(r"/crowd/[\w-]{40,}\?PROLIFIC_PID=", made.text)

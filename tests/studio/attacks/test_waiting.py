"""No page says that nothing is left while others may open more, and everyone who waits is asked."""

from __future__ import annotations

import threading
import time

import pytest

from podium.studio.accounts.service import new_api_token
from podium.studio.client import StudioClient, StudioError
from podium.studio.store.database import in_transaction
from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project


def test_what_others_judge_may_open_more(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=6, overlap_share=1.0, overlap_assessors=2
    )
    first, second = judge(ann, project), judge(bob, project)
    count, after = first.judge_all()
    assert count > 0
    # Nobody holds anything, and Ann has judged all that is open to her: but not for good.
    assert (after["state"], after["wait_seconds"]) == ("wait", 15.0)
    second.judge_all()
    assert first.next()["state"] == "task"
    while first.judge_all()[0] + second.judge_all()[0]:
        pass
    assert first.next()["state"] == second.next()["state"] == "done"


def test_who_may_judge_no_other_query_is_done_and_others_are_not(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1, assigned_only=True)
    owner = judge(ann, project)
    assert owner.post("assignment", people=[ann, bob]).status_code == 200
    second = judge(bob, project)
    second.next()  # and holds it
    assert owner.judge_all()[1]["state"] == "yours-done"
    assert second.judge_all()[1]["state"] == "done"
    assert owner.next()["state"] == "done"


def test_who_is_assigned_nothing_is_told_so_and_what_to_do(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1, assigned_only=True)
    owner, second = judge(ann, project), judge(bob, project)
    remedy = "Assign the queries under Assignments, or let everyone judge all queries."
    nobody = second.next()
    assert (nobody["state"], nobody["wait_seconds"]) == ("blocked", 15.0)
    assert nobody["problems"] == [f"2 queries are blocked: nobody is assigned. {remedy}"]
    assert owner.client.get(f"{owner.path}/report").json()["blocked"] == nobody["problems"]
    dashboard = owner.client.get(f"/projects/{project}/dashboard").text
    assert f"<strong>2 queries:</strong> nobody is assigned. {remedy}" in dashboard
    assert owner.post("assignment", people=[ann]).status_code == 200
    while (alone := second.next())["problems"] == nobody["problems"]:
        time.sleep(0.1)  # what is blocked is looked up every few seconds
    assert alone["state"] == "blocked"
    assert alone["problems"] == [f"No query is assigned to you. {remedy}"]


def test_a_remedy_is_not_told_again_once_the_settings_are_changed(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=2, k=1, overlap_share=1.0, overlap_assessors=4
    )
    owner = judge(ann, project)
    (problem,) = owner.judge_all()[1]["problems"]
    assert "4 people are needed, and only 2 can judge." in problem
    change = owner.client.patch(owner.path, json={"overlap_assessors": 3})
    assert change.status_code == 200, change.text
    (problem,) = owner.next()["problems"]
    assert "3 people are needed, and only 2 can judge." in problem
    assert owner.client.patch(owner.path, json={"overlap_assessors": 2}).status_code == 200
    after = owner.next()
    assert (after["state"], after["problems"]) == ("wait", [])


def test_the_page_looks_again_by_itself(engine, person_browser, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=4, overlap_share=1.0, overlap_assessors=2
    )
    judge(ann, project).judge_all()
    page = person_browser(ann).new_page()
    page.clock.install()
    tab = Judging(page, project).open()
    tab.wait_for("wait")
    judge(bob, project).judge_all()
    page.clock.run_for(16_000)
    tab.ready()


def test_the_page_of_someone_who_is_done_shows_new_queries(engine, person_browser, judge):
    from podium.studio.projects.service import add_queries, project_row
    from tests.studio.factories import make_query

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    judge(ann, project).judge_all()
    page = person_browser(ann).new_page()
    page.clock.install()
    tab = Judging(page, project).open()
    tab.wait_for("done")
    in_transaction(
        engine, lambda c: add_queries(c, project_row(c, project), [make_query("new", 2)])
    )
    page.clock.run_for(16_000)
    tab.ready()


@pytest.fixture
def clients(engine, address):
    """Gives a project as someone's Python program sees it."""
    opened = []

    def open_one(user, project):
        secret = in_transaction(engine, lambda c: new_api_token(c, user, "test", 1))
        opened.append(StudioClient(address, secret))
        return opened[-1].project(project)

    yield open_one
    for client in opened:
        client.close()


def by_place(asked):
    one, other = (side[0].reference for side in asked.sides)
    return "left" if one < other else "right"


def test_a_program_judges_to_the_end_though_it_has_to_wait_for_others(engine, clients, monkeypatch):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=2, items=5, overlap_share=1.0, overlap_assessors=2
    )
    # Fifteen seconds at a time would make this test long.
    real = time.sleep
    monkeypatch.setattr("podium.studio.client.time.sleep", lambda s: real(min(s, 0.2)))
    counts = {}

    def judge(user):
        counts[user] = clients(user, project).judge(by_place)

    threads = [threading.Thread(target=judge, args=(user,)) for user in (ann, bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert counts[ann] == counts[bob] > 4  # both judged every pair
    assert clients(ann, project).about["progress"]["share"] == 1


def test_a_program_waits_no_longer_than_it_is_told(engine, clients):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=1, items=3, overlap_share=1.0, overlap_assessors=2
    )
    begun = time.monotonic()
    assert clients(ann, project).judge(by_place, wait=0.5) > 0
    assert time.monotonic() - begun < 15  # as long as the server would have it wait


def test_a_program_is_told_what_keeps_it_from_going_on(engine, clients):
    (ann,) = make_people(engine, 1)
    project = make_project(
        engine, [ann], queries=2, items=3, overlap_share=1.0, overlap_assessors=2
    )
    with pytest.raises(StudioError, match="2 queries are blocked: 2 people are needed") as why:
        clients(ann, project).judge(by_place)
    assert why.value.status == 409


def test_a_program_that_fails_gives_its_task_up(engine, clients, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)

    def fail(_asked):
        assert judge(bob, project).next()["state"] == "wait"
        raise ValueError("the model is away")

    with pytest.raises(ValueError, match="away"):
        clients(ann, project).judge(fail)
    assert judge(bob, project).next()["state"] == "task"


def test_a_program_keeps_its_task_for_as_long_as_it_thinks(engine, clients, monkeypatch):
    from sqlalchemy import select, update

    from podium.studio.store.database import reading
    from podium.studio.store.tables import Lease

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=2, k=1)
    monkeypatch.setattr("podium.studio.client._RENEW_EVERY", 0.05)

    def think(_asked):
        # The lease is about to end, and is renewed meanwhile.
        soon = time.time() + 30
        in_transaction(engine, lambda c: c.execute(update(Lease).values(expires_at=soon)))
        end = time.monotonic() + 60
        until = select(Lease.expires_at)
        while reading(engine, lambda c: c.scalar(until)) <= soon:
            assert time.monotonic() < end
            time.sleep(0.02)
        return "left"

    assert clients(ann, project).judge(think) == 1

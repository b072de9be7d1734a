"""Tasks that a page fetches ahead: independent of those before them, and nobody else's loss."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from podium.studio.judging.next_task import NoTask
from podium.studio.judging.unit_of_work import LeasedTask
from podium.studio.store.database import reading
from podium.studio.store.tables import Lease, LogEntry
from tests.studio.databases import BOTH
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import program
from tests.studio.judging_helpers import truth
from tests.studio.server import serving

DATABASES = BOTH


def leases(engine):
    rows = select(Lease.token, Lease.ahead, Lease.released).order_by(Lease.granted_at)
    return [tuple(row) for row in reading(engine, lambda c: c.execute(rows).all())]


def ahead(service, project, who, *held, tab="t"):
    return service.next(project, who, tab, after=[task.token for task in held])


def test_pairs_come_from_queries_of_which_the_tab_holds_none(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=4)
    held = [service.next(project, ann, "t")]
    for _ in range(2):
        held.append(ahead(service, project, ann, *held))
    assert len({task.query.id for task in held}) == 3
    assert [flag for _, flag, _ in leases(engine)] == [False, True, True]
    # The first is what the page shows: asked again without the others, it comes back.
    assert service.next(project, ann, "t").token == held[0].token


def test_after_an_answer_the_query_goes_on_behind_the_others(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3)
    first = service.next(project, ann, "t")
    second = ahead(service, project, ann, first)
    result, third = service.answer(
        project, ann, first.token, "left", seconds=1, tab="t", after=[second.token]
    )
    assert result.counts
    assert third.query.id == first.query.id  # it was answered: its next pair is known
    assert leases(engine) == [(second.token, False, False), (third.token, True, False)]


def test_grades_may_come_from_the_same_query(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=3, mode="grades")
    first = service.next(project, ann, "t")
    second = ahead(service, project, ann, first)
    assert first.query.id == second.query.id
    assert first.task.left != second.task.left


def test_the_last_query_is_left_to_others(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)  # one pair each
    first = service.next(project, ann, "a")
    assert isinstance(ahead(service, project, ann, first, tab="a"), NoTask)
    assert isinstance(service.next(project, bob, "b"), LeasedTask)


@pytest.mark.parametrize("mode", ["pairs", "grades", "rankings"])
def test_everything_is_asked_once_with_tasks_ahead(engine, service, mode):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3, items=4, mode=mode)
    choose = {"pairs": truth, "grades": lambda _: "good", "rankings": lambda _: "same"}[mode]
    held = [service.next(project, ann, "t")]
    count = 0
    while held:
        while len(held) < 3:
            more = ahead(service, project, ann, *held)
            if not isinstance(more, LeasedTask):
                break
            held.append(more)
        task = held.pop(0)
        tokens = [each.token for each in held]
        result, following = service.answer(
            project, ann, task.token, choose(task.task), seconds=1, tab="t", after=tokens
        )
        assert result.counts
        count += 1
        if isinstance(following, LeasedTask):
            held.append(following)
        elif not held:
            held = [
                each for each in [service.next(project, ann, "t")] if isinstance(each, LeasedTask)
            ]
    rows = reading(
        engine,
        lambda c: c.execute(select(LogEntry.query_id, LogEntry.left, LogEntry.right)).all(),
    )
    pairs = [(row.query_id, frozenset((row.left, row.right))) for row in rows]
    assert len(set(pairs)) == len(pairs) == count
    assert service.next(project, ann, "t") == NoTask("done")


def test_tokens_of_others_change_nothing(engine, service):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=4)
    shown = service.next(project, ann, "a")
    held = ahead(service, project, ann, shown, tab="a")
    before = leases(engine)
    found = ahead(service, project, bob, held, tab="b")
    assert isinstance(found, LeasedTask)
    assert leases(engine)[:2] == before


def test_a_page_loaded_again_gets_what_it_showed_though_it_holds_tasks_ahead(engine, service):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=4)
    shown = service.next(project, ann, "t")
    ahead(service, project, ann, shown)
    row = service.row(project)
    assert service.release(row, ann, shown.token)  # the page said so when it went
    assert service.next(project, ann, "t").token == shown.token


def test_a_task_ahead_is_not_given_back_but_the_one_that_was_shown(engine, service, clock):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=4)
    shown = service.next(project, ann, "old")
    ahead(service, project, ann, shown, tab="old")
    clock.now += 5000
    assert service.next(project, ann, "new").token == shown.token


def test_over_the_api_all_held_tasks_are_renewed_and_released(engine, database):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=3)
    from podium.studio.settings import Settings

    with serving(Settings(database=database)) as address, program(engine, address, ann) as client:
        base = f"/api/v1/projects/{project}"
        body = {"tab": "t", "renews": True}
        first = client.post(f"{base}/next", json=body).json()["task"]
        second = client.post(f"{base}/next", json={**body, "after": [first["token"]]}).json()
        token = second["task"]["token"]
        assert token != first["token"]
        renewal = {**body, "token": first["token"], "after": [token]}
        kept = client.post(f"{base}/renew", json=renewal).json()
        assert (kept["lost"], kept["expires_at"] >= first["expires_at"]) == ([], True)
        release = {"token": token, "expires_at": kept["expires_at"]}
        assert client.post(f"{base}/release", json=release).json() == {"released": True}
        assert client.post(f"{base}/renew", json=renewal).json()["lost"] == [token]
        paused = client.patch(base, json={"paused": True})
        assert paused.status_code == 200
        none = client.post(f"{base}/next", json={**body, "after": [first["token"]]}).json()
        assert none["state"] == "paused"

"""Settings with which nobody could go on are refused, or shown to everyone whom they concern."""

from __future__ import annotations

import math

import pytest
from sqlalchemy import delete, update

from podium.studio.accounts.service import add_user
from podium.studio.store.database import in_transaction
from podium.studio.store.tables import Membership, Project, QueryAssignment, User
from tests.studio.attacks.judge_client import log
from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project
from tests.studio.judging_helpers import queries_of
from tests.studio.postgres import wait_until


def blocked(owner):
    """What the dashboard's report says is blocked."""
    return owner.client.get(f"{owner.path}/report").json()["blocked"]


def test_one_person_a_query_cannot_be_assigned_where_two_must_judge(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(
        engine, [ann, bob], queries=4, overlap_share=0.5, overlap_assessors=2, assigned_only=True
    )
    owner = judge(ann, project)
    assert blocked(owner) == [
        "4 queries are blocked: nobody is assigned. Assign the queries under Assignments, "
        "or let everyone judge all queries."
    ]
    refused = owner.post("assignment", people=[ann, bob])
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        "2 people must judge a query, but 4 would be assigned to fewer: to 1. Assign each query "
        "to 2 people, or lower the number of people who judge a pair in the settings."
    )
    assert blocked(owner)[0].startswith("4 queries are blocked: nobody is assigned.")
    assert owner.post("assignment", people=[ann, bob], copies=2).status_code == 200
    assert blocked(owner) == []


@pytest.mark.parametrize(
    "change",
    [
        {"overlap_share": 0.5},
        {"mode": "grades", "overlap_share": 1.0},
    ],
)
def test_settings_that_the_assignment_cannot_meet_are_refused(engine, judge, change):
    ann, bob = make_people(engine, 2)
    mode = change.pop("mode", "pairs")
    project = make_project(engine, [ann, bob], queries=4, items=4, mode=mode, assigned_only=True)
    owner = judge(ann, project)
    assert owner.post("assignment", people=[ann, bob]).status_code == 200
    refused = owner.client.patch(owner.path, json=change)
    assert refused.status_code == 422
    assert "must judge a query, but 4 would be assigned to fewer" in refused.json()["detail"]
    settings = owner.client.get(owner.path).json()["settings"]
    assert (settings["overlap_share"], settings["algorithm"]) == (0.0, "adaptive")


def test_only_assigned_cannot_be_switched_on_for_too_few(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=4, overlap_share=0.5)
    owner = judge(ann, project)
    assert owner.post("assignment", people=[ann, bob]).status_code == 200  # it binds nobody
    assert owner.client.patch(owner.path, json={"assigned_only": True}).status_code == 422


def test_fewer_people_than_a_pair_needs_are_told_and_helped(engine, judge):
    ann, bob, cat = make_people(engine, 3)
    project = make_project(
        engine, [ann, bob, cat], queries=2, items=4, overlap_share=1.0, overlap_assessors=3
    )
    # One has left, and one is not let in any more.
    in_transaction(engine, lambda c: c.execute(delete(Membership).where(Membership.user_id == cat)))
    in_transaction(
        engine, lambda c: c.execute(update(User).where(User.id == bob).values(disabled=True))
    )
    owner = judge(ann, project)
    problem = (
        "2 queries are blocked: 3 people are needed, and only 1 can judge. Invite more people, or "
        "lower the number of people who judge a pair in the settings."
    )
    count, after = owner.judge_all()
    assert (after["state"], after["problems"]) == ("blocked", [problem])
    assert after["wait_seconds"] > 0  # it may be fixed: ask again
    assert blocked(owner) == [problem]
    # The manager lowers the overlap, though there are judgments: what was said stands.
    assert count == len(log(engine)) > 0
    changed = owner.client.patch(owner.path, json={"overlap_assessors": 1})
    assert changed.status_code == 200, changed.text
    assert blocked(owner) == []
    more, after = owner.judge_all()
    assert after["state"] == "done"
    assert all(row.counts for row in log(engine))
    assert more > 0


def test_the_share_may_be_lowered_too_and_nothing_raised(engine, judge):
    (ann,) = make_people(engine, 1)
    project = make_project(
        engine, [ann], queries=1, items=4, overlap_share=0.5, overlap_assessors=3
    )
    owner = judge(ann, project)
    owner.answer(owner.next()["task"], more=False)
    for change in ({"overlap_share": 0.6}, {"overlap_assessors": 4}, {"k": 2}, {"budget": 13}):
        refused = owner.client.patch(owner.path, json=change)
        assert refused.status_code == 409, change
        assert next(iter(change)) in refused.json()["detail"]
    assert owner.client.patch(owner.path, json={"overlap_share": 0.0}).status_code == 200
    assert owner.judge_all()[1]["state"] == "done"


@pytest.mark.parametrize(("items", "budget"), [(3, 7), (7, None)])
def test_careful_ends_for_one_person_with_budget_left(engine, judge, items, budget):
    """Nobody is asked the same pair twice: three judgments for each document are too many."""
    (ann,) = make_people(engine, 1)
    project = make_project(
        engine, [ann], queries=1, items=items, k=1, algorithm="careful", budget=budget
    )
    owner = judge(ann, project)
    assert blocked(owner) == []
    count, after = owner.judge_all()
    assert count == math.comb(items, 2)
    assert after["state"] == "done"
    assert blocked(owner) == []


def test_what_all_have_skipped_is_told(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=1, items=2, k=1)
    first, second = judge(ann, project), judge(bob, project)
    assert first.answer(first.next()["task"], "skip")["next"]["state"] == "wait"
    second.answer(second.next()["task"], "skip")
    # Both look again by themselves, and what was found for one holds for some seconds.
    wait_until(lambda: {who.next()["state"] for who in (first, second)} == {"blocked"})
    after = second.next()
    assert (
        after["problems"]
        == blocked(first)
        == [
            "1 query is blocked: everyone who can judge has already judged or skipped "
            "the remaining pairs. Invite someone else, or ask those who skipped pairs to undo that."
        ]
    )
    assert first.undo()["state"] == "task"
    assert blocked(first) == []


def test_a_query_taken_from_its_only_assessor_is_told(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=3, assigned_only=True)
    owner = judge(ann, project)
    owner.post("assignment", people=[bob])
    query = queries_of(engine, project)[0].id
    in_transaction(
        engine,
        lambda c: c.execute(delete(QueryAssignment).where(QueryAssignment.query_id == query)),
    )
    assert blocked(owner)[0].startswith("1 query is blocked: nobody is assigned.")
    in_transaction(
        engine,
        lambda c: c.execute(update(Project).where(Project.id == project).values(paused=True)),
    )
    assert blocked(owner) == []


def test_both_pages_say_it(engine, person_browser, judge):
    ann = in_transaction(engine, lambda c: add_user(c, "ann@example.org", "Ann", None))
    project = make_project(
        engine, [ann], queries=1, items=3, overlap_share=1.0, overlap_assessors=2
    )
    judge(ann, project).judge_all()
    context = person_browser(ann)
    page = context.new_page()
    page.clock.install()
    tab = Judging(page, project).open()
    tab.wait_for("blocked")
    assert "2 people are needed, and only 1 can judge" in tab.part("problems")
    dashboard = context.new_page()
    dashboard.goto(f"/projects/{project}/dashboard")
    assert (
        "2 people are needed, and only 1 can judge"
        in dashboard.locator(".notice.warn").inner_text()
    )
    # Fixed in the settings, the page goes on by itself.
    dashboard.goto(f"/projects/{project}/settings")
    dashboard.get_by_text("Advanced", exact=True).click()
    dashboard.get_by_label("People per overlapping task").fill("1")
    dashboard.get_by_role("button", name="Save settings").click()
    page.clock.run_for(16_000)
    page.wait_for_selector('[data-screen="blocked"]', state="hidden")

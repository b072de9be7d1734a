"""Answers survive whatever happens to the connection, the server and the session."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import delete, select, update

from podium.studio.accounts.service import sign_in
from podium.studio.projects.changes import change_project
from podium.studio.settings import Settings
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import AuthSession, Lease, LogEntry, ProjectQuery
from tests.ports import free_port
from tests.studio.browser.chromium import Judging, signed_in
from tests.studio.factories import make_people, make_project
from tests.studio.server import serving


def answers(engine):
    return reading(engine, lambda c: c.scalars(select(LogEntry.value).order_by(LogEntry.id)).all())


def kept(tab):
    """How many answers the browser keeps."""
    return tab.page.evaluate(
        "() => Object.keys(localStorage).filter(key => key.startsWith('podium.answers.')).length"
    )


@pytest.fixture
def tab(engine, judging):
    (ann,) = make_people(engine, 1)
    found = judging(ann, make_project(engine, [ann], queries=1))  # with nothing to fetch ahead
    found.ready()
    return found


def test_an_answer_without_a_connection_is_sent_later(engine, tab):
    context = tab.page.context
    context.set_offline(True)
    tab.answer("ArrowRight")
    tab.wait_for("sending")
    assert tab.part("saved") == "1 not sent"
    assert kept(tab) == 1
    assert answers(engine) == []
    tab.page.keyboard.press("u")
    expect(tab.page.locator('[data-part="notice"]')).to_contain_text("has not been sent yet")
    context.set_offline(False)  # the browser says so, and the page does not wait any longer
    tab.ready()
    assert tab.part("saved") == "Saved"
    assert kept(tab) == 0
    assert answers(engine) == [-1]
    tab.answer("ArrowLeft")
    tab.wait_until_saved()
    assert answers(engine) == [-1, 1]


def test_an_answer_survives_loading_the_page_again(engine, tab):
    tab.page.route("**/answers", lambda route: route.abort())
    tab.answer("ArrowDown")
    tab.wait_for("sending")
    tab.page.reload()
    tab.wait_for("sending")
    assert kept(tab) == 1
    tab.page.unroute("**/answers")
    tab.ready()
    assert (answers(engine), kept(tab)) == ([0], 0)


def test_a_response_that_is_lost_leaves_one_answer(engine, tab):
    lost = []

    def lose_first(route):
        if lost:
            route.continue_()
        else:
            lost.append(route.fetch())  # the server took it
            route.abort()

    tab.page.route("**/answers", lose_first)
    tab.answer("ArrowLeft")
    tab.wait_for("sending")
    tab.ready()
    assert lost[0].ok
    assert (answers(engine), kept(tab)) == ([1], 0)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_in_trouble_is_asked_again(engine, tab, status):
    tries = []

    def refuse_twice(route):
        tries.append(route.request.post_data_json["token"])
        if len(tries) <= 2:
            route.fulfill(status=status, json={"detail": "later"})
        else:
            route.continue_()

    tab.page.route("**/answers", refuse_twice)
    tab.answer("ArrowLeft")
    tab.wait_for("sending")
    tab.ready()
    assert len(tries) == 3
    assert len(set(tries)) == 1  # by the same token
    assert answers(engine) == [1]


def test_an_answer_that_nobody_wants_is_let_go(engine, tab):
    in_transaction(engine, lambda c: c.execute(delete(Lease)))
    # A query has the time until which nobody else is given it: without a lease there is none.
    in_transaction(engine, lambda c: c.execute(update(ProjectQuery).values(lease_expiry=0, free=1)))
    tab.answer("ArrowLeft")
    expect(tab.page.locator('[data-part="notice"]')).to_contain_text("The task does not exist.")
    tab.ready()
    assert (answers(engine), kept(tab)) == ([], 0)


def test_a_late_answer_is_told_quietly(engine, tab):
    in_transaction(engine, lambda c: c.execute(update(Lease).values(expires_at=1)))
    tab.answer("ArrowLeft")
    expect(tab.page.locator('[data-part="notice"]')).to_contain_text(
        "arrived late but still counts"
    )
    tab.ready()
    assert answers(engine) == [1]


def test_a_session_that_ended_costs_no_answer(engine, tab, address):
    person = reading(engine, lambda c: c.scalar(select(AuthSession.user_id)))
    in_transaction(engine, lambda c: c.execute(delete(AuthSession)))
    tab.answer("ArrowLeft")
    tab.wait_for("sign-in")
    assert kept(tab) == 1
    link = tab.page.get_by_role("link", name="Sign in")
    assert link.get_attribute("href") == f"/sign-in?to=/projects/{tab.project}/judge"
    secret = in_transaction(engine, lambda c: sign_in(c, person, 1)).secret
    tab.page.context.add_cookies([{"name": "podium_session", "value": secret, "url": address}])
    link.click()  # leads back, since the session is there again
    tab.ready()
    assert (answers(engine), kept(tab)) == ([1], 0)


@pytest.mark.parametrize(
    "change",
    [
        {"scale": [{"name": name} for name in ("poor", "fair", "good", "excellent", "perfect")]},
        {"questions": [{"name": "why", "text": "Why?", "options": ["a", "b"], "required": True}]},
    ],
    ids=["grade renamed", "question added"],
)
def test_a_page_older_than_the_project_s_answers_is_to_be_reloaded(engine, judging, change):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=4, mode="grades")
    tab = judging(ann, project)
    tab.ready()
    tab.page.wait_for_load_state("networkidle")  # two more tasks are fetched ahead
    tab.page.context.set_offline(True)
    in_transaction(engine, lambda c: change_project(c, ann, project, change))
    tokens = []
    for key in ("1", "s", "1"):
        tokens.append(tab.ready())
        tab.page.keyboard.press(key)
        if key == "s":
            tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(f'[data-accepts="{tokens[-1]}"]', state="detached")
    tab.wait_for("sending")
    assert kept(tab) == 3
    tab.page.context.set_offline(False)
    tab.wait_for("out-of-date")
    assert (kept(tab), answers(engine)) == (3, [])
    tab.page.get_by_role("button", name="Reload").click()
    again = set()
    for _ in range(3):
        again.add(tab.ready())
        if "questions" in change:
            tab.page.get_by_label("a", exact=True).check()
        tab.answer("1")
        tab.wait_until_saved()
    tab.wait_for("blocked")  # by the skip, which was valid all the time
    assert {tokens[0], tokens[2]} < again
    assert (kept(tab), answers(engine)) == (0, [None, 0, 0, 0])


def test_another_account_never_sends_them(engine, person_browser, address):
    ann, bob = make_people(engine, 2)
    # Bob waits for the pair that Ann's page still holds.
    project = make_project(engine, [ann, bob], queries=1, lease_seconds=10)
    context = person_browser(ann)
    tab = Judging(context.new_page(), project).open()
    tab.ready()
    context.route("**/answers", lambda route: route.abort())
    tab.answer("ArrowLeft")
    tab.wait_for("sending")
    secret = in_transaction(engine, lambda c: sign_in(c, bob, 1)).secret
    context.add_cookies([{"name": "podium_session", "value": secret, "url": address}])
    context.unroute("**/answers")
    # Bob's session does not know the page that Ann left open, and his own page sends only his.
    tab.wait_for("out-of-date")
    tab.page.get_by_role("button", name="Reload").click()
    tab.answer("ArrowRight")
    tab.wait_until_saved()
    rows = reading(engine, lambda c: c.execute(select(LogEntry.user_id, LogEntry.value)).all())
    assert list(map(tuple, rows)) == [(bob, -1)]
    assert kept(tab) == 1


def test_a_server_that_starts_again(engine, database, browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1)
    settings, port = Settings(database=database), free_port()
    with serving(settings, port) as address:
        context = signed_in(browser, engine, address, ann)
        tab = Judging(context.new_page(), project).open()
        tab.answer("ArrowLeft")
        tab.wait_until_saved()
        tab.ready()
    tab.answer("ArrowRight")
    tab.wait_for("sending")
    expect(tab.page.locator('[data-part="announcement"]')).to_have_text(
        "Your judgment is saved in this browser"
    )
    with serving(settings, port):
        tab.ready()  # by itself
        assert answers(engine) == [1, -1]
        assert kept(tab) == 0
        context.close()

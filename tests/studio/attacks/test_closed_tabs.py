"""A tab that is closed, lost or asleep keeps nobody from judging, and nothing is lost by it."""

from __future__ import annotations

import time

from sqlalchemy import select

from podium.studio.judging.next_task import TaskDispatcher
from podium.studio.judging.unit_of_work import RENEW_EVERY, RENEWED_SECONDS, SHARED_SECONDS
from podium.studio.store.database import reading
from podium.studio.store.tables import Lease, ProjectQuery
from tests.studio.attacks.judge_client import let_leases_end, log, pair
from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges
from tests.studio.postgres import wait_until


def leases(engine):
    """All leases: those of tasks that are shown before those that were fetched ahead."""
    rows = select(Lease.__table__).order_by(Lease.ahead, Lease.granted_at)
    return reading(engine, lambda c: c.execute(rows).all())


def one_pair(engine, people, **settings):
    """A project in which whoever holds the only pair keeps all others from judging."""
    return make_project(engine, people, queries=1, items=2, k=1, **settings)


def test_closing_a_tab_frees_its_pair_at_once(engine, person_browser, judge):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob])
    tab = Judging(person_browser(ann).new_page(), project).open()
    tab.ready()
    assert judge(bob, project).next()["state"] == "wait"
    tab.page.goto("about:blank")
    wait_until(lambda: judge(bob, project).next()["state"] == "task")


def test_whoever_closed_a_tab_gets_the_pair_back_in_a_new_one(engine, person_browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1)
    context = person_browser(ann)
    tab = Judging(context.new_page(), project).open()
    tab.answer("ArrowLeft")
    tab.wait_until_saved()
    token, titles = tab.ready(), tab.titles()
    tab.page.close()
    wait_until(lambda: all(row.released for row in leases(engine)))
    again = Judging(context.new_page(), project).open()
    assert again.ready() == token
    assert again.titles() == titles


def test_loading_the_page_again_keeps_the_pair_though_the_old_page_gave_it_up(
    engine, person_browser
):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=3)
    tab = Judging(person_browser(ann).new_page(), project).open()
    token = tab.ready()
    for _ in range(3):
        tab.page.reload()
        assert tab.ready() == token
    (row,) = [row for row in leases(engine) if not row.ahead]
    assert not row.released


def test_a_page_that_asks_while_the_one_before_it_gives_up_has_the_pair(engine, monkeypatch):
    """The request saw the lease before it was given up, and waited for the query meanwhile."""
    (ann,) = make_people(engine, 1)
    row = row_of(engine, make_project(engine, [ann], queries=3))
    service = Judges(engine)
    held = service.next(row, ann, "tab", renews=True)
    real, seen = TaskDispatcher._held, []

    def as_seen_before(dispatcher):
        if not seen:
            seen.extend(real(dispatcher))
            assert service.release(row, ann, held.token)
            return seen
        return real(dispatcher)

    monkeypatch.setattr(TaskDispatcher, "_held", as_seen_before)
    again = service.next(row, ann, "tab", renews=True)
    assert again.token == held.token
    (lease,) = leases(engine)
    assert (lease.released, lease.expires_at) == (False, again.expires_at)


def test_a_word_of_leaving_that_comes_late_takes_nothing_from_the_page_after_it(engine, judge):
    (ann,) = make_people(engine, 1)
    project = one_pair(engine, [ann])
    who = judge(ann, project)
    before = who.next()["task"]
    after = who.next()["task"]  # the page was loaded again
    assert after["token"] == before["token"]
    left = who.post("release", token=before["token"], expires_at=before["expires_at"])
    assert left.json() == {"released": False}
    assert not leases(engine)[0].released
    left = who.post("release", token=after["token"], expires_at=after["expires_at"])
    assert left.json() == {"released": True}


def test_closing_one_of_two_tabs_with_the_same_pair_leaves_it_to_the_other(engine, judge):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob])
    who, other = judge(ann, project), judge(bob, project)
    task = who.next("one")["task"]
    copy = who.next("two")["task"]
    assert copy["token"] == task["token"]
    begun = time.time()
    left = who.post("release", token=copy["token"], expires_at=copy["expires_at"])
    assert left.json() == {"released": False}
    (lease,) = leases(engine)
    assert not lease.released
    assert begun + SHARED_SECONDS <= lease.expires_at <= time.time() + SHARED_SECONDS
    assert SHARED_SECONDS > RENEW_EVERY  # the other tab's renewal comes in time
    assert other.next()["state"] == "wait"
    taken = who.answer(task, tab="one")
    assert (taken["late"], taken["counts"]) == (False, True)


def test_a_pair_whose_tabs_are_all_closed_is_free_soon(engine, judge):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob])
    who, other = judge(ann, project), judge(bob, project)
    tasks = [who.next(tab)["task"] for tab in ("one", "two")]
    ends = []
    for task in tasks[::-1]:
        who.post("release", token=task["token"])
        ends.append(leases(engine)[0].expires_at)
    assert ends[0] == ends[1]  # closing more tabs does not keep it longer
    # Whoever waits looks when that time has come.
    query = reading(engine, lambda c: c.scalar(select(ProjectQuery.lease_expiry)))
    assert query == ends[0]
    let_leases_end(engine)
    assert other.next()["state"] == "task"


def test_a_tab_that_renews_what_another_tab_was_given_since_keeps_it(engine, judge):
    """The first tab was hidden until its lease ended; the second got the pair; then both show."""
    (ann,) = make_people(engine, 1)
    project = one_pair(engine, [ann])
    who = judge(ann, project)
    task = who.next("one")["task"]
    let_leases_end(engine)
    assert who.next("two")["task"]["token"] == task["token"]
    assert not leases(engine)[0].shared
    renewed = who.post("renew", token=task["token"], tab="one", renews=True)
    assert renewed.json()["expires_at"] > time.time()
    assert who.post("release", token=task["token"]).json() == {"released": False}
    assert not leases(engine)[0].released


def test_taking_an_answer_back_in_one_tab_leaves_the_pair_to_the_other(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    who = judge(ann, project)
    task = who.answer(who.next("one")["task"], tab="one")["next"]["task"]
    assert who.next("two")["task"]["token"] == task["token"]
    who.undo("one")
    assert judge(bob, project).next()["state"] == "wait"
    assert who.answer(task, tab="two", more=False)["counts"]
    assert [row.late for row in log(engine)] == [False, False, False]


def test_the_tab_that_stays_open_renews_a_pair_that_the_other_gave_up(engine, person_browser):
    (ann,) = make_people(engine, 1)
    project = one_pair(engine, [ann])
    context = person_browser(ann)
    stays = Judging(context.new_page(), project)
    stays.page.clock.install()
    stays.open()
    token = stays.ready()
    closed = Judging(context.new_page(), project).open()
    assert closed.ready() == token
    shared = leases(engine)[0].expires_at
    closed.page.close()
    wait_until(lambda: leases(engine)[0].expires_at < shared)
    shortened = leases(engine)[0].expires_at
    with stays.page.expect_response("**/renew"):
        stays.page.clock.run_for(16_000)
    wait_until(lambda: leases(engine)[0].expires_at > shortened)
    stays.answer("ArrowLeft")
    stays.wait_until_saved()
    assert [(row.late, row.counts) for row in log(engine)] == [(False, True)]


def test_leaving_needs_the_word_of_the_page(engine, person_browser, address):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob])
    context = person_browser(ann)
    tab = Judging(context.new_page(), project).open()
    token = tab.ready()
    path = f"{address}/projects/{project}/judge/leave"
    forged = context.request.post(path, form={"token": token, "csrf": "guess"})
    assert forged.status == 403
    # Nor does someone else's word give Ann's pair up.
    theirs = person_browser(bob)
    page = theirs.new_page()
    page.goto(f"/projects/{project}/judge")
    csrf = page.locator("[data-part=judge]").get_attribute("data-csrf")
    assert theirs.request.post(path, form={"token": token, "csrf": csrf}).status == 204
    assert not leases(engine)[0].released


def test_a_page_from_the_back_forward_cache_has_its_pair_again(engine, person_browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2)
    tab = Judging(person_browser(ann).new_page(), project).open()
    token = tab.ready()
    # As browsers do it: the page is hidden, kept as it is, and shown again.
    tab.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    wait_until(lambda: leases(engine)[0].released)
    tab.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    wait_until(lambda: not leases(engine)[0].released)
    assert tab.ready() == token
    tab.answer("ArrowLeft")
    tab.wait_until_saved()
    assert [(row.late, row.counts) for row in log(engine)] == [(False, True)]


def test_a_page_that_died_without_a_word_is_waited_for_less_than_a_minute(engine, judge):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob], lease_seconds=900)
    task = judge(ann, project).next()["task"]
    assert task["expires_at"] - time.time() <= RENEWED_SECONDS < 60
    assert task["renew_seconds"] == RENEW_EVERY <= RENEWED_SECONDS / 3
    # A program that does not renew keeps it for as long as the project says.
    kept = judge(ann, project).next("program", renews=False)["task"]
    assert kept["token"] == task["token"]


def test_a_page_renews_while_someone_reads_and_not_while_nobody_does(engine, person_browser):
    (ann,) = make_people(engine, 1)
    page = person_browser(ann).new_page()
    page.clock.install()
    tab = Judging(page, make_project(engine, [ann], queries=1)).open()
    tab.ready()
    until = leases(engine)[0].expires_at
    with page.expect_response("**/renew"):
        page.clock.run_for(16_000)
    wait_until(lambda: leases(engine)[0].expires_at > until)
    renewals = []
    page.on("request", lambda request: renewals.append(request.url.endswith("/renew")))
    page.evaluate(
        """Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});
           document.dispatchEvent(new Event('visibilitychange'));"""
    )
    page.clock.run_for(120_000)
    assert not any(renewals)


def test_after_a_sleep_the_pair_is_there_if_nobody_took_it_and_another_if_someone_did(
    engine, person_browser, judge
):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    page = person_browser(ann).new_page()
    page.clock.install()
    tab = Judging(page, project).open()
    token = tab.ready()
    let_leases_end(engine)  # the laptop slept for an hour
    with page.expect_response("**/renew"):
        page.clock.run_for(16_000)
    assert tab.ready() == token
    wait_until(lambda: leases(engine)[0].expires_at > 1)
    let_leases_end(engine)
    (held,) = leases(engine)
    theirs = judge(bob, project).next()["task"]  # what lapsed goes first
    assert theirs["query_id"] == held.query_id
    with page.expect_response("**/renew"):
        page.clock.run_for(16_000)
    page.wait_for_selector("text=You were away for a while")
    assert tab.ready() != token
    held = {row.user_id: row.query_id for row in leases(engine) if not row.released}
    assert held[bob] == theirs["query_id"] != held[ann]


def test_an_answer_given_while_offline_is_kept_and_counts_unless_others_were_asked(engine, judge):
    ann, bob = make_people(engine, 2)
    project = make_project(engine, [ann, bob], queries=2, items=2, k=1)
    first, second = judge(ann, project), judge(bob, project)
    offline = first.next("one")["task"]
    let_leases_end(engine)
    taken = first.answer(offline, tab="one", more=False)
    assert (taken["late"], taken["counts"]) == (True, True)
    offline = first.next("one")["task"]
    let_leases_end(engine)
    theirs = second.next()["task"]
    assert pair(theirs) == pair(offline)
    taken = first.answer(offline, tab="one", more=False)
    assert (taken["late"], taken["counts"]) == (True, False)
    assert second.answer(theirs)["counts"]
    assert [(row.user_id, row.late, row.counts) for row in log(engine)] == [
        (ann, True, True),
        (ann, True, False),
        (bob, False, True),
    ]


def test_a_hidden_tab_takes_no_work(engine, person_browser, judge):
    ann, bob = make_people(engine, 2)
    project = one_pair(engine, [ann, bob])
    held = judge(bob, project).next()["task"]
    page = person_browser(ann).new_page()
    page.clock.install()
    tab = Judging(page, project).open()
    tab.wait_for("wait")
    hide = """hidden => {
      Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    judge(bob, project).post("release", token=held["token"])
    page.clock.run_for(60_000)
    assert tab.screen == "wait"
    page.evaluate(hide, False)
    tab.ready()

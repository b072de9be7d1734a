"""The clock counts reading alone: breaks, hidden tabs and absence are taken off."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Lease, LogEntry
from tests.studio.browser.chromium import open_task
from tests.studio.factories import make_people, make_project

"""How many seconds after its documents have come a task takes an answer: they count as reading."""

COUNTED = 0.3
"""The same as the page sends it, rounded to tenths."""


@pytest.fixture
def tab(engine, person_browser):
    """A tab whose clock the test moves."""
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, lease_seconds=86400)
    found = open_task(person_browser(ann), project)
    # The server never believes in more time than its own clock saw pass.
    in_transaction(engine, lambda c: c.execute(update(Lease).values(granted_at=0)))
    return found


def pass_time(tab, seconds):
    """Let time pass with someone moving now and then."""
    while seconds > 0:
        step = min(seconds, 20)
        tab.page.clock.run_for(round(step * 1000))
        tab.page.mouse.move(200 + seconds % 7, 300)
        seconds -= step


def shown(tab):
    minutes, seconds = tab.part("timer").split(":")
    return 60 * int(minutes) + int(seconds)


def hide(tab, hidden):
    tab.page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )


def seconds_taken(engine, tab):
    tab.answer("ArrowLeft")
    tab.wait_until_saved()
    return reading(engine, lambda c: c.scalar(select(LogEntry.seconds)))


def test_reading_counts(engine, tab):
    pass_time(tab, 95)
    assert shown(tab) == 95
    assert seconds_taken(engine, tab) == pytest.approx(95 + COUNTED)


def test_a_break_does_not(engine, tab):
    pass_time(tab, 30)
    tab.page.keyboard.press("p")
    assert not tab.page.locator(".documents").is_visible()
    tab.page.clock.run_for(1_000_000)
    assert shown(tab) == 30
    tab.page.keyboard.press("p")
    pass_time(tab, 10)
    assert seconds_taken(engine, tab) == pytest.approx(40 + COUNTED)


def test_a_hidden_tab_does_not(engine, tab):
    pass_time(tab, 20)
    hide(tab, True)
    tab.page.clock.run_for(500_000)
    hide(tab, False)
    pass_time(tab, 5)
    assert seconds_taken(engine, tab) == pytest.approx(25 + COUNTED)


def test_a_hidden_tab_during_a_break_is_taken_off_once(engine, tab):
    pass_time(tab, 20)
    tab.page.keyboard.press("p")
    hide(tab, True)
    tab.page.clock.run_for(100_000)
    hide(tab, False)
    tab.page.clock.run_for(100_000)
    tab.page.keyboard.press("p")
    assert seconds_taken(engine, tab) == pytest.approx(20 + COUNTED)


def test_absence_is_noticed_and_taken_off(engine, tab):
    pass_time(tab, 30)
    dialog = tab.page.get_by_role("dialog")
    tab.page.clock.run_for(50_000)
    assert dialog.count() == 0  # short texts, but one may think for a minute
    tab.page.clock.run_for(20_000)
    assert dialog.is_visible()
    tab.page.clock.run_for(3_000_000)
    assert shown(tab) == 30
    tab.page.get_by_role("button", name="Continue").click()
    pass_time(tab, 15)
    # None of the 3,000 seconds may count; a busy browser may be some tenths late.
    assert seconds_taken(engine, tab) == pytest.approx(45 + COUNTED, abs=1)


def test_long_texts_give_more_time(engine, person_browser):
    from podium.studio.store.tables import QueryCandidate

    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, lease_seconds=86400)
    text = "word " * 480  # 2,400 characters each: 30 + 4800 / 12 seconds for both
    in_transaction(engine, lambda c: c.execute(update(QueryCandidate).values(text=text)))
    page = open_task(person_browser(ann), project).page
    page.clock.run_for(420_000)
    assert page.get_by_role("dialog").count() == 0
    page.clock.run_for(20_000)
    assert page.get_by_role("dialog").is_visible()


def test_a_task_is_kept_for_as_long_as_it_is_read(engine, person_browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, lease_seconds=60)
    tab = open_task(person_browser(ann), project)
    token = tab.ready()
    until = reading(engine, lambda c: c.scalar(select(Lease.expires_at)))
    with tab.page.expect_response("**/renew"):
        pass_time(tab, 40)
    assert tab.ready() == token
    assert reading(engine, lambda c: c.scalar(select(Lease.expires_at))) > until

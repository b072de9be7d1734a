"""One person in two tabs: each has its own task, also if one tab is a copy of the other."""

from __future__ import annotations

from sqlalchemy import select

from podium.studio.store.database import reading
from podium.studio.store.tables import Lease, LogEntry
from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project


def test_two_tabs_have_two_tasks(engine, person_browser):
    (ann,) = make_people(engine, 1)
    context = person_browser(ann)
    project = make_project(engine, [ann], queries=2)
    one = Judging(context.new_page(), project).open()
    two = Judging(context.new_page(), project).open()
    assert one.ready() != two.ready()
    # Read before the answers: a tab that has answered asks for its next task in its own time.
    tabs = reading(engine, lambda c: c.scalars(select(Lease.tab)).all())
    assert len(set(tabs)) == 2
    for tab in (one, two, one, two):
        tab.answer("ArrowLeft")
    for tab in (one, two):
        tab.wait_until_saved()
    assert len(reading(engine, lambda c: c.scalars(select(LogEntry.id)).all())) == 4


def test_loading_again_brings_the_same_task_back(engine, judging):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=2))
    token = tab.ready()
    tab.page.reload()
    assert tab.ready() == token


def test_a_copy_of_a_tab_is_another_tab(engine, judging):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=2))
    token = tab.ready()
    with tab.page.expect_popup() as opened:
        tab.page.evaluate("() => void open(location.href)")  # copies the session's storage
    copy = Judging(opened.value, tab.project)
    assert copy.ready() != token


def test_an_undo_takes_back_what_this_tab_answered(engine, person_browser):
    (ann,) = make_people(engine, 1)
    context = person_browser(ann)
    project = make_project(engine, [ann], queries=2)
    one = Judging(context.new_page(), project).open()
    two = Judging(context.new_page(), project).open()
    titles = []
    for tab in (one, two):
        tab.ready()
        titles.append(tab.titles())
        tab.answer("ArrowLeft")
        tab.wait_until_saved()
        tab.ready()
    one.page.keyboard.press("u")
    one.page.wait_for_selector("text=was undone")
    one.ready()
    assert one.titles() == titles[0]

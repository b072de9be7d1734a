"""The arrows scroll where a text has the focus, and cast a verdict where none has."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from podium.studio.store.database import in_transaction
from podium.studio.store.tables import QueryCandidate
from tests.studio.attacks.judge_client import log
from tests.studio.factories import make_people, make_project
from tests.studio.postgres import wait_until


@pytest.fixture
def tab(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6)
    long = "A line of a long text.\n" * 300
    in_transaction(engine, lambda c: c.execute(update(QueryCandidate).values(text=long)))
    found = judging(ann, project)
    found.ready()
    return found


def test_arrow_down_in_a_text_scrolls_and_judges_nothing(engine, tab):
    text = tab.page.locator(".scroller").first
    text.click()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown"):
        tab.page.keyboard.press(key)
    tab.page.wait_for_function("() => document.querySelector('.scroller').scrollTop > 0")
    tab.page.wait_for_timeout(300)
    assert log(engine) == []
    assert tab.accepts()
    # The other key says the same from anywhere.
    tab.page.keyboard.press("0")
    wait_until(lambda: [row.value for row in log(engine)] == [0])


def test_arrow_down_outside_of_a_text_is_a_tie(engine, tab):
    tab.page.keyboard.press("ArrowDown")
    wait_until(lambda: [row.value for row in log(engine)] == [0])


def test_arrow_left_in_a_text_is_a_verdict(engine, tab):
    tab.page.locator(".scroller").first.click()
    tab.page.keyboard.press("ArrowLeft")
    wait_until(lambda: [row.value for row in log(engine)] == [1])

"""The next task's documents are laid out before they are shown, and out of reach until then."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from podium.studio.store.database import in_transaction
from podium.studio.store.tables import QueryCandidate
from tests.studio.factories import make_people, make_project

BOXES = """name => [...document.querySelector(name).querySelectorAll(".text")].map(text => {
  const { x, y, width, height } = text.getBoundingClientRect();
  return [text.textContent, x, y, width, height];
})"""


@pytest.mark.parametrize("size", [(1280, 720), (390, 844)], ids=["desktop", "phone"])
def test_showing_the_next_documents_moves_nothing(engine, judging, size):
    people = make_people(engine, 1)
    project = make_project(engine, people, queries=3, items=4)
    text = "A text that fills a phone's screen. " * 20
    in_transaction(engine, lambda c: c.execute(update(QueryCandidate).values(text=text)))
    tab = judging(people[0], project, viewport={"width": size[0], "height": size[1]})
    if size[0] == 390:
        tab.page.wait_for_selector(".documents .text")
        tab.page.locator('[data-show="1"]').click()
    tab.ready()
    tab.page.wait_for_selector(".ahead [data-side='1'] .text", state="attached")
    ahead = tab.page.evaluate(BOXES, ".ahead")
    assert [width > 0 for _, _, _, width, _ in ahead] == [True, size[0] == 1280]
    # Neither a key nor a screen reader gets there.
    focused = "() => { const to = document.querySelector('.ahead .scroller'); to.focus(); "
    assert tab.page.evaluate(focused + "return document.activeElement === to; }") is False
    tab.page.keyboard.press("ArrowLeft")
    tab.page.wait_for_function(
        "text => document.querySelector('.documents .text').textContent === text", arg=ahead[0][0]
    )
    assert tab.page.evaluate(BOXES, ".documents") == ahead

"""A comment written while judging is saved with the answer, and an earlier answer is changed."""

from __future__ import annotations

import pytest

from tests.studio.browser.chromium import read_log
from tests.studio.factories import make_people, make_project

pytestmark = pytest.mark.slow


def test_a_comment_goes_with_the_next_answer_only(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6)
    tab = judging(ann, project)
    tab.ready()
    page = tab.page
    page.keyboard.press("c")
    page.locator("[data-part=comment-dialog] textarea").fill("the left one is a copy")
    page.get_by_role("button", name="Keep comment").click()
    tab.answer("ArrowLeft")
    tab.ready()
    tab.answer("ArrowRight")
    tab.wait_until_saved()
    assert [row.reason for row in read_log(engine)] == ["the left one is a copy", None]

    page.goto(f"/projects/{project}/history")
    page.get_by_role("link", name="Change").last.click()
    page.get_by_label("Equally good").check()
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/history")
    log = read_log(engine)
    assert [(row.kind, row.value, row.reason) for row in log[2:]] == [
        ("undo", None, "changed"),
        ("verdict", 0, "the left one is a copy"),
    ]

"""A crowd worker comes by the platform's link, judges their share, and is shown the code."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project


@pytest.mark.slow
def test_a_worker_gets_the_code(engine, person_browser, address):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=4)
    page = person_browser(ann).new_page()
    page.goto(f"/projects/{project}/crowd")
    page.get_by_label("Completion code").fill("C7XQ2")
    page.get_by_label("Judgments per worker").fill("2")
    page.get_by_role("button", name="Create link").click()
    link = page.locator(".secret").inner_text()
    assert link.endswith("?PROLIFIC_PID={{%PROLIFIC_PID%}}")
    worker = person_browser(None).new_page()
    path = link.partition("/crowd/")[2].replace("{{%PROLIFIC_PID%}}", "5f1e")
    worker.goto(f"{address}/crowd/{path}")
    worker.get_by_role("button", name="Begin").click()
    expect(worker.get_by_text("0 of 2 judged")).to_be_visible()
    worker.get_by_role("link", name="Start judging").click()
    tab = Judging(worker, project)
    left = worker.locator('[data-part="query-left"]')
    expect(left).to_have_text("2 left")  # of their share, not of the query
    tab.answer("ArrowLeft")
    expect(left).to_have_text("1 left")
    tab.answer("ArrowLeft")
    tab.wait_for("yours-done")
    expect(left).to_be_hidden()
    worker.get_by_role("link", name="Show the completion code").first.click()
    expect(worker.get_by_text("C7XQ2")).to_be_visible()
    expect(worker.get_by_role("link", name="Start judging")).to_have_count(0)
    worker.get_by_role("button", name="Copy").click()
    expect(worker.get_by_role("button", name="Copied")).to_be_visible()
    back = worker.get_by_role("link", name="Return to Prolific").get_attribute("href")
    assert back.endswith("/submissions/complete?cc=C7XQ2")
    page.reload()
    expect(page.locator("tbody tr").first).to_contain_text("C7XQ2")

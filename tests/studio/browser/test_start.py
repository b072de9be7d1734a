"""A new project's three steps: a file that is recognized, what people see, and how sure."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Frame, Page, expect
from sqlalchemy import select, update

from podium.studio.accounts.service import add_user
from podium.studio.jobs.queue import enqueue
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Job, Project
from tests.studio.factories import PASSWORD, make_project

ROWS = [
    "query,sku,title,description,price,brand",
    'hiking boots,b1,Trail boots,"<p>Light and <b>waterproof</b>.</p>",129.9,Alp',
    "hiking boots,b2,Town shoes,<p>Leather</p>,89,Bor",
    "rain jacket,j1,Storm jacket,<p>Taped seams</p>,210,Alp",
    "rain jacket,j2,Light jacket,<p>Packs small</p>,99,Bor",
]
SHOP = FilePayload(name="shop.csv", mimeType="text/csv", buffer="\n".join(ROWS).encode())


def preview(page: Page) -> Frame:
    """The judging page beside a form, once it shows a pair."""
    frame = page.locator("iframe.preview").element_handle().content_frame()
    assert frame is not None
    frame.wait_for_selector('[data-part="task"]:not([hidden])')
    return frame


def look(page: Page, name: str) -> None:
    """Keep a picture, if somebody wants to see it."""
    if folder := os.environ.get("START_PICTURES"):
        page.wait_for_timeout(700)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture
def manager(engine, person_browser):
    user = in_transaction(
        engine, lambda c: add_user(c, "mia@example.org", "Mia", PASSWORD, admin=True, verified=True)
    )
    return person_browser(user, viewport={"width": 1440, "height": 900}).new_page()


def test_a_project_starts_with_a_file_in_three_steps(manager, engine):
    page = manager
    page.goto("/projects/new")
    look(page, "1-new")
    page.get_by_label("Name").fill("Autumn shop")
    page.get_by_role("button", name="Create project").click()

    expect(page.locator(".start [aria-current=step]")).to_contain_text("Your data")
    look(page, "2-import")
    page.get_by_label("Drop files here").set_input_files(files=[SHOP])
    page.get_by_role("button", name="Import", exact=True).first.click()
    frame = preview(page)
    expect(frame.locator(".documents .document-title").first).to_have_text("Trail boots")
    look(page, "3-columns")
    # The preview follows the form before anything is saved.
    page.locator("[name=title]").select_option("brand")
    expect(preview(page).locator(".documents .document-title").first).to_have_text("Alp")
    page.locator("[name=title]").select_option("title")
    page.locator("[name=query]").select_option("")
    nothing = page.frame_locator("iframe.preview").get_by_text("Choose the columns of the query")
    expect(nothing).to_be_visible()
    page.locator("[name=query]").select_option("query")
    expect(preview(page).locator(".documents .document-title").first).to_have_text("Trail boots")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#jobs")).to_contain_text("2 queries with 4 documents added")
    look(page, "4-imported")
    page.get_by_role("link", name="Continue", exact=True).click()

    expect(page.locator(".start [aria-current=step]")).to_contain_text("What people see")
    look(page, "5-fields")
    row = page.locator("tr", has=page.get_by_role("button", name="Move price up"))
    row.locator("select").select_option("price")
    row.locator("input[name^=label]").fill("EUR")
    expect(preview(page).locator(".price").first).to_have_text("129.90 EUR")
    assert page.evaluate("document.activeElement.name").startswith("label")  # still typing
    assert shown(engine) == []
    brand = page.locator("tr", has=page.get_by_role("button", name="Move brand up"))
    brand.locator("select").select_option("tag")
    brand.get_by_role("button", name="Move brand up").press("Enter")
    expect(page.locator("#moved")).to_have_text(re.compile(r"Position \d of \d"))
    look(page, "6-chosen")
    page.get_by_role("button", name="Save and continue").click()
    assert [each["field"] for each in shown(engine)] == ["title", "url", "text", "brand", "price"]

    expect(page.locator(".start [aria-current=step]")).to_contain_text("How sure")
    expect(page.locator("#cost-fast")).to_contain_text("judgments")
    look(page, "7-sure")
    expect(page.locator("#assumptions")).to_contain_text("of which the best 10 are")
    page.get_by_label("Documents to rank (k)").fill("1")  # costs follow before anything is saved
    expect(page.locator("#assumptions")).to_contain_text("of which the best 1 are")
    expect(page.locator("#cost-fast")).to_contain_text("judgments")
    page.get_by_label("Balanced").check()
    page.get_by_role("button", name="Save and finish").click()
    expect(page).to_have_url(re.compile("/dashboard"))
    steps = page.locator(".steps li")
    expect(steps).to_have_count(5)
    expect(steps.get_by_text("done")).to_have_count(2)
    look(page, "8-overview")
    overlap = reading(engine, lambda c: c.scalar(select(Project.overlap_share)))
    assert overlap == 0.2


def shown(engine) -> list[dict]:
    return reading(engine, lambda c: c.scalar(select(Project.display)))


def test_rows_are_dragged(manager, engine):
    page = manager
    page.goto("/projects/new")
    page.get_by_label("Name").fill("Empty")
    page.get_by_label("Grades").check()
    page.get_by_role("button", name="Create project").click()
    page.get_by_role("link", name="Continue without a file").click()
    expect(
        page.frame_locator("iframe.preview").get_by_text("once queries are imported")
    ).to_be_visible()
    rows = page.locator("#fields tbody tr")
    before = rows.locator("code").all_inner_texts()
    rows.nth(2).scroll_into_view_if_needed()
    from_box, to_box = (rows.nth(at).locator(".handle").bounding_box() for at in (2, 0))
    page.mouse.move(from_box["x"] + 5, from_box["y"] + 5)
    page.mouse.down()
    page.mouse.move(to_box["x"] + 5, to_box["y"] - 4, steps=5)
    page.mouse.up()
    assert rows.locator("code").all_inner_texts() == [before[2], *before[:2], *before[3:]]
    page.get_by_role("button", name="Save and continue").click()
    assert [each["field"] for each in shown(engine)] == ["text", "title", "url"]
    expect(page.locator("#assumptions")).to_contain_text("Nothing is imported yet")
    expect(page.locator("#cost-careful")).to_have_text(re.compile("about 15,000 judgments"))


def test_an_import_that_is_under_way_is_shown_as_that(manager, engine):
    project = make_project(engine, [1], queries=0)
    with engine.begin() as connection:
        enqueue(connection, project, 1, "import", {"not": "for a worker"})
        connection.execute(update(Job).values(state="running", alive_at=time.time() + 600))
    manager.goto(f"/projects/{project}/judge")
    heading = manager.locator("[data-screen]:visible h2")
    expect(heading).to_have_text("Being imported…")
    with engine.begin() as connection:
        connection.execute(update(Job).values(state="failed"))
    manager.reload()
    expect(heading).to_have_text("There is nothing to judge yet")

"""Results look like the shop's, both are seen before a verdict counts, and questions are asked."""

from __future__ import annotations

import os

from playwright.sync_api import expect
from sqlalchemy import select, update

from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import Lease, LogEntry, QueryCandidate
from tests.studio.browser.chromium import Judging
from tests.studio.browser.shop import QUESTIONS, SCALE, draw_pictures, shop_project
from tests.studio.factories import make_people, make_project
from tests.studio.postgres import wait_until


def entries(engine):
    statement = select(LogEntry.kind, LogEntry.value, LogEntry.replies).order_by(LogEntry.id)
    return [tuple(row) for row in reading(engine, lambda c: c.execute(statement).all())]


def open_shop(person_browser, engine, **settings):
    viewport = settings.pop("viewport", None)
    (ann,) = make_people(engine, 1)
    page = person_browser(ann, **({"viewport": viewport} if viewport else {})).new_page()
    draw_pictures(page)
    return Judging(page, shop_project(engine, ann, **settings)).open()


def test_fields_and_questions(engine, person_browser):
    tab = open_shop(person_browser, engine, queries=1, questions=QUESTIONS)
    tab.ready()
    pane = tab.page.locator(".documents .document").first
    expect(pane.locator("img.picture")).to_have_count(1)
    assert pane.locator(".price").inner_text().endswith(" €")
    assert pane.locator(".tag").count() == 1
    assert pane.locator("dt").all_inner_texts() == ["Rating", "Sizes"]
    assert tab.page.locator(".source").count() == 0  # the address is hidden
    for selector in (".document-title", ".price", ".text", "dd"):
        each = tab.page.locator(f".documents {selector}").first
        assert each.get_attribute("dir") == "auto"
    marks = {text.lower() for text in tab.page.locator(".documents mark").all_inner_texts()}
    assert marks <= {"wide", "running", "run", "shoes", "shoe"}
    tab.page.keyboard.press("ArrowLeft")
    notice = tab.page.locator('[data-part="notice"]')
    expect(notice).to_contain_text("Please reply first: What decided it?")
    assert entries(engine) == []
    tab.page.get_by_label("Fit").click()
    tab.page.get_by_label("What is missing").fill("half sizes")
    tab.page.keyboard.press("ArrowLeft")  # typed into the field
    tab.page.locator('[data-choice="left"]').click()
    tab.wait_until_saved()
    assert entries(engine) == [("verdict", 1, {"reason": "Fit", "missing": "half sizes"})]
    tab.ready()
    assert tab.page.get_by_label("Fit").is_checked() is False


def test_a_picture_that_cannot_be_had_is_said(engine, person_browser):
    (ann,) = make_people(engine, 1)
    page = person_browser(ann).new_page()
    page.route("**/documents/*/image*", lambda route: route.fulfill(status=404))
    tab = Judging(page, shop_project(engine, ann, queries=1)).open()
    tab.ready()
    for pane in page.locator(".documents .document").all():
        expect(pane.get_by_text("Picture not available")).to_be_visible()
    if folder := os.environ.get("START_PICTURES"):
        page.screenshot(path=f"{folder}/missing-picture.png")


def test_own_grades_by_key(engine, person_browser):
    tab = open_shop(person_browser, engine, queries=1, mode="grades", scale=SCALE)
    labels = tab.page.locator("[data-choice] span").all_text_contents()
    assert labels == ["Off topic", "Related", "Substitute", "Exact"]
    for key in "41":
        tab.answer(key)
        tab.wait_until_saved()
    assert [value for _, value, _ in entries(engine)] == [3, 0]


def test_on_a_phone_both_documents_are_seen_before_a_verdict(engine, person_browser):
    phone = {"width": 390, "height": 844}
    tab = open_shop(person_browser, engine, queries=1, viewport=phone)
    text = "Wide running shoes for soft trails. " * 40
    in_transaction(engine, lambda c: c.execute(update(QueryCandidate).values(text=text)))
    tab.open()
    tab.page.wait_for_selector(".documents .price >> visible=true")
    tab.page.wait_for_timeout(400)  # after which a verdict would be taken
    assert not tab.accepts()
    tab.page.locator('[data-choice="left"]').click()
    notice = tab.page.locator('[data-part="notice"]')
    expect(notice).to_contain_text("Look at the document “Right” first")
    assert entries(engine) == []
    tab.page.locator('[data-show="1"]').click()
    tab.ready()
    tab.page.locator('[data-choice="left"]').click()
    tab.wait_until_saved()
    assert entries(engine) == [("verdict", 1, None)]


def test_at_200_percent_and_on_its_side_everything_is_in_reach(engine, person_browser):
    zoomed = {"width": 640, "height": 360}  # 1280 by 720 at 200 %
    tab = open_shop(person_browser, engine, queries=1, viewport=zoomed)
    for width, height in ((640, 360), (844, 390)):
        tab.page.set_viewport_size({"width": width, "height": height})
        if width == 640:
            tab.page.locator('[data-show="1"]').click()
        tab.ready()
        scrolls = "document.documentElement.scrollWidth <= innerWidth"
        assert tab.page.evaluate(scrolls)
        box = tab.page.locator('[data-choice="right"]').bounding_box()
        assert box["y"] + box["height"] <= height
        shown = tab.page.locator(".documents .document >> visible=true").first.bounding_box()
        assert shown["height"] >= 150


def test_the_next_pair_is_there_at_once_and_answers_wait_offline(engine, judging):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=4))
    tab.ready()
    tab.page.wait_for_function("() => document.querySelectorAll('[data-shown]').length === 3")
    queries = [tab.part("query")]
    tab.page.context.set_offline(True)
    for key in ("ArrowLeft", "ArrowRight"):
        shown = tab.ready()
        tab.page.keyboard.press(key)
        now = tab.page.locator('[data-part="task"]').get_attribute("data-shows")
        assert now != shown  # without waiting for anything
        queries.append(tab.part("query"))
    assert len(set(queries)) == 3
    tab.answer("ArrowDown")
    tab.wait_for("sending")
    assert tab.part("saved") == "3 not sent"
    assert entries(engine) == []
    tab.page.context.set_offline(False)
    tab.wait_until_saved()
    assert [value for _, value, _ in entries(engine)] == [1, -1, 0]
    tab.ready()


def test_what_was_fetched_ahead_is_released_with_the_page(engine, judging):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=4))
    tab.ready()
    held = select(Lease.token).where(~Lease.released)
    wait_until(lambda: len(reading(engine, lambda c: c.scalars(held).all())) == 3)
    tab.page.goto("about:blank")
    wait_until(lambda: reading(engine, lambda c: c.scalars(held).all()) == [])

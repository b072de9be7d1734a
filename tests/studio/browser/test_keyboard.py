"""Every answer and command has a key, and does what it says."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import update

from podium.studio.judging.answer_choices import SKIP, choices
from podium.studio.store.database import in_transaction
from podium.studio.store.enums import Mode
from podium.studio.store.tables import QueryCandidate
from podium.studio.web.routes.judging import answer_buttons
from tests.studio.browser.chromium import let_it_accept, open_task, read_log
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.postgres import wait_until


@pytest.mark.parametrize("mode", list(Mode))
def test_every_choice_has_a_button(engine, mode):
    (ann,) = make_people(engine, 1)
    project = row_of(engine, make_project(engine, [ann], queries=0, mode=mode.value))
    buttons = answer_buttons(project)
    assert {button.name for button in buttons} | {SKIP} == set(choices(mode))
    assert len({button.key for button in buttons}) == len(buttons)


@pytest.mark.parametrize(
    ("key", "kind", "value"),
    [
        ("ArrowLeft", "verdict", 1),
        ("ArrowDown", "verdict", 0),
        ("ArrowRight", "verdict", -1),
        ("1", "bad", None),
        ("2", "bad", None),
        ("3", "bad", None),
    ],
)
def test_pairs(engine, judging, key, kind, value):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=1, items=6))
    tab.ready()
    left, right = (int(title.removeprefix("Title ")) for title in tab.titles())
    tab.answer(key)
    tab.ready()
    entries = [(row.kind, row.value, row.left) for row in read_log(engine)]
    marked = {"1": [left], "3": [right], "2": [left, right]}.get(key, [left])
    assert entries == [(kind, value, item) for item in marked]
    assert tab.part("saved") == "Saved"
    assert tab.part("announcement").startswith("Saved. Title")
    assert tab.part("judged") == "1 judged"


@pytest.mark.parametrize(("mode", "best"), [("grades", 4), ("rankings", -2)])
def test_five_keys(engine, judging, mode, best):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=5, items=2, mode=mode))
    for key in "12345":
        tab.answer(key)
    tab.wait_until_saved()
    values = [row.value for row in read_log(engine)]
    assert values == ([0, 1, 2, 3, 4] if best == 4 else [2, 1, 0, -1, -2])


def test_commands(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=6, guidelines="# Best first")
    tab = judging(ann, project)
    tab.ready()
    first = tab.titles()
    tab.answer("ArrowLeft")
    tab.ready()
    assert tab.titles() != first
    tab.wait_until_saved()  # the next task may be shown before that
    tab.page.keyboard.press("u")
    tab.page.wait_for_selector("text=was undone")
    tab.ready()
    assert tab.titles() == first
    tab.page.keyboard.press("?")
    assert tab.page.get_by_role("heading", name="Keyboard shortcuts").is_visible()
    tab.page.keyboard.press("ArrowLeft")  # no answer while a dialog is open
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("g")
    assert tab.page.get_by_role("heading", name="Best first").is_visible()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("p")
    assert tab.screen == "break"
    tab.page.keyboard.press("ArrowLeft")  # nor during a break
    tab.page.keyboard.press("p")
    assert tab.screen == "task"
    tab.page.keyboard.press("s")
    tab.page.get_by_label("A document is broken").check()
    tab.page.get_by_label("Comment (optional)").fill("empty")
    tab.page.keyboard.press("Enter")
    # The task that is shown accepts answers until this one is sent.
    wait_until(lambda: len(read_log(engine)) == 3)
    assert [row.kind for row in read_log(engine)] == ["verdict", "undo", "skip"]
    assert read_log(engine)[-1].reason == "A document is broken or missing: empty"


def test_a_held_key_and_one_pressed_too_soon_answer_once(engine, person_browser):
    (ann,) = make_people(engine, 1)
    tab = open_task(person_browser(ann), make_project(engine, [ann], queries=1, items=6))
    token = tab.ready()
    for _ in range(5):
        tab.page.keyboard.down("ArrowLeft")  # from the second on these are repetitions
    tab.page.keyboard.up("ArrowLeft")
    expect(tab.page.locator('[data-part="task"]')).not_to_have_attribute("data-shows", token)
    tab.page.keyboard.press("ArrowLeft")
    let_it_accept(tab)
    assert len(read_log(engine)) == 1


def test_a_key_pressed_a_little_early_is_kept(engine, person_browser):
    (ann,) = make_people(engine, 1)
    tab = open_task(person_browser(ann), make_project(engine, [ann], queries=1, items=6))
    token = tab.ready()
    tab.page.keyboard.press("ArrowLeft")
    task = tab.page.locator('[data-part="task"]')
    expect(task).not_to_have_attribute("data-shows", token)
    second = task.get_attribute("data-shows")
    tab.page.wait_for_selector(".documents [aria-busy]", state="detached")
    tab.page.clock.run_for(100)
    tab.page.keyboard.press("ArrowRight")
    assert task.get_attribute("data-shows") == second  # nobody reads so fast
    tab.page.clock.run_for(200)
    expect(task).not_to_have_attribute("data-shows", second)
    wait_until(lambda: [row.value for row in read_log(engine)] == [1, -1])


def test_short_texts_stand_one_below_the_other_on_a_phone(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6)
    tab = judging(ann, project, viewport={"width": 390, "height": 844}, has_touch=True)
    tab.ready()  # both are seen at once
    left, right = (each.bounding_box() for each in tab.page.locator(".documents .document").all())
    assert left["y"] + left["height"] <= right["y"]
    answers = tab.page.locator(".answers").bounding_box()
    assert 0 < answers["y"] - right["y"] - right["height"] < 20  # directly below
    for button in tab.page.locator(".commands button, .answers button").all():
        assert button.bounding_box()["height"] >= 44
    tab.page.get_by_role("button", name="Right is better").tap()
    tab.wait_until_saved()


def test_a_finished_query_is_said_and_a_break_sums_up(engine, judging):
    (ann,) = make_people(engine, 1)
    tab = judging(ann, make_project(engine, [ann], queries=2, items=2, k=1))
    tab.answer("ArrowLeft")
    expect(tab.page.locator('[data-part="finished"]')).to_have_text("Query finished")
    tab.ready()
    tab.page.keyboard.press("p")
    summary = tab.page.locator('[data-screen="break"] [data-summary]')
    expect(summary).to_contain_text("1 judgment in 0:0")
    expect(summary).to_contain_text("1 query finished.")
    expect(tab.page.get_by_role("button", name="Resume")).to_be_focused()


def test_keys_work_after_a_click_into_a_frame(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6)
    in_transaction(
        engine,
        lambda c: c.execute(update(QueryCandidate).values(html="<p>Some <b>page</b>")),
    )
    tab = judging(ann, project)
    tab.ready()
    tab.page.frame_locator("iframe").first.get_by_text("page").click()
    tab.page.wait_for_function("() => document.activeElement.tagName !== 'IFRAME'")
    tab.answer("ArrowRight")
    tab.ready()
    assert len(read_log(engine)) == 1


def test_the_pointer_does_as_well(engine, judging):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=1, items=6)
    text = "A text that fills a phone's screen. " * 20
    in_transaction(engine, lambda c: c.execute(update(QueryCandidate).values(text=text)))
    tab = judging(ann, project, viewport={"width": 390, "height": 844}, has_touch=True)
    tab.wait_for("task")
    assert tab.page.locator(".documents .document:visible").count() == 1
    tab.page.get_by_role("button", name="Right", exact=True).tap()
    assert tab.page.locator(".documents .document:visible").get_attribute("aria-label") == "Right"
    tab.ready()  # both have been seen
    tab.page.get_by_role("button", name="Right is better").tap()
    tab.wait_until_saved()
    assert [row.value for row in read_log(engine)] == [-1]

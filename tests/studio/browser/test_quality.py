"""A disagreement is decided, and an assessor is trained, in the browser."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import FilePayload, expect
from sqlalchemy import select

from podium.studio.store.database import reading
from podium.studio.store.tables import Lease, LogEntry
from tests.studio.browser.chromium import Judging
from tests.studio.factories import make_people, make_project
from tests.studio.http_client import row_of
from tests.studio.judging_helpers import Judges


@pytest.mark.slow
def test_a_disagreement_is_decided(engine, person_browser):
    ann, bob, cem = people = make_people(engine, 3)
    project = make_project(engine, people, queries=1, items=2, k=1, overlap_share=1.0)
    service, row = Judges(engine), row_of(engine, project)
    for who, choice, reason in ((bob, "left", "It is newer."), (cem, "right", None)):
        task = service.next(row, who, "t")
        service.answer(row, who, task.token, choice, tab="t", seconds=1, reason=reason)
    page = person_browser(ann).new_page()
    page.goto(f"/projects/{project}/quality")
    page.get_by_label("Adjudicator").select_option(str(ann))
    page.get_by_role("button", name="Save adjudicator").click()
    expect(page.get_by_role("link", name="Decide disagreements")).to_be_visible()
    for _ in range(240):  # until the report has found it
        page.goto(f"/projects/{project}/adjudicate")
        if page.get_by_text("It is newer.").count():
            break
        page.wait_for_timeout(500)
    expect(page.locator(".votes li")).to_have_count(2)
    expect(page.locator(".votes li").first).to_contain_text("Assessor 1: Left is better")
    tab = Judging(page, project)
    tab.ready()
    page.keyboard.press("c")
    page.locator("textarea").fill("By the guidelines.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    tab.answer("ArrowDown")
    expect(page.get_by_role("heading", name="Nothing to decide")).to_be_visible()
    columns = LogEntry.user_id, LogEntry.purpose, LogEntry.value, LogEntry.reason
    log = reading(engine, lambda c: c.execute(select(*columns).order_by(LogEntry.position)).all())
    assert tuple(log[-1]) == (ann, "adjudicate", 0, "By the guidelines.")


@pytest.mark.slow
def test_a_preview_shows_every_query_and_records_nothing(engine, person_browser):
    (ann,) = make_people(engine, 1)
    project = make_project(engine, [ann], queries=2, items=3)
    page = person_browser(ann).new_page()
    page.goto(f"/projects/{project}/preview")
    tab = Judging(page, project)
    shown = []
    for _ in range(2):
        tab.ready()
        shown.append(tab.part("query"))
        tab.answer("1")
    tab.wait_for("done")
    assert len(set(shown)) == 2
    rows = reading(engine, lambda c: c.execute(select(LogEntry.id)).all())
    assert (rows, reading(engine, lambda c: c.execute(select(Lease.token)).all())) == ([], [])


@pytest.mark.slow
def test_an_assessor_is_trained(engine, person_browser):
    ann, bob = people = make_people(engine, 2)
    project = make_project(engine, people, queries=1, items=3)
    example = {"query_id": "q0", "left": "d00", "right": "d01", "outcome": "left",
               "explanation": "Lower numbers are better."}  # fmt: skip
    page = person_browser(ann).new_page()
    page.goto(f"/projects/{project}/quality")
    content = json.dumps(example).encode() + b"\n"
    file = FilePayload(name="x.jsonl", mimeType="text/plain", buffer=content)
    page.get_by_label("Examples").set_input_files(files=[file])
    page.get_by_role("button", name="Save training").click()
    expect(page.get_by_text("not started")).to_be_visible()
    assessor = person_browser(bob).new_page()
    tab = Judging(assessor, project).open()
    tab.wait_for("training")
    assessor.get_by_role("link", name="Go to training").click()
    tab.answer("ArrowRight")
    shown = tab.titles()
    expect(assessor.get_by_text("Not quite: Left is better")).to_be_visible()
    expect(assessor.get_by_text("Lower numbers are better.")).to_be_visible()
    expect(assessor.locator(".answers .right")).to_have_attribute("data-choice", "left")
    assessor.keyboard.press("ArrowLeft")  # the first answer counts
    assert tab.titles() == shown  # beside what explains it, until they continue
    assessor.keyboard.press("Enter")
    expect(assessor.locator("[data-part=problems]")).to_have_text(
        "0 of 1 examples right; needed: 80 %"
    )
    expect(assessor.get_by_role("heading", name="You cannot judge yet")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Let them judge: Person 1").click()
    expect(page.get_by_text("allowed", exact=True)).to_be_visible()
    tab.open().ready()

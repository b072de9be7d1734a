"""The dashboard refreshes itself without closing what was opened, in the reader's time zone."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from podium.studio.store.database import in_transaction
from podium.studio.store.tables import Report
from tests.studio.browser.project_scenes import busy_project
from tests.studio.browser.scenes import set_up

pytestmark = pytest.mark.slow


def refresh(page):
    """What the page does every few seconds."""
    page.evaluate(
        "htmx.ajax('GET', location.pathname + '/figures', {target: '#figures', swap: 'outerHTML'})"
    )


def test_what_is_open_stays_open_and_nothing_is_replaced_needlessly(engine, person_browser):
    stage = set_up(engine)
    project = busy_project(stage)
    page = person_browser(stage.ann, timezone_id="Asia/Tokyo", locale="en-GB").new_page()
    page.goto(f"/projects/{project}/dashboard")
    page.wait_for_selector("text=Krippendorff", timeout=60_000)
    page.locator("#slowest summary").click()
    # The last judgments were at 08:06 UTC.
    assert "15 Jan 2027, 17:0" in page.locator("main").inner_text()
    refresh(page)  # the first response, which the page does not know yet
    page.evaluate("document.querySelector('#figures').dataset.mine = 'yes'")
    refresh(page)
    assert page.locator("#figures").get_attribute("data-mine") == "yes"
    changed = update(Report).where(Report.project_id == project).values(made_at=1.7e9)
    in_transaction(engine, lambda c: c.execute(changed))
    refresh(page)
    page.wait_for_selector("text=15 Nov 2023, 07:13")
    assert page.locator("#figures").get_attribute("data-mine") is None
    assert page.locator("#slowest").get_attribute("open") is not None

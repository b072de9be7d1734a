"""Pages in another language, and from right to left: judging, the dashboard, signing in and out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select, update

from podium.studio.accounts.service import add_user
from podium.studio.store.database import in_transaction
from podium.studio.store.tables import LogEntry, QueryCandidate, User
from tests.studio.browser import pseudo
from tests.studio.browser.bees import bees_project
from tests.studio.browser.chromium import STANDARDS, Judging
from tests.studio.factories import PASSWORD

pytestmark = pytest.mark.slow
WIDTHS = {1440: 900, 390: 844}


@pytest.fixture
def ann(engine):
    def work(connection):
        return add_user(connection, "ann@example.org", "Ann Archer", PASSWORD, admin=True)

    return in_transaction(engine, work)


def test_an_assessor_signs_in_judges_and_signs_out_in_german(engine, ann, person_browser):
    project = bees_project(engine, ann)
    page = person_browser(None, locale="en-GB").new_page()
    page.goto("/sign-in")
    page.get_by_role("link", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    _sign_in(page, "E-Mail-Adresse", "Passwort", "Anmelden")
    expect(page.get_by_role("heading", level=1)).to_have_text("Projekte")

    tab = Judging(page, project).open()
    tab.answer("ArrowLeft")
    expect(page.locator('[data-part="saved"]')).to_have_text("Gespeichert")
    expect(page.locator('[data-part="judged"]')).to_have_text("1 beurteilt")
    expect(page.get_by_role("button", name="Links ist besser")).to_be_visible()
    tab.ready()
    page.keyboard.press("u")
    expect(page.locator('[data-part="notice-text"]')).to_have_text(
        "Ihr letztes Urteil wurde zurückgenommen."
    )
    tab.answer("ArrowRight")
    expect(page.locator('[data-part="saved"]')).to_have_text("Gespeichert")

    page.goto(f"/projects/{project}/dashboard")
    expect(page.get_by_role("heading", name="Fortschritt")).to_be_visible()
    page.goto(f"/projects/{project}/history")
    expect(page.get_by_role("heading", name="Ihre Antworten")).to_be_visible()
    german_time = re.compile(r"^\d{2}\.\d{2}\.\d{4}, \d{2}:\d{2}$")
    expect(page.locator("time").first).to_have_text(german_time)
    expect(page.locator("td em").first).to_have_text(re.compile("^(besser|schlechter) als$"))

    page.goto("/account")
    page.get_by_label("Sprache der Seiten").select_option("de")
    page.get_by_role("button", name="Sprache speichern").click()
    page.locator("header summary").click()
    page.get_by_role("button", name="Abmelden").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Anmelden")
    page.context.clear_cookies(name="podium_language")
    page.goto("/sign-in")
    _sign_in(page, "E-mail address", "Password", "Sign in")
    expect(page.get_by_role("heading", level=1)).to_have_text("Projekte")
    page.locator("header summary").click()
    page.get_by_role("button", name="Abmelden").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Anmelden")


def test_right_to_left_the_left_document_stays_left(
    engine, ann, person_browser, axe, tmp_path
):  # fmt: skip
    project = bees_project(engine, ann)
    in_transaction(engine, lambda c: c.execute(update(User).values(language=pseudo.CODE)))
    with pseudo.installed(tmp_path / "locale"):
        page = person_browser(ann, reduced_motion="reduce", bypass_csp=True).new_page()
        tab = Judging(page, project).open()
        tab.ready()
        expect(page.locator("html")).to_have_attribute("dir", "rtl")
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            _check(page, axe)
            left, right = (
                page.locator(f'button[data-choice="{side}"]') for side in ("left", "right")
            )
            assert left.bounding_box()["x"] < right.bounding_box()["x"]
        page.set_viewport_size({"width": 1440, "height": 900})
        first, second = page.locator(".documents [data-side]").all()
        assert first.bounding_box()["x"] < second.bounding_box()["x"]
        assert first.locator(".text").evaluate("e => getComputedStyle(e).direction") == "ltr"
        shown_left = tab.titles()[0]
        tab.answer("ArrowLeft")
        expect(page.locator('[data-part="saved"]')).to_have_text(pseudo.mirrored("Saved"))
        assert _preferred(engine) == shown_left

        page.goto(f"/projects/{project}/dashboard")
        for width, height in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": height})
            _check(page, axe)
        brand, account = page.locator(".brand"), page.locator(".who")
        assert brand.bounding_box()["x"] > account.bounding_box()["x"]


def _sign_in(page: Page, email: str, password: str, button: str) -> None:
    page.get_by_label(email).fill("ann@example.org")
    page.get_by_label(password).fill(PASSWORD)
    page.get_by_role("button", name=button).click()


def _check(page: Page, axe: str) -> None:
    """No sideways scrolling, and nothing that axe finds."""
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]
    page.evaluate(axe)
    found = page.evaluate("tags => axe.run(document, {runOnly: tags, iframes: false})", STANDARDS)
    assert [each["id"] for each in found["violations"]] == []


def _preferred(engine) -> str:
    """The title of the document that the last verdict says is better."""
    with engine.connect() as connection:
        entry = connection.execute(select(LogEntry).order_by(LogEntry.id.desc()).limit(1)).one()
        position = entry.left if entry.value > 0 else entry.right
        return connection.scalar(
            select(QueryCandidate.title).where(
                QueryCandidate.query_id == entry.query_id, QueryCandidate.position == position
            )
        )

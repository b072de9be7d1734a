"""The browser, and a person's tab in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from sqlalchemy import Engine, select

from podium.studio.accounts.service import sign_in
from podium.studio.store.database import in_transaction, reading
from podium.studio.store.tables import LogEntry
from podium.studio.web.access import COOKIE

CHROMIUM = Path("/usr/bin/chromium")
ROOT = Path(__file__).parents[3]
BUILT = ROOT / "src/podium/studio/web/static/built/judge.js"
OUTSIDE: dict[str, Any] = {
    "models": ["https://models.example.org/v1"],
    "webhooks": ["https://hooks.example.org/"],
    "smtp": "smtp://127.0.0.1:1",
    "mail_from": "podium@example.org",
    "public_url": "http://judging.example.org",
}
"""Settings with which pages offer all that they can; nothing of it is called."""
_ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


# The limit of `signed_in` for expectations, too: five seconds are short on a busy machine.
expect.set_options(timeout=60_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, which talks to nobody but the tests' server."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=_ARGUMENTS, timeout=180_000
        )
        yield browser
        browser.close()


def signed_in(
    browser: Browser, engine: Engine, address: str, person: int | None, **settings: Any
) -> BrowserContext:
    """A browser of someone who signed in already, or of a stranger."""
    context = browser.new_context(base_url=address, **settings)
    context.set_default_timeout(60_000)
    if person is not None:
        secret = in_transaction(engine, lambda c: sign_in(c, person, 1)).secret
        context.add_cookies([{"name": COOKIE, "value": secret, "url": address}])
    return context


class Judging:
    """A tab with the judging page, as the person before it uses it."""

    def __init__(self, page: Page, project: int) -> None:
        self.page = page
        self.project = project

    def open(self) -> Judging:
        self.page.goto(f"/projects/{self.project}/judge")
        return self

    @property
    def screen(self) -> str:
        """The screen that is shown."""
        return str(
            self.page.evaluate(
                "document.querySelector('[data-screen]:not([hidden])').dataset.screen"
            )
        )

    def wait_for(self, screen: str) -> None:
        self.page.wait_for_selector(f'[data-screen="{screen}"]:not([hidden])')

    def ready(self) -> str:
        """Wait until an answer would be taken; gives the task's token."""
        found = self.page.wait_for_selector('[data-part="task"][data-accepts]:not([hidden])')
        return str(found.get_attribute("data-accepts"))

    def accepts(self) -> bool:
        """Whether an answer would be taken now."""
        return self.page.locator('[data-part="task"][data-accepts]:not([hidden])').count() == 1

    def titles(self) -> list[str]:
        """The titles of the documents."""
        return self.page.locator(".documents .document-title").all_text_contents()

    def answer(self, key: str) -> None:
        """Press a key once it would be taken."""
        self.ready()
        self.page.keyboard.press(key)

    def wait_until_saved(self) -> None:
        expect(self.page.locator('[data-part="saved"]')).to_have_text("Saved")

    def part(self, name: str) -> str:
        """The text of a part of the page."""
        return self.page.locator(f'[data-part="{name}"]').inner_text()


ACCEPTED_AFTER = 0.25


def open_task(browser, project):
    """A tab with a task in it, whose clock stands still but for what a test lets pass."""
    page = browser.new_page()
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    found = Judging(page, project).open()
    found.wait_for("task")
    let_it_accept(found)
    return found


def let_it_accept(tab):
    """Let the time pass after which a task takes an answer, once its documents have come."""
    # They come in real time, and so does word of what was seen: neither is counted.
    tab.page.wait_for_selector(".documents [aria-busy]", state="detached")
    tab.page.clock.run_for(round(1000 * ACCEPTED_AFTER))
    tab.ready()


STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def read_log(engine):
    return reading(
        engine, lambda c: c.execute(select(LogEntry.__table__).order_by(LogEntry.id)).all()
    )

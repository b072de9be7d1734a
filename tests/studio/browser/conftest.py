"""A browser, a server for it, and people in front of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext
from sqlalchemy import Engine

from podium.studio.settings import Settings
from tests.studio.browser.chromium import (
    BUILT,
    CHROMIUM,
    OUTSIDE,
    ROOT,
    Judging,
    chromium,
    signed_in,
)
from tests.studio.browser.shop import IMAGE_HOST
from tests.studio.server import serving

Opened = Callable[..., Judging]
AXE = ROOT / "node_modules/axe-core/axe.min.js"


# For this package and not longer: while Playwright runs, its thread has an event loop, and tests of
# other packages want to start their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    for file, remedy in ((CHROMIUM, "apt-get install chromium"), (BUILT, "make web")):
        if not file.exists():
            if os.environ.get("CI"):
                pytest.fail(f"{file} is missing: {remedy}")
            pytest.skip(f"needs {file}: {remedy}")
    with chromium() as found:
        yield found


@pytest.fixture
def address(database: str) -> Iterator[str]:
    with serving(Settings(database=database, image_hosts=[IMAGE_HOST], **OUTSIDE)) as found:
        yield found


@pytest.fixture
def person_browser(
    browser: Browser, engine: Engine, address: str
) -> Iterator[Callable[..., BrowserContext]]:
    """Opens a browser for a person; scripts that fail, or try to run where none may, are errors."""
    contexts: list[BrowserContext] = []

    def open_one(person: int | None, **settings: Any) -> BrowserContext:
        context = signed_in(browser, engine, address, person, **settings)
        contexts.append(context)
        return context

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def judging(person_browser: Callable[..., BrowserContext]) -> Opened:
    """Opens the judging page for a person."""

    def open_one(person: int, project: int, **settings: Any) -> Judging:
        return Judging(person_browser(person, **settings).new_page(), project).open()

    return open_one


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing: npm ci")
        pytest.skip("needs axe-core: npm ci")
    return AXE.read_text()

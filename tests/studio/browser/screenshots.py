"""Takes pictures of every screen, light and dark, wide and narrow, into docs/images/studio.

``python -m tests.studio.browser.screenshots [NAME...]`` takes those of some screens alone.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Page

from podium.studio.settings import Settings
from podium.studio.store.database import connect
from podium.studio.store.migrate import upgrade
from tests.studio.browser import flow_scenes, project_scenes  # noqa: F401 - add their scenes
from tests.studio.browser.chromium import OUTSIDE, ROOT, chromium, signed_in
from tests.studio.browser.scenes import SCENES, set_up
from tests.studio.browser.shop import IMAGE_HOST
from tests.studio.server import serving

FOLDER = ROOT / "docs/images/studio"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_COLOURS = 128
"""Flat pages need few colours, and a palette makes a much smaller file."""


def looks(page: Page) -> Iterator[str]:
    """Show a page in every size and colour scheme, one after the other."""
    for size, (width, height) in SIZES.items():
        for scheme in SCHEMES:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            yield f"{size}-{scheme}"


def take(names: list[str], folder: Path = FOLDER) -> None:
    """Take the pictures of some screens."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(
            database=f"sqlite:///{scratch}/studio.db",
            exports=Path(scratch),
            image_hosts=[IMAGE_HOST],
            **OUTSIDE,
        )
        engine = connect(settings)
        upgrade(engine)
        stage = set_up(engine)
        with serving(settings) as address, chromium() as browser:
            for name in names:
                found = SCENES[name]
                who = None if found.stranger else stage.ann
                context = signed_in(browser, engine, address, who, reduced_motion="reduce")
                page = context.new_page()
                found.play(stage, page)
                for look in looks(page):
                    save_picture(page.screenshot(), folder / f"{name}-{look}.png")
                context.close()
        engine.dispose()


def save_picture(picture: bytes, path: Path) -> None:
    """Write a picture with few colours."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    take(sys.argv[1:] or list(SCENES))

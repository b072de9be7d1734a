"""A shop's results with pictures and prices, for pictures and for tests of how results look."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Page, Route
from sqlalchemy import Engine

from podium.data import Candidate, CandidateList
from podium.studio.projects.service import (
    ProjectSettings,
    add_queries,
    create_project,
    project_row,
)
from podium.studio.store.database import in_transaction

IMAGE_HOST = "https://pictures.example.org/"
"""A host that servers of tests list; `draw_pictures` answers in its place."""
DISPLAY = [
    {"field": "title", "role": "title"},
    {"field": "picture", "role": "image"},
    {"field": "price", "role": "price", "label": "€"},
    {"field": "brand", "role": "tag"},
    {"field": "rating", "role": "value", "label": "Rating"},
    {"field": "sizes", "role": "value", "label": "Sizes"},
    {"field": "text", "role": "text"},
]
SCALE = [
    {"name": "Off topic", "description": "Nobody would want it here", "colour": "red"},
    {
        "name": "Related",
        "description": "Another kind of thing",
        "colour": "orange",
    },
    {
        "name": "Substitute",
        "description": "If there were nothing better",
        "colour": "yellow",
    },
    {"name": "Exact", "description": "What was searched for", "colour": "green"},
]
QUESTIONS = [
    {
        "name": "reason",
        "text": "What decided it?",
        "options": ["Price", "Fit", "Picture"],
        "required": True,
    },
    {"name": "missing", "text": "What is missing in the results?"},
]
_PRODUCTS = (
    (
        "Trail runner, wide",
        "Acme",
        129.9,
        "#c0563f",
        "Wide running shoes for soft trails.",
    ),
    (
        "Road shoe 42",
        "Bolt",
        99.0,
        "#3f6fc0",
        "A light running shoe, in wide sizes.",
    ),
    ("Rain boots", "Puddle", 45.5, "#3fa06a", "Boots of rubber for wet gardens."),
    ("Running socks", "Acme", 12.0, "#8a8f99", "Three pairs. They keep feet dry when you run."),
    ("حذاء جري عريض", "Sahra", 89.0, "#b08a2f", "حذاء جري خفيف وعريض للمسافات الطويلة."),
    ("Sandals", "Bolt", 39.0, "#7a45c4", "For the beach."),
)


def shop(query_id: str = "wide", query: str = "wide running shoes") -> CandidateList:
    """A query with products."""
    candidates = tuple(
        Candidate(
            f"sku{n}",
            title=title,
            text=text,
            url=f"https://shop.example.org/{n}",
            metadata={
                "brand": brand,
                "price": price,
                "rating": f"{4.8 - n / 5:.1f} of 5",
                "sizes": ["40", "41", "42"],
                "picture": f"{IMAGE_HOST}{colour[1:]}.png",
            },
        )
        for n, (title, brand, price, colour, text) in enumerate(_PRODUCTS)
    )
    return CandidateList(query_id, query, candidates, "Someone with wide feet starts running.")


def shop_project(engine: Engine, owner: int, *, queries: int = 2, **settings: Any) -> int:
    """A new project of this shop."""

    def work(connection):
        found = ProjectSettings(**{"name": "Outdoor shop", "k": 3, "display": DISPLAY, **settings})
        project_id = create_project(connection, owner, found)
        entries = [shop(f"q{n}") for n in range(queries)]
        items = [candidate.document_id for candidate in entries[0].candidates]
        rankings = {entry.query_id: {"old": items[::-1], "new": items} for entry in entries}
        add_queries(
            connection,
            project_row(connection, project_id),
            entries,
            rankings if found.mode == "rankings" else None,
        )
        return project_id

    return in_transaction(engine, work)


def draw_pictures(page: Page) -> None:
    """Answer requests for pictures, which no host has."""
    image = Image.new("RGB", (240, 180), "#ffffff")
    draw = ImageDraw.Draw(image)
    draw.ellipse((20, 70, 200, 150), fill="#c0563f")
    draw.rectangle((20, 130, 220, 150), fill="#333333")
    stream = io.BytesIO()
    image.save(stream, "PNG")

    def fulfil(route: Route) -> None:
        route.fulfill(body=stream.getvalue(), content_type="image/png")

    page.route("**/documents/*/image*", fulfil)

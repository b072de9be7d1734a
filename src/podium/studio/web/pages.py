"""HTML pages from templates. Jinja escapes whatever is put into them."""

from __future__ import annotations

import time
from pathlib import Path

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from podium.studio.accounts.identity import Person
from podium.studio.json_types import JsonObject
from podium.studio.web.assets import asset

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["asset"] = asset


def moment(seconds: float) -> Markup:
    """A time in UTC, which `web/page.ts` shows in the reader's zone.

    Example:
        >>> str(moment(0))
        '<time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00 UTC</time>'
    """
    at = time.gmtime(seconds)
    exact = time.strftime("%Y-%m-%dT%H:%M:%SZ", at)
    words = time.strftime("%Y-%m-%d %H:%M UTC", at)
    return Markup('<time datetime="{}">{}</time>').format(exact, words)


_TEMPLATES.filters["moment"] = moment


def render(
    request: Request,
    template: str,
    values: JsonObject,
    *,
    person: Person | None = None,
    status: int = 200,
) -> HTMLResponse:
    """Render a page.

    Args:
        request: Which page is asked for.
        template: The file in ``templates/``.
        values: What the template shows.
        person: Who looks at it, if they signed in.
        status: The HTTP status.
    """
    page = _TEMPLATES.get_template(template).render(
        **values, person=person, csrf=person.csrf if person else "", path=request.url.path
    )
    return HTMLResponse(page, status)

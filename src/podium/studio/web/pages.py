"""HTML pages from templates. Jinja escapes whatever is put into them."""

from __future__ import annotations

import time
from pathlib import Path

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse

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


def moment(seconds: float) -> str:
    """A time in words that sort, for everyone in the same zone.

    Example:
        >>> moment(0)
        '1970-01-01 00:00 UTC'
    """
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


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

"""HTML pages from templates, in the reader's language. Jinja escapes whatever is put into them."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from podium.studio.accounts.identity import Member, Person
from podium.studio.json_types import JsonObject
from podium.studio.messages import Message
from podium.studio.store.enums import Role
from podium.studio.translations import Language
from podium.studio.web.actions import outcome_of
from podium.studio.web.assets import asset
from podium.studio.web.cookies import cookie
from podium.studio.web.languages import keep_choice, language_links, language_of

_MESSAGES = (
    # Roles
    Message("assessor"),
    Message("manager"),
    Message("owner"),
    # Jobs, runs of models and deliveries
    Message("waiting"),
    Message("running"),
    Message("done"),
    Message("failed"),
    Message("cancelled"),
    Message("stopped"),
    Message("sent"),
    # Queries
    Message("open"),
    Message("not started"),
    Message("withdrawn"),
    # Training
    Message("passed"),
    Message("allowed"),
    # How left compares with right, and what else was answered
    Message("much better than"),
    Message("better than"),
    Message("as good as"),
    Message("about the same as"),
    Message("worse than"),
    Message("much worse than"),
    Message("skipped"),
    # The usual grades
    Message("bad"),
    Message("fair"),
    Message("good"),
    Message("excellent"),
    Message("perfect"),
    # What exports hold
    Message("labels"),
    Message("grades"),
    Message("preferences"),
    Message("totals"),
    Message("log"),
    Message("answers"),
    # Colours of grades
    Message("red"),
    Message("orange"),
    Message("yellow"),
    Message("green"),
    Message("teal"),
    Message("blue"),
    Message("purple"),
    Message("grey"),
)
WORDS = {str(message): message for message in _MESSAGES}
"""To each word of the API its message."""

SKIP_REASONS = (
    Message("I cannot tell"),
    Message("I do not know enough about this topic"),
    Message("A document is in a language I cannot read"),
    Message("A document is broken or missing"),
    Message("Other"),
)
"""What can be said when a task is skipped. The log has it in English, with a comment after it."""


def moment(seconds: float) -> Markup:
    """A time in UTC, which `web/page.ts` shows in the reader's zone and language.

    Example:
        >>> str(moment(0))
        '<time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00 UTC</time>'
    """
    at = time.gmtime(seconds)
    exact = time.strftime("%Y-%m-%dT%H:%M:%SZ", at)
    words = time.strftime("%Y-%m-%d %H:%M UTC", at)
    return Markup('<time datetime="{}">{}</time>').format(exact, words)


def plain(value: object) -> str:
    """A detail of the audit log in words, whatever JSON it is.

    Example:
        >>> plain({"k": 3, "fields": [{"field": "title"}, {"field": "price"}], "seed": None})
        'k 3; fields title, price'
    """
    if isinstance(value, dict):
        named = {name: plain(each) for name, each in value.items()}
        if len(named) == 1:
            return "".join(named.values())
        return "; ".join(f"{name} {each}" for name, each in named.items() if each)
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


THEME_COOKIE = "podium_theme"
THEMES = ("light", "dark")


def theme_of(request: Request) -> str:
    """The theme that was chosen in this browser; empty if pages look as its system does."""
    chosen = cookie(request, THEME_COOKIE)
    return chosen if chosen in THEMES else ""


@cache
def _templates(language: Language) -> jinja2.Environment:
    """The templates for one language: what they are translated by is a part of them."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    # The extension adds this method when it is loaded.
    templates.install_gettext_translations(language.gettext, newstyle=True)  # type: ignore[attr-defined]

    def word(name: str) -> str:
        """A word of the API, such as a role or a state, as people read it."""
        return language.translate(WORDS.get(name, name))

    def reason(text: str | None) -> str:
        """Why a task was skipped, with the comment after it; or another comment."""
        text = text or ""
        for known in SKIP_REASONS:
            if text == known or text.startswith(f"{known}: "):
                return language.translate(known) + text[len(known) :]
        return text

    templates.globals["asset"] = asset
    templates.globals["language"] = language
    templates.filters["moment"] = moment
    templates.filters["plain"] = plain
    templates.filters["number"] = language.number
    templates.filters["translated"] = language.translate
    templates.filters["word"] = word
    templates.filters["reason"] = reason
    return templates


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
    outcome = outcome_of(request)
    page = _templates(language_of(request)).get_template(template).render(
        **{
            "problem": outcome.problem,
            "typed": outcome.typed,
            "made": outcome.result,
            **values,
        },
        person=person,
        csrf=person.csrf if person else "",
        path=request.url.path,
        theme=theme_of(request),
        language_links=[] if person else language_links(request),
    )  # fmt: skip
    response = HTMLResponse(page, status)
    keep_choice(request, response)
    return response


def render_project(
    request: Request, who: Member, template: str, values: JsonObject
) -> HTMLResponse:
    """A page inside a project, with the links that a role has."""
    return render(
        request,
        template,
        {"project": who.project, "role": who.role, "manages": who.may(Role.MANAGER), **values},
        person=who.person,
    )

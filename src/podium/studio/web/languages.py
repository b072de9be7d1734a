"""The language of a request: the account's, the one chosen before signing in, or the browser's."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import Request, Response

from podium.studio.translations import Language, language, languages, negotiated
from podium.studio.web.cookies import cookie, set_cookie

COOKIE = "podium_language"
PARAMETER = "lang"
"""The parameter of an address that chooses the language, unless the account has one."""
_KEPT_SECONDS = 365 * 24 * 3600
_LONGEST_HEADER = 1000
"""Browsers send a tenth of it. A longer one is nobody's choice of languages."""


def language_of(request: Request) -> Language:
    """The language in which a request is answered."""
    for code in (_of_account(request), _of_address(request), cookie(request, COOKIE)):
        if code in languages():
            return language(code)
    return language(negotiated(accepted(request.headers.get("accept-language", ""))))


def keep_choice(request: Request, response: Response) -> None:
    """Keep a language that the address chooses, for the pages that follow."""
    code = _of_address(request)
    if code in languages() and not _of_account(request):
        keep_language(request, response, code)


def _of_account(request: Request) -> str:
    """As `podium.studio.web.access` found it; empty before it looked."""
    return str(getattr(request.state, "language", ""))


def _of_address(request: Request) -> str:
    return request.query_params.get(PARAMETER, "")


def keep_language(request: Request, response: Response, code: str) -> None:
    """Keep a language in the browser, for when nobody is signed in."""
    set_cookie(request, response, COOKIE, code, _KEPT_SECONDS)


def language_links(request: Request) -> list[tuple[str, str, str]]:
    """This page in every language: the tag, what it calls itself, and the address."""
    rest = [pair for pair in request.query_params.multi_items() if pair[0] != PARAMETER]
    return [
        (code, name, "?" + urlencode([*rest, (PARAMETER, code)]))
        for code, name in languages().items()
    ]


def accepted(header: str) -> list[str]:
    """The languages of an ``Accept-Language`` header, the most preferred first.

    Example:
        >>> accepted("fr;q=0.2, de-CH, en;q=0.5, *;q=0.1, it;q=0, x;q=high")
        ['de-CH', 'en', 'fr']
    """
    if len(header) > _LONGEST_HEADER:
        return []
    ranked = []
    for part in header.split(","):
        tag, _, parameter = part.strip().partition(";")
        weight = _weight(parameter)
        if tag.replace("-", "").isalnum() and tag.isascii() and weight > 0:
            ranked.append((weight, tag.strip()))
    return [tag for _, tag in sorted(ranked, key=lambda pair: -pair[0])]


def _weight(parameter: str) -> float:
    """The weight of a language, from 0 to 1; 0 if it makes no sense."""
    name, _, value = parameter.replace(" ", "").partition("=")
    if not name:
        return 1.0
    try:
        weight = float(value) if name == "q" else 0.0
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0

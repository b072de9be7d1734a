"""Cookies: never read by scripts, never sent by other sites' forms, by HTTPS alone where there is.

With HTTPS their names begin with ``__Host-``: browsers then take them only from this very host and
by HTTPS, so that neither a neighbouring host nor someone on the network can plant one.
"""

from __future__ import annotations

from fastapi import Request, Response

_PREFIX = "__Host-"


def cookie(request: Request, name: str) -> str:
    """The value of a cookie, or an empty string."""
    return request.cookies.get(_full(request, name), "")


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: int) -> None:
    """Set a cookie."""
    response.set_cookie(
        _full(request, name),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="lax",
        secure=request.app.state.settings.is_secure,
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Delete a cookie."""
    secure = request.app.state.settings.is_secure
    response.delete_cookie(_full(request, name), path="/", secure=secure, httponly=True)


def _full(request: Request, name: str) -> str:
    return _PREFIX + name if request.app.state.settings.is_secure else name

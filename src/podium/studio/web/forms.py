"""HTML forms, and their CSRF token."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def read_csrf(request: Request) -> None:
    """Store a form's CSRF token, for `podium.studio.web.access` to check."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind in _FORMS:
        request.state.csrf = str((await request.form()).get("csrf", ""))


async def form_values(request: Request) -> dict[str, str]:
    """The fields of a form that are text, without the word of `read_csrf`."""
    form = await request.form()
    return {
        name: value for name, value in form.items() if isinstance(value, str) and name != "csrf"
    }


FormValues = Annotated[dict[str, str], Depends(form_values)]

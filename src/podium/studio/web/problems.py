"""What every answer to a program looks like when something is wrong."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Problem(BaseModel):
    """Why a request was refused, in words."""

    detail: str


def _problem(description: str) -> dict[str, Any]:
    # As content and not as a model: routes whose answers are no JSON refuse in JSON too.
    schema = Problem.model_json_schema()
    return {"description": description, "content": {"application/json": {"schema": schema}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("The request cannot be read."),
    401: _problem("Nobody signed in, or the API token is too old."),
    403: _problem("Your role does not allow this."),
    404: _problem("There is no such thing, or it is not yours to see."),
    409: _problem("It does not fit with what is there."),
    413: _problem("The request is too large."),
    422: _problem("A value is missing or wrong."),
    429: _problem("Too much at once: try again later."),
    503: _problem("The database cannot be reached: try again."),
}
"""The refusals of every route, for the API's description."""

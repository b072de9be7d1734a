"""What every answer to a program looks like when something is wrong."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError


class Problem(BaseModel):
    """Why a request was refused, in words."""

    detail: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request cannot be read."},
    401: {"model": Problem, "description": "Nobody signed in, or the API token is too old."},
    403: {"model": Problem, "description": "Your role does not allow this."},
    404: {"model": Problem, "description": "There is no such thing, or it is not yours to see."},
    409: {"model": Problem, "description": "It does not fit with what is there."},
    413: {"model": Problem, "description": "The request is too large."},
    422: {"model": Problem, "description": "A value is missing or wrong."},
    429: {"model": Problem, "description": "Too much at once: try again later."},
    503: {"model": Problem, "description": "The database cannot be reached: try again."},
}
"""The refusals of every route, for the API's description."""


def first_problem(error: ValidationError) -> str:
    """What is wrong with values that do not fit a model, in one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])

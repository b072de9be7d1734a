"""Error responses of the API."""

from __future__ import annotations

from pydantic import BaseModel

from podium.studio.json_types import JsonObject


class Problem(BaseModel):
    """Why a request was refused, in words."""

    detail: str


def _problem(description: str) -> JsonObject:
    # As content and not as a model: routes whose answers are no JSON refuse in JSON too.
    schema = Problem.model_json_schema()
    return {"description": description, "content": {"application/json": {"schema": schema}}}


PROBLEMS: dict[int | str, JsonObject] = {
    400: _problem("The request is malformed."),
    401: _problem("You are not signed in, or the API token has expired."),
    403: _problem("Your role does not allow this."),
    404: _problem("Not found, or you do not have access to it."),
    409: _problem("The request conflicts with the current state."),
    413: _problem("The request is too large."),
    422: _problem("A value is missing or wrong."),
    429: _problem("Too many requests: try again later."),
    503: _problem("The database cannot be reached: try again."),
}
"""The refusals of every route, for the API's description."""

"""The bodies of requests and answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

_NUMBER_OR_NULL = {"type": ["number", "null"]}

INFER_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "parameters": {"type": "object"},
        "inputs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "shape", "datatype"],
                "properties": {
                    "name": {"const": "features"},
                    "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                    "datatype": {"enum": ["FP32", "FP64"]},
                    "data": {"type": "array", "items": _NUMBER_OR_NULL},
                    "parameters": {"type": "object"},
                },
            },
        },
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"const": "scores"}, "parameters": {"type": "object"}},
            },
        },
    },
}

_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type, without references.

    Example:
        >>> schema_of(dict[str, float])
        {'type': 'object', 'additionalProperties': {'type': 'number'}}
    """
    schema = msgspec.json.schema(kind)
    definitions = schema.pop("$defs", {})

    def inlined(value: Any) -> Any:
        if isinstance(value, list):
            return [inlined(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return inlined(definitions[value["$ref"].rpartition("/")[2]])
        return {key: inlined(each) for key, each in value.items()}

    whole: dict[str, Any] = inlined(schema)
    return whole


def answers(kind: Any, description: str, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the answer of a route, of a type, and its refusals."""
    content = {"application/json": {"schema": schema_of(kind)}}
    return {200: {"description": description, "content": content}, **refusals(*statuses)}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route.

    Example:
        >>> list(refusals(400, 404))
        [400, 404]
    """
    words = {
        400: "The request is not valid.", 401: "No valid token.", 403: "The token is not admin's.",
        404: "No such model.", 408: "The body took too long.", 413: "The body is too large.",
        415: "The body is compressed.", 503: "Scoring took too long.",
    }  # fmt: skip
    content = {"application/json": {"schema": _ERROR}}
    return {status: {"description": words[status], "content": content} for status in statuses}


def body_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Describe the body of a route that reads it itself.

    Example:
        >>> sorted(body_of({"type": "object"}))
        ['requestBody']
    """
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}

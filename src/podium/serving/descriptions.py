"""The bodies of requests and answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

_NUMBER_OR_NULL = {"type": ["number", "null"]}
_ID = {"anyOf": [{"type": "string", "maxLength": 1024}, {"type": "integer"}]}

RANK_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["documents"],
    "additionalProperties": False,
    "properties": {
        "query": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "definitions": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
        "documents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "features"],
                "additionalProperties": False,
                "properties": {
                    "id": _ID,
                    "features": {"type": "object", "additionalProperties": _NUMBER_OR_NULL},
                },
            },
        },
    },
}

RANK_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["model", "version", "sha256", "ranking"],
    "properties": {
        "model": {"type": "string"},
        "version": {"type": "string"},
        "sha256": {"type": "string"},
        "ranking": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "score"],
                "properties": {"id": _ID, "score": {"type": "number"}},
            },
        },
    },
}

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

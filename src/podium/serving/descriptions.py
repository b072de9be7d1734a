"""The bodies of requests and answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from podium.serving.search.request import LONGEST_QUERY
from podium.serving.search_ids import LONGEST_ID, SEARCH_ID_PATTERN

_NUMBER_OR_NULL = {"type": ["number", "null"]}
_ID = {"anyOf": [{"type": "string", "maxLength": LONGEST_ID}, {"type": "integer"}]}
_OPTIONAL_ID = {"anyOf": [*_ID["anyOf"], {"type": "null"}]}
_OPTIONAL_SEARCH_ID = {"type": ["string", "null"], "pattern": SEARCH_ID_PATTERN}
_SEARCH_ID = {"type": "string"}

RANK_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["documents"],
    "additionalProperties": False,
    "properties": {
        "query": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "query_id": _OPTIONAL_ID,
        "search_id": _OPTIONAL_SEARCH_ID,
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
    "required": ["model", "version", "sha256", "search_id", "ranking"],
    "properties": {
        "search_id": _SEARCH_ID,
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

RERANK_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["query", "documents"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": ["string", "null"]},
        "query": {"type": "string", "maxLength": 10_000},
        "documents": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "required": ["text"],
                        "properties": {"text": {"type": "string"}},
                    },
                ]
            },
        },
        "top_n": {"type": ["integer", "null"], "minimum": 1},
        "return_documents": {"type": "boolean"},
    },
}

RERANK_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "results", "meta"],
    "properties": {
        "id": {"type": "string"},
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["index", "relevance_score"],
                "properties": {
                    "index": {"type": "integer"},
                    "relevance_score": {"type": "number"},
                    "document": {
                        "type": "object",
                        "required": ["text"],
                        "properties": {"text": {"type": "string"}},
                    },
                },
            },
        },
        "meta": {
            "type": "object",
            "required": ["model", "version", "sha256"],
            "properties": {
                "model": {"type": "string"},
                "version": {"type": "string"},
                "sha256": {"type": "string"},
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

_COUNT = {"type": "integer", "minimum": 0, "maximum": 1000}
_QUERY = {"type": "string", "minLength": 1, "maxLength": LONGEST_QUERY}
SEARCH_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["query"],
    "additionalProperties": False,
    "properties": {
        "query": _QUERY,
        "from": _COUNT,
        "size": _COUNT | {"minimum": 1},
        "fields": {"type": "array", "items": {"type": "string"}},
        "columns": {"type": "object", "additionalProperties": {"type": "string"}},
        "search_id": _OPTIONAL_SEARCH_ID,
        "query_id": _OPTIONAL_ID,
    },
}
SEARCH_PARAMETERS: list[dict[str, Any]] = [
    {"name": name, "in": "query", "required": name == "q", "schema": schema}
    for name, schema in (
        ("q", _QUERY), ("from", _COUNT), ("size", _COUNT | {"minimum": 1}),
        ("fields", {"type": "string"}), ("columns.NAME", {"type": "string"}),
        ("search_id", {"type": "string", "pattern": SEARCH_ID_PATTERN}),
        ("query_id", {"type": "string", "maxLength": LONGEST_ID}),
    )
]  # fmt: skip
SEARCH_ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["search_id", "query", "from", "reranked", "reason", "hits"],
    "properties": {
        "search_id": _SEARCH_ID,
        "query": {"type": "string"},
        "from": {"type": "integer"},
        "reranked": {"type": "boolean"},
        "reason": {"type": ["string", "null"]},
        "model": {"type": "string"},
        "version": {"type": "string"},
        "sha256": {"type": "string"},
        "hits": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "score", "fields"],
                "properties": {
                    "id": {"type": "string"},
                    "score": {"type": "number"},
                    "fields": {"type": "object"},
                },
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
